"""Ctrl-C and SIGTERM: the running statement is cancelled, and the run ends at the next safe point."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg

from pgsluice.errors import ExitCode, PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pgsluice.errors import Location

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
EXIT_BASE: Final = 128
CANCEL_S: Final = 5.0


class StoppedError(PipelineError):
    """A signal ended the run; `exit_status` is what the shell expects of a process that it ended."""

    exit_code = ExitCode.FINDING

    def __init__(
        self, message: str, *, signum: int, location: Location | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, location=location, hint=hint)
        self.signum = signum

    @property
    def exit_status(self) -> int:
        """130 for an interrupt, 143 for a termination."""
        return EXIT_BASE + self.signum


class Stop:
    """Whether the run shall end; everything that waits asks it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._conn: psycopg.Connection[Any] | None = None
        self.signum: int | None = None

    @property
    def requested(self) -> bool:
        """Whether a signal has arrived."""
        return self._event.is_set()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to the signals while the block runs; for the main thread alone."""
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def cancels(self, conn: psycopg.Connection[Any]) -> Iterator[None]:
        """Cancel what runs on `conn` when a signal arrives while the block runs."""
        self._conn = conn
        try:
            yield
        finally:
            self._conn = None

    def request(self, signum: int) -> None:
        """End the run as soon as that is safe."""
        self.signum = signum
        self._event.set()
        if self._conn is not None:
            threading.Thread(target=_cancel, args=(self._conn,), daemon=True).start()

    def check(self) -> None:
        """Raise when the run shall end.

        Raises:
            StoppedError: A signal has arrived.
        """
        if self.signum is not None:
            raise self.error()

    def error(self) -> StoppedError:
        """The error for a run that ends between two files."""
        assert self.signum is not None
        return StoppedError(f"{self.word}: nothing is left half-way", signum=self.signum)

    def at_once(self) -> StoppedError:
        """The error for a run that a second signal ended where it was."""
        return StoppedError(
            f"{self.word} twice, and ended at once: the server rolls back what it was at",
            signum=self.signum or signal.SIGINT,
            hint="pgsluice status",
        )

    @property
    def word(self) -> str:
        """What happened, for messages."""
        return "terminated" if self.signum == signal.SIGTERM else "interrupted"

    def sleep(self, pause_s: float) -> None:
        """Wait, unless a signal arrives.

        Raises:
            StoppedError: A signal has arrived.
        """
        self._event.wait(pause_s)
        self.check()

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        if self.requested:  # asked twice: at once, and the server rolls back when it misses us
            raise KeyboardInterrupt
        self.request(signum)


def _cancel(conn: psycopg.Connection[Any]) -> None:
    """Cancel the statement."""
    # A server that takes no cancel request answers the statement itself with an error, or with its end.
    with suppress(psycopg.Error):
        conn.cancel_safe(timeout=CANCEL_S)
