"""One migration without a transaction of its own: each statement recorded, resumed where it stopped."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.errors import RefusedError
from pgsluice.pipeline.live.failure import failure, unrecorded
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.ledger import LEDGER
from pgsluice.pipeline.live.record import Recorder, require_lock
from pgsluice.pipeline.live.resume import Fate, Verdict, is_judged, judge
from pgsluice.pipeline.live.script import (
    Mode,
    is_concurrent,
    makes_temporary,
    mode_of,
    shortened,
    statement_digest,
)
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
        self._target = target
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
        before = start = entry.statements_done if entry is not None else 0
        try:
            if entry is not None:
                with self._translated(before):
                    before = start = self._pick_up(entry, resume)
            self._record(start, is_new=True)
            for number in range(start, total):
                start = number
                self._session.stop.check()
                with self._translated(number):
                    self._run(number, self._script.statements[number])
        except StoppedError as exc:
            word, name = self._session.stop.word, self._script.name
            raise StoppedError(
                f"{word} in {name}; {start} of {total} statements of this file are done and recorded",
                signum=exc.signum,
                location=exc.location,
            ) from exc
        return before

    def foresee(self, entry: Entry, *, resume: Resume | None) -> int:
        """Where `run` would go on; the session is left with the settings of the part that is done.

        Raises:
            PipelineError: A setting of the part that is done cannot be made again.
            RefusedError: What `run` would raise.
        """
        with self._translated(entry.statements_done, is_recorded=False):
            self._make_settings(entry)
            return self._decide(entry, resume)[0]

    def _pick_up(self, entry: Entry, resume: Resume | None) -> int:
        """Make the session what it was, and clear away what the last statement left; gives where to go on."""
        self._make_settings(entry)
        for number, statement in enumerate(self._script.statements[: entry.statements_done], start=1):
            if (name := makes_temporary(statement)) is not None:
                self._session.reporter.note(
                    f"{self._script.name}: statement {number} made temporary relation {name},"
                    " which went with the session of the earlier run"
                )
        start, first = self._decide(entry, resume)
        if first and entry.running is not None:
            self._begun(entry.running)
        for text in first:
            self._session.reporter.note(f"{self._script.name}: {text}")
            self._concurrently(text, label=f"{self._script.name}: clearing up")
        return start

    def _make_settings(self, entry: Entry) -> None:
        for statement in self._script.statements[: entry.statements_done]:
            if mode_of(statement) is Mode.SESSION:
                self._run_session(statement)

    def _decide(self, entry: Entry, resume: Resume | None) -> tuple[int, tuple[str, ...]]:
        """Where to go on, and what to clear away before."""
        done, total = entry.statements_done, len(self._script.statements)
        if entry.running is None:
            return min(done + (resume is Resume.SKIP), total), ()
        (statement,) = parse_file(SourceFile(self._script.file.name, entry.running))
        verdict = judge(self._conn, statement, failed=entry.error is not None)
        if verdict.fate is Fate.UNKNOWN and resume is None:
            raise self._undecided(entry, statement)
        if resume is Resume.SKIP:
            return min(done + 1, total), ()
        is_done = verdict.fate is Fate.DONE and resume is None
        digests = self._script.statement_digests[done : done + 1]
        if is_done and digests != [statement_digest(entry.running)]:
            raise RefusedError(
                f"statement {done + 1} of {self._script.name} came to its end before it was edited",
                details=(shortened(entry.running),),
                hint="put it back as it ran, or say that what stands there now shall run:"
                " pgsluice apply --resume rerun",
            )
        return done + is_done, verdict.first

    def _undecided(self, entry: Entry, statement: Parsed) -> RefusedError:
        number = entry.statements_done + 1
        how = f"failed: {entry.error}" if entry.error else "was started and not seen to end"
        return RefusedError(
            f"statement {number} of {self._script.name} {how}; nobody but you can tell how far it got",
            details=(shortened(statement.text),),
            hint="look at what it changed, then: pgsluice apply --resume rerun, or --resume skip",
        )

    @contextmanager
    def _translated(self, number: int, *, is_recorded: bool = True) -> Iterator[None]:
        """Record what the server says against a statement, and tell the user."""
        try:
            yield
        except psycopg.Error as exc:
            if self._conn.closed:
                raise
            self._session.roll_back()
            if is_recorded:
                self._record_failure(exc)
            number = min(number, len(self._script.statements) - 1)
            raise failure(
                exc,
                self._script,
                target=self._target,
                at=number,
                session=self._session,
                outcome=self._progress(number),
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
        self._session.run(statement, label=f"{self._script.name}: {shortened(statement.text)}")
        self._own_timeout |= "lock_timeout" in statement.text.lower()

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
            verdict = Verdict(Fate.AGAIN) if is_first else judge(self._conn, statement, failed=True)
            is_first = False
            for text in verdict.first:
                self._concurrently(text, label=f"{self._label(number)}: clearing up")
            if verdict.fate is Fate.DONE:
                return
            self._begun(statement.text)
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

    def _begun(self, text: str) -> None:
        """Record that a statement runs whose end will be recorded apart from it."""
        with self._conn.transaction():
            require_lock(self._conn)
            self._recorder.run(text)

    def _record(self, done: int, *, is_new: bool = False) -> None:
        """Record what is done; a statement that ended does not fail because its record has to wait."""

        def write() -> None:
            with self._session.watcher.watches(label), self._conn.transaction():
                require_lock(self._conn)
                if is_new:
                    self._recorder.begin()
                self._recorder.done(done)

        def attempt() -> None:
            try:
                write()
            except psycopg.errors.QueryCanceled:  # a cancel request that came late
                write()

        label = f"{self._script.name}: its record in {LEDGER}"
        try:
            self._session.retry(attempt, label=label)
        except psycopg.Error as exc:
            if self._conn.closed:
                raise
            raise unrecorded(exc, self._script, done=done, session=self._session) from exc

    def _record_failure(self, exc: psycopg.Error) -> None:
        """Say in the ledger what the server said; what happened is told in any case."""
        error = server_lines(exc)[0]

        def write() -> None:
            with self._conn.transaction():
                self._recorder.failed(error)

        try:
            try:
                write()
            except psycopg.errors.QueryCanceled:  # a cancel request that came late
                write()
        except psycopg.Error as other:
            if self._conn.closed:
                raise
            self._session.reporter.note(
                f"{self._script.name}: {LEDGER} does not hold this failure: {server_lines(other)[0]}"
            )

    def _label(self, number: int) -> str:
        total = len(self._script.statements)
        text = shortened(self._script.statements[number].text, 60)
        return f"{self._script.name}: statement {number + 1} of {total}: {text}"

    def _progress(self, done: int) -> str:
        total = len(self._script.statements)
        return f"{done} of {total} statements of this file are done and recorded"
