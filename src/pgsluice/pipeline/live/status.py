"""The folder beside the ledger: what ran, what is to come, and what does not fit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgsluice.errors import RefusedError
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.live.ledger import LedgerState, file_digest, read_ledger, read_lock_holder
from pgsluice.pipeline.live.script import shortened
from pgsluice.pipeline.lockfile import read_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.live.ledger import Entry, LockHolder

BAD: frozenset[LedgerState] = frozenset(
    {LedgerState.DIRTY, LedgerState.CHANGED, LedgerState.MISSING, LedgerState.OUT_OF_ORDER}
)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One migration: `migration` is None when the folder lacks it, `entry` when the ledger does.

    `path` is the file's name for messages; `digest` is the file's own as it is now; `at_work` says that
    a run holds the database.
    """

    filename: str
    path: str
    state: LedgerState
    migration: Migration | None
    entry: Entry | None
    digest: str | None
    is_open: bool = False
    at_work: bool = False

    @property
    def detail(self) -> str:
        """When and by whom, or how far."""
        entry = self.entry
        if entry is None:
            return "sorts before the last one that was applied" if self.state in BAD else ""
        if entry.state is LedgerState.DIRTY:
            return progress(entry, at_work=self.at_work)
        when = entry.finished_at or entry.started_at
        text = f"{when:%Y-%m-%d %H:%M:%S} UTC by {entry.applied_by}"
        if self.state is LedgerState.CHANGED:
            return f"{text} as {short(entry.digest)}, the file now hashes to {short(self.digest)}"
        return text


@dataclass(frozen=True, slots=True)
class Status:
    """One target on one database; `run` is the session that works on the database now."""

    target: str
    files: tuple[FileStatus, ...]
    run: LockHolder | None = None

    @property
    def pending(self) -> tuple[FileStatus, ...]:
        """What `apply` would run."""
        return tuple(file for file in self.files if file.state is LedgerState.PENDING)

    @property
    def dirty(self) -> FileStatus | None:
        """The file that was begun and did not come to its end."""
        return next((file for file in self.files if file.state is LedgerState.DIRTY), None)

    @property
    def problems(self) -> tuple[FileStatus, ...]:
        """What does not fit; a file that a run is at work on does."""
        bad = BAD - {LedgerState.DIRTY} if self.run is not None else BAD
        return tuple(file for file in self.files if file.state in bad)

    def count(self, state: LedgerState) -> int:
        """How many files are in a state."""
        return sum(file.state is state for file in self.files)


def read_status(project: Project, target: Target, conn: psycopg.Connection[Any]) -> Status:
    """Compare a target's folder with the ledger of a database; nothing is written.

    Raises:
        InputError: The folder's files cannot be read as migrations.
        UnreachableError: Our role may not read the ledger.
    """
    lock = read_lock(target.migrations_dir)
    history = read_history(target.migrations_dir)
    before = _other_run(conn)
    entries = read_ledger(conn, target.name)
    run = before or _other_run(conn)  # one that began or ended meanwhile leaves no file as given up
    folder = project.relative(target.migrations_dir)
    opened = lock.open if lock is not None else ()
    files = compare(history, entries, folder=folder, opened=opened, at_work=run is not None)
    return Status(target.name, files, run)


def compare(
    history: Sequence[Migration],
    entries: Sequence[Entry],
    *,
    folder: str,
    opened: Sequence[str] = (),
    at_work: bool = False,
) -> tuple[FileStatus, ...]:
    """The state of every file that the folder or the ledger has, in the order in which they run."""
    migrations = {migration.filename: migration for migration in history}
    recorded = {entry.filename: entry for entry in entries}
    last = max(map(os.fsencode, recorded), default=b"")
    found = []
    for name in sorted({*migrations, *recorded}, key=os.fsencode):
        migration, entry = migrations.get(name), recorded.get(name)
        digest = file_digest(migration) if migration is not None and entry is not None else None
        state = _state(name, entry, digest=digest, last=last)
        path, is_open = f"{folder}/{name}", name in opened
        found.append(
            FileStatus(name, path, state, migration, entry, digest, is_open=is_open, at_work=at_work)
        )
    return tuple(found)


def refuse(status: Status) -> None:
    """Refuse to go on with a database whose ledger and folder do not fit; dirty files are for `resume`.

    Raises:
        RefusedError: Says which file, what is wrong, and lists the others.
    """
    wrong = [file for file in status.files if file.state in BAD - {LedgerState.DIRTY}]
    if not wrong:
        return
    first = wrong[0]
    others = tuple(f"also {file.state}: {file.path}" for file in wrong[1:])
    recorded = [file.filename for file in status.files if file.entry is not None]
    match first.state:
        case LedgerState.CHANGED:
            message = f"{first.path} was changed after it was applied here"
            details: tuple[str, ...] = (f"applied {first.detail}",)
            if first.is_open:
                details = (*details, "it is still open, and a build made it again; release before you apply")
            hint = f"git log --patch -- {first.path}"
        case LedgerState.MISSING if first.entry is not None and first.entry.state is LedgerState.DIRTY:
            message = f"{first.path} stopped half-way here, and the folder lacks it"
            details = (first.detail,)
            hint = f"git log --diff-filter=D --summary -- {first.path}"
        case LedgerState.MISSING:
            message = f"{first.path} was applied here, and the folder lacks it"
            details = (f"applied {first.detail}",)
            hint = f"git log --diff-filter=D --summary -- {first.path}"
        case _:
            message = f"{first.path} sorts before {recorded[-1]}, which was applied here already"
            details = ()
            hint = "pgsluice rebase"
    raise RefusedError(message, details=(*details, *others), hint=hint)


def progress(entry: Entry, *, at_work: bool = False) -> str:
    """How far a file without a transaction came, as exactly as the ledger knows."""
    number = entry.statements_done + 1
    done = f"{entry.statements_done} of {entry.statements_total} statements done"
    text = f" ({shortened(entry.running)})" if entry.running is not None else ""
    if entry.error is not None:
        left = (
            ", and may have left something behind" if entry.running is not None else ", and was rolled back"
        )
        return f"{done}; statement {number}{text} failed{left}: {entry.error}"
    if at_work:
        return f"{done}; statement {number}{text} may be running now"
    if entry.running is not None:
        return f"{done}; statement {number}{text} was started, and may or may not have come to its end"
    return f"{done}; statement {number} was not started, or was rolled back"


def short(digest: str | None) -> str:
    """A digest as messages show it."""
    return "nothing" if digest is None else f"{digest[:9]}…"


def _other_run(conn: psycopg.Connection[Any]) -> LockHolder | None:
    """The run at work on this database, unless it is our own."""
    holder = read_lock_holder(conn)
    return None if holder is None or holder.pid == conn.info.backend_pid else holder


def _state(name: str, entry: Entry | None, *, digest: str | None, last: bytes) -> LedgerState:
    if entry is None:
        return LedgerState.OUT_OF_ORDER if os.fsencode(name) < last else LedgerState.PENDING
    if digest is None:
        return LedgerState.MISSING
    if entry.state is LedgerState.DIRTY:
        return LedgerState.DIRTY
    return entry.state if entry.digest == digest else LedgerState.CHANGED
