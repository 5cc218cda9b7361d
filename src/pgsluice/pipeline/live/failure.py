"""What the user reads when a statement fails: where, which one of how many, why, and what to do."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pgsluice.errors import FindingError, PipelineError, UnreachableError
from pgsluice.pipeline.live.database import shown
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.ledger import read_ledger
from pgsluice.pipeline.live.session import RETRIED
from pgsluice.pipeline.proof import failed_lines, server_lines

if TYPE_CHECKING:
    import psycopg

    from pgsluice.pipeline.live.script import Script
    from pgsluice.pipeline.live.session import LiveSession

NO_RIGHTS: Final = "42501"
READ_ONLY: Final = "25006"
CANCELLED: Final = "57014"
NEW_VALUE: Final = "55P04"
OUTSIDE_ALONE: Final = frozenset({"25001", "2D000"})
THERE_ALREADY: Final = frozenset(
    {
        "42P04",  # duplicate database
        "42P06",  # duplicate schema
        "42P07",  # duplicate table
        "42710",  # duplicate object
        "42723",  # duplicate function
    }
)
CHANGED_BY_HAND: Final = THERE_ALREADY | {
    "42P01",  # undefined table
    "42701",  # duplicate column
    "42703",  # undefined column
    "42704",  # undefined object
    "42883",  # undefined function
}


class At(StrEnum):
    """What fails in a file apart from its statements."""

    RECORD = "the record in pgsluice.migrations"
    COMMIT = "the commit"


def failure(
    exc: psycopg.Error, script: Script, *, target: str, at: int | At, session: LiveSession, outcome: str
) -> PipelineError:
    """The error for a file that failed; no transaction is open any more.

    Args:
        exc: What the server said.
        script: The file.
        target: The name of its target.
        at: The statement, from 0, or what else was done.
        session: The connection, which may be gone.
        outcome: What became of the file, as words.
    """
    statement = script.statements[at] if not isinstance(at, At) and script.statements else None
    position = int(exc.diag.statement_position) if exc.diag.statement_position else None
    location = script.location(statement, position) if statement is not None else None
    lines = failed_lines(exc, statement.text) if statement is not None else server_lines(exc)
    if session.stop.signum is not None and exc.sqlstate == CANCELLED:
        return StoppedError(
            f"{session.stop.word} in {script.name}; {outcome}", signum=session.stop.signum, location=location
        )
    total = len(script.statements)
    which = f"{at} of {script.name}" if isinstance(at, At) else f"statement {at + 1} of {total}"
    if exc.sqlstate in RETRIED:
        tries = session.patience.retries + 1
        return UnreachableError(
            f"{which} got no lock in {tries} attempt{'s' if tries > 1 else ''}; {outcome}",
            location=location,
            details=(*lines, *session.watcher.blocked_by()),
            hint=end_blockers(session),
        )
    if exc.sqlstate in (NO_RIGHTS, READ_ONLY):
        return UnreachableError(
            f"{which} was refused; {outcome}",
            location=location,
            details=(*lines, f"it ran as role {session.conn.info.user}"),
            hint=f"run it as the owner of what it changes, or grant that: grant <owner> to"
            f' "{session.conn.info.user}";',
        )
    return FindingError(
        f"{which} failed; {outcome}",
        location=location,
        details=lines,
        hint=_mend(exc, script, target=target, session=session),
    )


def unrecorded(exc: psycopg.Error, script: Script, *, done: int, session: LiveSession) -> UnreachableError:
    """The error for what is done and cannot be recorded."""
    is_locked = exc.sqlstate in RETRIED
    total = len(script.statements)
    return UnreachableError(
        f"the ledger cannot be written: {done} of {total} statements of {script.name} are done",
        details=(*server_lines(exc), *(session.watcher.blocked_by() if is_locked else ())),
        hint=end_blockers(session) if is_locked else "mend the cause, then: pgsluice apply",
    )


def own_failure(exc: psycopg.Error, session: LiveSession) -> PipelineError:
    """The error for what `apply` itself reads and writes, apart from any file."""
    if session.stop.signum is not None and exc.sqlstate == CANCELLED:
        return session.stop.error()
    lines = server_lines(exc)
    return UnreachableError(
        f"{shown(session.url)} refuses what apply itself asks for",
        details=lines,
        hint="mend the cause, then: pgsluice apply",
    )


def end_blockers(session: LiveSession) -> str:
    """The hint that ends who is in the way."""
    ends = [blocker.ending for blocker in session.watcher.blockers]
    if not ends:
        return "pgsluice apply --retries 20"
    return f"pgsluice apply --retries 20, or end who is in the way: {' '.join(ends)}"


def _mend(exc: psycopg.Error, script: Script, *, target: str, session: LiveSession) -> str:
    if script.transactional and exc.sqlstate in OUTSIDE_ALONE:
        return (
            "it runs outside of a transaction only: put it into a migration of its own, whose first line is"
            " -- atlas:txmode none and whose second is empty"
        )
    if exc.sqlstate == NEW_VALUE:
        return "put alter type … add value into a migration of its own, before this one"
    if exc.sqlstate in THERE_ALREADY and not session.conn.closed and not read_ledger(session.conn, target):
        return (
            f"pgsluice baseline --target {target}, if the database had all of this before: its ledger has "
            "nothing of this target"
        )
    if exc.sqlstate in CHANGED_BY_HAND:
        return "the database may have been changed by hand: pgsluice drift"
    return "mend the cause, then: pgsluice apply"
