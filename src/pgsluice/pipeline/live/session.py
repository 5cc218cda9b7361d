"""The connection that migrations run on, with all that watches over it."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from pgsluice.errors import InputError
from pgsluice.pipeline.live.blockers import Watcher
from pgsluice.pipeline.live.database import (
    PIN_SETTINGS,
    SETTINGS,
    backend_pid,
    close,
    connect,
    is_pooled,
    losses_told,
    require_writable,
)
from pgsluice.pipeline.live.record import changing_session
from pgsluice.pipeline.live.script import resets_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg.errors import Diagnostic
    from tenacity import RetryCallState

    from pgsluice.pipeline.live.interrupt import Stop
    from pgsluice.pipeline.sources.parse import Parsed

RETRIED: Final = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock not available: all gone when the transaction is made again."""
LONGEST_FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
CONCURRENT_PATIENCE: Final = 120
"""How many lock timeouts a `concurrently` statement may wait: it makes nobody queue behind it."""
LONGEST_S: Final = 2_000_000
"""Three weeks; the server counts milliseconds in 31 bits."""
NOTICE: Final = "NOTICE"

SET_LOCK_TIMEOUT: Final = "select pg_catalog.set_config('lock_timeout', %(ms)s, false)"
NOTICE_DEAD_CLIENT: Final = "set client_connection_check_interval = '2s'"
FRESH_SESSION: Final = (
    "set session authorization default; reset all; close all; deallocate all; unlisten *;"
    " discard temporary; discard sequences"
)


class Reporter(Protocol):
    """Whoever tells the user how it goes."""

    def progress(self, text: str) -> None:
        """What goes on now; may be called often, and from another thread."""

    def note(self, text: str) -> None:
        """Something that the user should see, whatever comes after it."""

    def applied(self, filename: str, *, statements: int, duration_s: float) -> None:
        """A file is done, and will stay."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for locks of the database's own users, and for another run of pgsluice."""

    lock_timeout_s: float = 5.0
    retries: int = 5
    wait_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.lock_timeout_s <= LONGEST_S:
            raise InputError(
                f"--lock-timeout must be more than 0 seconds and at most {LONGEST_S},"
                f" not {self.lock_timeout_s:g}",
                hint="--lock-timeout 5",
            )
        if self.retries < 0:
            raise InputError(f"--retries must be 0 or more, not {self.retries}", hint="--retries 5")
        if not 0 <= self.wait_s <= LONGEST_S:
            raise InputError(
                f"--wait must be 0 seconds or more and at most {LONGEST_S}, not {self.wait_s:g}",
                hint="--wait 60",
            )


@dataclass(frozen=True, slots=True)
class LiveSession:
    """One run's connection, in autocommit mode, and its companions."""

    conn: psycopg.Connection[Any]
    url: str
    watcher: Watcher
    stop: Stop
    reporter: Reporter
    patience: Patience

    def execute(self, text: str, *, label: str) -> None:
        """Run one statement of a migration, watched; `label` names it for progress.

        Raises:
            StoppedError: A signal came before it.
            psycopg.Error: What the server says.
        """
        self.stop.check()
        self.reporter.progress(label)
        with self.watcher.watches(label):
            self.conn.execute(text.encode(), prepare=False)

    def run(self, statement: Parsed, *, label: str) -> None:
        """`execute` a statement as it stands in a file; what `reset all` takes from the run is given back.

        Raises:
            StoppedError: A signal came before it.
            psycopg.Error: What the server says.
        """
        self.execute(statement.text, label=label)
        if resets_all(statement):
            self.pin()

    def roll_back(self) -> None:
        """Leave a transaction, if one is open and the connection is still there."""
        if not self.conn.closed and self.conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self.conn.execute("rollback")

    def set_lock_timeout(self, factor: int = 1) -> None:
        """How long a statement may wait for a lock, in multiples of what the user said."""
        limit_s = min(factor * self.patience.lock_timeout_s, LONGEST_S)
        limit_ms = max(1, round(1000 * limit_s))  # 0 would be no limit
        self.conn.execute(SET_LOCK_TIMEOUT, {"ms": str(limit_ms)})

    def reset(self) -> None:
        """Make the session as it was before the last file."""
        self.conn.execute(FRESH_SESSION)
        self.pin()

    def pin(self) -> None:
        """Make the settings those of every run."""
        _prepare(self.conn)
        self.set_lock_timeout()

    def retry(self, attempt: Callable[[], None], *, label: str) -> None:
        """Make an attempt again after a lock timeout or a deadlock, with growing pauses.

        Raises:
            StoppedError: A signal came in a pause.
            psycopg.Error: The last attempt's.
        """
        first_s = min(LONGEST_FIRST_PAUSE_S, self.patience.lock_timeout_s)
        limit = self.patience.retries + 1

        def say(state: RetryCallState) -> None:
            pause_s = state.next_action.sleep if state.next_action is not None else 0.0
            self.reporter.note(
                f"{label}: no lock in attempt {state.attempt_number} of {limit},"
                f" {'; '.join(self.watcher.blocked_by())}; again in {pause_s:.1f} s"
            )

        Retrying(
            retry=retry_if_exception(lambda exc: isinstance(exc, psycopg.Error) and exc.sqlstate in RETRIED),
            stop=stop_after_attempt(limit),
            wait=wait_exponential(first_s, max=LONGEST_PAUSE_S) + wait_random(0, first_s / 2),
            sleep=self.stop.sleep,
            before_sleep=say,
            reraise=True,
        )(attempt)


@contextmanager
def open_session(url: str, *, reporter: Reporter, stop: Stop, patience: Patience) -> Iterator[LiveSession]:
    """Connect for writing; what runs in the block is cancelled when a signal comes.

    Raises:
        UnreachableError: There is no connection, or nothing can be written.
        StoppedError: A signal came before there was a connection.
    """

    def progress(text: str) -> None:
        stop.check()
        reporter.progress(text)

    conn = connect(url, progress=progress)
    with ExitStack() as stack:
        stack.callback(close, conn)
        stack.enter_context(losses_told(conn, url))
        require_writable(conn, url)
        _refuse_shared_session(conn, url)
        _prepare(conn)
        conn.add_notice_handler(_notices(reporter))
        watcher = Watcher(url, backend_pid(conn), progress=reporter.progress)
        stack.enter_context(watcher.running())
        session = LiveSession(conn, url, watcher, stop, reporter, patience)
        session.set_lock_timeout()
        stack.enter_context(stop.cancels(conn))
        yield session


def _refuse_shared_session(conn: psycopg.Connection[Any], url: str) -> None:
    """Refuse a pooler that gives our server session, idle as it is, to a second connection."""
    if not is_pooled(conn):
        return
    other = connect(url)
    try:
        if backend_pid(other) == backend_pid(conn):
            raise changing_session()
    finally:
        close(other)


def _prepare(conn: psycopg.Connection[Any]) -> None:
    """Pin the settings, and have the server end what runs for a client that is gone, where it can."""
    conn.execute(PIN_SETTINGS, {"names": list(SETTINGS), "values": list(SETTINGS.values())})
    try:
        conn.execute(NOTICE_DEAD_CLIENT)
    except psycopg.errors.InvalidParameterValue:
        return  # not on this server's platform: its statement then runs to its end


def _notices(reporter: Reporter) -> Callable[[Diagnostic], None]:
    """Pass on what migrations say themselves, and warnings; not that something was skipped."""

    def show(diag: Diagnostic) -> None:
        severity = diag.severity_nonlocalized or NOTICE
        if severity != NOTICE or diag.context:
            reporter.note(f"{severity.lower()}: {diag.message_primary}")

    return show
