"""One migration without a transaction of its own: each statement recorded, resumed where it stopped."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.errors import RefusedError
from pgsluice.pipeline.live.failure import failure
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.record import Recorder, require_lock
from pgsluice.pipeline.live.resume import Fate, is_judged, judge
from pgsluice.pipeline.live.script import Mode, is_concurrent, mode_of, shortened, statement_digest
from pgsluice.pipeline.live.session import CONCURRENT_PATIENCE
from pgsluice.pipeline.proof import server_lines
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.live.ledger import Entry
    from pgsluice.pipeline.live.script import Script
    from pgsluice.pipeline.live.session import LiveSession
    from pgsluice.pipeline.sources.parse import Parsed

MUST_BE_OUTSIDE: Final = frozenset({"25001", "2D000"})
"""Active transaction, invalid transaction termination: what the server says to what runs without one."""


class Resume(StrEnum):
    """What the user says of a statement whose end nobody can tell."""

    RERUN = "rerun"
    SKIP = "skip"


def refuse_edited(script: Script, entry: Entry) -> None:
    """Refuse to go on with a file whose finished part is no longer the one that ran.

    Raises:
        RefusedError: Names the first statement that differs.
    """
    if script.transactional:
        raise RefusedError(
            f"{script.file.name} was begun without a transaction, and now says that it needs one",
            hint=f"put back its first line: -- atlas:txmode none; {entry.statements_done} of its"
            " statements are done",
        )
    done = entry.statement_digests[: entry.statements_done]
    now = script.statement_digests
    for number, digest in enumerate(done):
        if number >= len(now) or now[number] != digest:
            place = script.location(script.statements[number]) if number < len(now) else None
            raise RefusedError(
                f"statement {number + 1} of {script.name} is done in the database, and was edited since",
                location=place,
                details=(f"{entry.statements_done} of {entry.statements_total} statements are done",),
                hint="put it back as it ran; only statements after those may be edited",
            )


class Steps:
    """One run of such a file; `session.conn` holds the lock."""

    def __init__(self, session: LiveSession, target: str, script: Script) -> None:
        self._session = session
        self._conn = session.conn
        self._script = script
        self._recorder = Recorder(session.conn, target, script)
        self._own_timeout = False

    def run(self, entry: Entry | None, *, resume: Resume | None) -> int:
        """Run what is not done yet.

        Args:
            entry: The file's row when it was begun before.
            resume: What to do with a statement that nobody can judge.

        Returns:
            How many statements were done before.

        Raises:
            PipelineError: A statement failed; what is done is recorded.
            RefusedError: Nobody can tell whether the statement that was running came to its end.
            StoppedError: A signal came.
            psycopg.OperationalError: The connection is gone.
        """
        total = len(self._script.statements)
        start = 0
        if entry is not None:
            with self._translated(min(entry.statements_done, total - 1)):
                start = self._pick_up(entry, resume)
        self._record(start, is_new=True)
        for number in range(start, total):
            try:
                self._session.stop.check()
            except StoppedError as exc:
                raise StoppedError(
                    f"{self._session.stop.word} in {self._script.name}; {number} of {total} statements of"
                    " this file are done and recorded",
                    signum=exc.signum,
                ) from exc
            self._step(number)
        return start

    def _pick_up(self, entry: Entry, resume: Resume | None) -> int:
        """Make the session what it was, and clear away what the last statement left; gives where to go on."""
        done = entry.statements_done
        for statement in self._script.statements[:done]:
            if mode_of(statement) is Mode.SESSION:
                self._run_session(statement)
        if entry.running is None:
            return done + (resume is Resume.SKIP)
        (statement,) = parse_file(SourceFile(self._script.file.name, entry.running))
        verdict = judge(self._conn, statement, failed=entry.error is not None)
        digests = self._script.statement_digests[done : done + 1]
        is_same = digests == [statement_digest(entry.running)]
        if verdict.fate is Fate.UNKNOWN and resume is None:
            raise self._undecided(entry, statement)
        is_done = resume is Resume.SKIP or (verdict.fate is Fate.DONE and resume is None)
        if is_done and resume is None and not is_same:
            raise RefusedError(
                f"statement {done + 1} of {self._script.name} came to its end before it was edited",
                details=(shortened(entry.running),),
                hint="put it back as it ran, or say that what stands there now shall run:"
                " pgsluice apply --resume rerun",
            )
        if resume is not Resume.SKIP:
            for text in verdict.first:
                self._session.reporter.note(f"{self._script.name}: {text}")
                self._concurrently(text, label=f"{self._script.name}: clearing up")
        return done + is_done

    def _undecided(self, entry: Entry, statement: Parsed) -> RefusedError:
        number = entry.statements_done + 1
        how = f"failed: {entry.error}" if entry.error else "was started and not seen to end"
        return RefusedError(
            f"statement {number} of {self._script.name} {how}; nobody but you can tell how far it got",
            details=(shortened(statement.text),),
            hint="look at what it changed, then: pgsluice apply --resume rerun, or --resume skip",
        )

    def _step(self, number: int) -> None:
        with self._translated(number):
            self._run(number, self._script.statements[number])

    @contextmanager
    def _translated(self, number: int) -> Iterator[None]:
        """Record what the server says against a statement, and tell the user."""
        try:
            yield
        except psycopg.Error as exc:
            if self._conn.closed:
                raise
            self._session.roll_back()
            self._record_failure(exc)
            raise failure(
                exc, self._script, number=number, session=self._session, outcome=self._progress(number)
            ) from exc

    def _run(self, number: int, statement: Parsed) -> None:
        """Run one statement in its mode."""
        mode = mode_of(statement)
        if mode is Mode.SESSION:
            self._run_session(statement)
            self._record(number + 1)
            return
        if mode is Mode.INSIDE:
            try:
                self._session.retry(lambda: self._run_inside(number, statement), label=self._label(number))
                return
            except psycopg.Error as exc:
                if exc.sqlstate not in MUST_BE_OUTSIDE:
                    raise
        self._run_outside(number, statement)

    def _run_session(self, statement: Parsed) -> None:
        self._own_timeout |= statement.node.get("name") == "lock_timeout"
        self._session.execute(statement.text, label=f"{self._script.name}: {shortened(statement.text)}")

    def _run_inside(self, number: int, statement: Parsed) -> None:
        try:
            self._conn.execute("begin")
            require_lock(self._conn)
            self._session.execute(statement.text, label=self._label(number))
            self._recorder.done(number + 1)
            self._conn.execute("commit")
        finally:
            self._session.roll_back()

    def _run_outside(self, number: int, statement: Parsed) -> None:
        is_first = True

        def attempt() -> None:
            nonlocal is_first
            first = () if is_first else judge(self._conn, statement, failed=True).first
            is_first = False
            for text in first:
                self._concurrently(text, label=f"{self._label(number)}: clearing up")
            with self._conn.transaction():
                require_lock(self._conn)
                self._recorder.run(statement.text)
            if is_concurrent(statement):
                self._concurrently(statement.text, label=self._label(number))
            else:
                self._session.execute(statement.text, label=self._label(number))

        if is_judged(statement):
            self._session.retry(attempt, label=self._label(number))
        else:
            attempt()
        self._record(number + 1)

    def _concurrently(self, text: str, *, label: str) -> None:
        """Run a statement that makes nobody queue behind it, so that it may wait longer."""
        if self._own_timeout:
            self._session.execute(text, label=label)
            return
        self._session.set_lock_timeout(CONCURRENT_PATIENCE)
        try:
            self._session.execute(text, label=label)
        finally:
            if not self._conn.closed:
                self._session.set_lock_timeout()

    def _record(self, done: int, *, is_new: bool = False) -> None:
        with self._conn.transaction():
            require_lock(self._conn)
            if is_new:
                self._recorder.begin()
            self._recorder.done(done)

    def _record_failure(self, exc: psycopg.Error) -> None:
        """Say in the ledger what the server said."""
        error = server_lines(exc)[0]
        try:
            with self._conn.transaction():
                self._recorder.failed(error)
        except psycopg.errors.QueryCanceled:  # a cancel request that came late
            with self._conn.transaction():
                self._recorder.failed(error)

    def _label(self, number: int) -> str:
        total = len(self._script.statements)
        text = shortened(self._script.statements[number].text, 60)
        return f"{self._script.name}: statement {number + 1} of {total}: {text}"

    def _progress(self, done: int) -> str:
        total = len(self._script.statements)
        return f"{done} of {total} statements of this file are done and recorded"
