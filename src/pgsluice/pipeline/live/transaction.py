"""One migration in one transaction, together with its row in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.pipeline.live.failure import failure
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.record import Recorder, require_lock

if TYPE_CHECKING:
    from pgsluice.pipeline.live.script import Script
    from pgsluice.pipeline.live.session import LiveSession

NOT_APPLIED: Final = "rolled back, nothing of this file is in the database"


def run_transaction(session: LiveSession, target: str, script: Script) -> None:
    """Run a file: afterwards all of it is there and recorded, or nothing is.

    Raises:
        PipelineError: A statement failed, or no lock was to be had; the transaction is rolled back.
        StoppedError: A signal came; the same.
        psycopg.OperationalError: The connection is gone, and with it what is known.
    """
    attempt = _Attempt(session, target, script)
    try:
        session.retry(attempt, label=script.name)
    except StoppedError as exc:
        raise StoppedError(f"{session.stop.word} in {script.name}; {NOT_APPLIED}", signum=exc.signum) from exc
    except psycopg.Error as exc:
        if session.conn.closed:
            raise
        raise failure(exc, script, number=attempt.number, session=session, outcome=NOT_APPLIED) from exc


class _Attempt:
    """Runs the file once; `number` is the statement that it came to, None for the commit."""

    def __init__(self, session: LiveSession, target: str, script: Script) -> None:
        self._session = session
        self._script = script
        self._recorder = Recorder(session.conn, target, script)
        self.number: int | None = None

    def __call__(self) -> None:
        conn = self._session.conn
        try:
            conn.execute("begin")
            require_lock(conn)
            self._recorder.begin()
            self._run_statements()
            self._recorder.done(len(self._script.statements))
            self._session.stop.check()
            conn.execute("commit")
        finally:
            self._session.roll_back()

    def _run_statements(self) -> None:
        script, total = self._script, len(self._script.statements)
        for number, statement in enumerate(script.statements):
            self.number = number
            self._session.execute(statement.text, label=f"{script.name}: statement {number + 1} of {total}")
        self.number = None
