"""`apply`: refuse what does not fit before anything runs, then run what is pending, file by file."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.errors import InputError, RefusedError, UnreachableError
from pgsluice.pipeline.finding import TargetFiles
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.live.database import connect, shown
from pgsluice.pipeline.live.elsewhere import refuse_recorded_elsewhere
from pgsluice.pipeline.live.failure import own_failure
from pgsluice.pipeline.live.interrupt import StoppedError
from pgsluice.pipeline.live.ledger import (
    LedgerState,
    ensure_ledger,
    ledger_lock,
    read_ledger,
    read_lock_holder,
)
from pgsluice.pipeline.live.record import require_lock
from pgsluice.pipeline.live.requirements import check_requires, check_rights, check_roles, check_server
from pgsluice.pipeline.live.script import Script, read_script
from pgsluice.pipeline.live.session import Patience, open_session
from pgsluice.pipeline.live.status import progress, read_status, refuse
from pgsluice.pipeline.live.steps import Resume, Steps, refuse_edited
from pgsluice.pipeline.live.transaction import run_transaction
from pgsluice.pipeline.lockfile import read_lock
from pgsluice.pipeline.proof import server_lines
from pgsluice.pipeline.sum_check import verify_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.live.interrupt import Stop
    from pgsluice.pipeline.live.ledger import Entry
    from pgsluice.pipeline.live.session import LiveSession, Reporter

LOOKS_FOR_LOCK: Final = 2
"""Each is a transaction, for which a pooler may choose another session."""
RECONNECT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """What the user may choose; `to` is a version or a file's name, `resume` for what nobody can judge."""

    to: str | None = None
    dry_run: bool = False
    resume: Resume | None = None
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, slots=True)
class AppliedFile:
    """A file that ran, or in a dry run one that would; `done_before` counts statements of an earlier run."""

    target: str
    filename: str
    statements: int
    transactional: bool
    hazards: tuple[str, ...] = ()
    done_before: int = 0
    duration_s: float = 0.0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be done for one target; `start` is where the first script goes on."""

    target: Target
    scripts: tuple[Script, ...]
    dirty: Entry | None
    start: int
    opened: tuple[str, ...]


def apply_targets(
    project: Project,
    targets: Sequence[Target],
    *,
    url: str,
    options: ApplyOptions,
    reporter: Reporter,
    stop: Stop,
) -> tuple[AppliedFile, ...]:
    """Bring a database to the newest migration of each target, or to `options.to`.

    Args:
        project: Where the targets are from.
        targets: All are checked before the first is touched.
        url: The database.
        options: What the user chose.
        reporter: Told of progress and of each file that is done.
        stop: Ends the run early.

    Returns:
        What ran, in order; in a dry run, what would.

    Raises:
        RefusedError: Files are not the recorded ones, or the ledger and the folder do not fit.
        UnreachableError: No connection, no rights, a missing role or extension, no lock.
        FindingError: A migration failed.
        StoppedError: A signal came.
    """
    for target in targets:
        refuse_broken_sum(project, target)
        _resolve(project, target, options.to)
    with open_session(url, reporter=reporter, stop=stop, patience=options.patience) as session:
        if (note := check_server(session.conn, project, url)) is not None:
            reporter.note(note)
        with own_errors(session), nullcontext() if options.dry_run else _locked(session):
            for _ in range(0 if options.dry_run else LOOKS_FOR_LOCK):
                require_lock(session.conn)
            work = [_plan(project, target, session=session, options=options) for target in targets]
            if options.dry_run:
                return tuple(_foreseen(each, script) for each in work for script in each.scripts)
            return _run_all(project, session, work, options=options)


def refuse_broken_sum(project: Project, target: Target) -> None:
    """Refuse a folder that is not the one that `atlas.sum` records.

    Raises:
        RefusedError: With what `verify` says, and where.
    """
    lock = read_lock(target.migrations_dir)
    found = list(verify_sum(TargetFiles(project, target), opened=lock.open if lock is not None else ()))
    if not found:
        return
    first = found[0]
    others = (f"and {len(found) - 1} more: pgsluice verify",) if len(found) > 1 else ()
    place = None if str(first.location) in first.message else first.location
    raise RefusedError(first.message, location=place, details=(*first.details, *others), hint=first.hint)


def _resolve(project: Project, target: Target, to: str | None) -> str | None:
    """The file name that `--to` means."""
    if to is None:
        return None
    history = read_history(target.migrations_dir)
    for migration in history:
        if to in (migration.version, migration.filename, migration.filename.removesuffix(".sql")):
            return migration.filename
    names = [migration.filename for migration in history]
    near = get_close_matches(to, names, n=3, cutoff=0.3) or names[-3:]
    raise InputError(
        f"no migration of {project.relative(target.migrations_dir)} is version {to}",
        details=tuple(near),
        hint=f"--to {near[0].removesuffix('.sql')}" if near else None,
    )


def _locked(session: LiveSession) -> AbstractContextManager[None]:
    """The lock, waited for while no signal comes."""

    def say(text: str) -> None:
        session.stop.check()
        session.reporter.progress(text)

    return ledger_lock(session.conn, wait_s=session.patience.wait_s, progress=say)


def _plan(project: Project, target: Target, *, session: LiveSession, options: ApplyOptions) -> _Work:
    """What to run for one target, after all that can be checked without running it."""
    status = read_status(project, target, session.conn)
    refuse(status)
    last = _resolve(project, target, options.to)
    dirty = status.dirty
    chosen = [dirty, *status.pending] if dirty is not None else status.pending
    scripts = tuple(
        read_script(file.migration, project)
        for file in chosen
        if file.migration is not None and (last is None or os.fsencode(file.filename) <= os.fsencode(last))
    )
    entry = dirty.entry if dirty is not None and scripts else None
    start = 0
    if entry is not None:
        refuse_edited(scripts[0], entry)
        start = Steps(session, target.name, scripts[0]).foresee(entry, resume=options.resume)
        session.reset()
    elif options.resume is not None:
        raise InputError(
            f"nothing is to be resumed in target {target.name}: no migration stopped half-way",
            hint="pgsluice apply",
        )
    if dirty is not None and not scripts:
        session.reporter.note(f"{dirty.path} stopped half-way; to go on with it: pgsluice apply")
    if scripts:
        if all(file.entry is None for file in status.files):
            refuse_recorded_elsewhere(session.conn, project, target, scripts=scripts)
        check_rights(session.conn, scripts)
        check_requires(session.conn, project, target, url=session.url)
        check_roles(session.conn, scripts)
    lock = read_lock(target.migrations_dir)
    return _Work(target, scripts, entry, start, lock.open if lock is not None else ())


def _foreseen(work: _Work, script: Script) -> AppliedFile:
    done = work.start if work.scripts[0] is script else 0
    return AppliedFile(
        work.target.name,
        script.name,
        len(script.statements),
        script.transactional,
        hazards=hazards_of(script),
        done_before=done,
        is_open=script.name in work.opened,
    )


def hazards_of(script: Script) -> tuple[str, ...]:
    """The hazards that a generated file names in its comments."""
    marks = (line.strip() for line in script.file.text.split("\n") if line.startswith("-- hazard "))
    return tuple(dict.fromkeys(mark.removeprefix("-- hazard ") for mark in marks))


def _run_all(
    project: Project, session: LiveSession, work: Sequence[_Work], *, options: ApplyOptions
) -> tuple[AppliedFile, ...]:
    if any(each.scripts for each in work):
        ensure_ledger(session.conn)
    applied: list[AppliedFile] = []
    for each in work:
        for script in each.scripts:
            entry = each.dirty if script is each.scripts[0] else None
            try:
                session.stop.check()
                applied.append(_run(session, each, script, entry=entry, resume=options.resume))
                session.reset()
            except StoppedError as exc:
                exc.details = _so_far(applied)
                raise
            except psycopg.Error as exc:
                if not session.conn.closed:
                    error = own_failure(exc, session)
                    error.details = (*error.details, *_so_far(applied))
                    raise error from exc
                raise _lost(exc, session, each.target.name, script) from exc
    return tuple(applied)


def _run(
    session: LiveSession, work: _Work, script: Script, *, entry: Entry | None, resume: Resume | None
) -> AppliedFile:
    started = time.monotonic()
    before = 0
    if script.transactional:
        run_transaction(session, work.target.name, script)
    else:
        before = Steps(session, work.target.name, script).run(entry, resume=resume)
    done = AppliedFile(
        work.target.name,
        script.name,
        len(script.statements),
        script.transactional,
        done_before=before,
        duration_s=time.monotonic() - started,
        is_open=script.name in work.opened,
    )
    session.reporter.applied(script.name, statements=done.statements - before, duration_s=done.duration_s)
    return done


@contextmanager
def own_errors(session: LiveSession) -> Iterator[None]:
    """Tell what the server refuses `apply` itself as an error of ours."""
    try:
        yield
    except psycopg.Error as exc:
        if session.conn.closed:
            raise
        raise own_failure(exc, session) from exc


def _so_far(applied: Sequence[AppliedFile]) -> tuple[str, ...]:
    return tuple(f"applied before: {file.filename}" for file in applied)


def _lost(exc: psycopg.Error, session: LiveSession, target: str, script: Script) -> UnreachableError:
    """The connection went away in the middle of a file: look at what the ledger says now."""
    session.reporter.progress("the connection is gone; asking the ledger what became of the file")
    return UnreachableError(
        f"the connection to {shown(session.url)} was lost in {script.name}",
        details=(*server_lines(exc), *_what_is_known(session, target, script)),
        hint="pgsluice status, then: pgsluice apply",
    )


def _what_is_known(session: LiveSession, target: str, script: Script) -> tuple[str, ...]:
    try:
        conn = connect(session.url, within_s=RECONNECT_S)
    except UnreachableError as exc:
        return ("the server does not answer, so it is not known what became of the file", *exc.details)
    with conn:
        holder = read_lock_holder(conn)  # before the ledger, which the session may still write until it ends
        entry = next((one for one in read_ledger(conn, target) if one.filename == script.name), None)
    still = (f"the server still works on it: {holder}",) if holder is not None else ()
    if entry is not None and entry.state is not LedgerState.DIRTY:
        return (f"{script.name} was committed",)
    if entry is not None:
        return (progress(entry, at_work=holder is not None), *still)
    if holder is not None:
        return (f"{script.name} is not committed so far", *still)
    return (f"{script.name} was rolled back, nothing of it is in the database",)
