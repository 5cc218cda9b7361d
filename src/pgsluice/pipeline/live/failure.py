"""What the user reads when a statement fails: where, which one of how many, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import FindingError, PipelineError, UnreachableError
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.session import RETRIED
from pgsluice.pipeline.proof import server_lines, shown_sql

if TYPE_CHECKING:
    import psycopg

    from pgsluice.pipeline.live.script import Script
    from pgsluice.pipeline.live.session import LiveSession

NO_RIGHTS: Final = "42501"
READ_ONLY: Final = "25006"
CANCELLED: Final = "57014"
CHANGED_BY_HAND: Final = frozenset(
    {
        "42P01",  # undefined table
        "42P04",  # duplicate database
        "42P06",  # duplicate schema
        "42P07",  # duplicate table
        "42701",  # duplicate column
        "42703",  # undefined column
        "42704",  # undefined object
        "42710",  # duplicate object
        "42723",  # duplicate function
        "42883",  # undefined function
    }
)


def failure(
    exc: psycopg.Error, script: Script, *, number: int | None, session: LiveSession, outcome: str
) -> PipelineError:
    """The error for a statement that failed.

    Args:
        exc: What the server said.
        script: The file.
        number: The statement, from 0; None for the commit.
        session: The connection, which may be gone.
        outcome: What became of the file, as words.
    """
    statement = script.statements[number] if number is not None else None
    position = int(exc.diag.statement_position) if exc.diag.statement_position else None
    location = script.location(statement, position) if statement is not None else None
    lines = (*(shown_sql(statement.text, position) if statement is not None else ()), *server_lines(exc))
    if session.stop.signum is not None and exc.sqlstate == CANCELLED:
        return StoppedError(
            f"{session.stop.word} in {script.name}; {outcome}", signum=session.stop.signum, location=location
        )
    if number is None:
        return FindingError(f"the commit of {script.name} failed; {outcome}", details=lines, hint=_mend(exc))
    which = f"statement {number + 1} of {len(script.statements)}"
    if exc.sqlstate in RETRIED:
        blocked = session.watcher.blocked_by()
        tries = session.patience.retries + 1
        return UnreachableError(
            f"{which} got no lock in {tries} attempt{'s' if tries > 1 else ''}; {outcome}",
            location=location,
            details=(*lines, *blocked),
            hint=_end_blockers(session),
        )
    if exc.sqlstate in (NO_RIGHTS, READ_ONLY):
        return UnreachableError(
            f"{which} was refused; {outcome}",
            location=location,
            details=(*lines, f"it ran as role {session.conn.info.user}"),
            hint=f"run it as the owner of what it changes, or grant that: grant <owner> to"
            f' "{session.conn.info.user}";',
        )
    return FindingError(f"{which} failed; {outcome}", location=location, details=lines, hint=_mend(exc))


def _end_blockers(session: LiveSession) -> str:
    pids = [blocker.pid for blocker in session.watcher.blockers]
    if not pids:
        return "pgsluice apply --retries 20"
    ends = " ".join(f"select pg_terminate_backend({pid});" for pid in pids)
    return f"pgsluice apply --retries 20, or end who is in the way: {ends}"


def _mend(exc: psycopg.Error) -> str:
    if exc.sqlstate in CHANGED_BY_HAND:
        return "the database may have been changed by hand: pgsluice drift"
    return "mend the cause, then: pgsluice apply"
