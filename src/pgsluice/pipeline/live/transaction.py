"""One migration in one transaction, together with its row in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.pipeline.live.failure import At, failure
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.record import Recorder, require_lock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

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
        raise failure(
            exc, script, target=target, at=attempt.at, session=session, outcome=NOT_APPLIED
        ) from exc


class _Attempt:
    """Runs the file once; `at` is what it came to."""

    def __init__(self, session: LiveSession, target: str, script: Script) -> None:
        self._session = session
        self._script = script
        self._recorder = Recorder(session.conn, target, script)
        self.at: int | At = At.RECORD

    def __call__(self) -> None:
        conn, total = self._session.conn, len(self._script.statements)
        try:
            self.at = At.RECORD
            conn.execute(self._script.begin.encode())
            self._run_statements(0, self._script.modes)
            self.at = At.RECORD
            with self._watched():
                require_lock(conn)
                self._recorder.begin()
            self._run_statements(self._script.modes, total)
            self.at = At.RECORD
            with self._watched():
                self._recorder.done(total)
            self._session.stop.check()
            self.at = At.COMMIT
            with self._watched():
                conn.execute("commit")
        finally:
            self._session.roll_back()

    def _run_statements(self, first: int, last: int) -> None:
        name, total = self._script.name, len(self._script.statements)
        for number in range(first, last):
            self.at = number
            label = f"{name}: statement {number + 1} of {total}"
            self._session.run(self._script.statements[number], label=label)

    def _watched(self) -> AbstractContextManager[None]:
        return self._session.watcher.watches(f"{self._script.name}: {self.at}")
