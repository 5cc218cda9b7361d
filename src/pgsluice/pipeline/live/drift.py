"""Drift: how a real database differs from what its migrations made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.check import find_servers
from pgsluice.pipeline.devdb import bootstrap, open_dev
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.live.catalog import open_reader, read_live
from pgsluice.pipeline.live.compare import Comparison, compare_live, without_parts
from pgsluice.pipeline.live.ledger import LEDGER, LedgerState, file_digest
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.replay import history_digest, replay
from pgsluice.pipeline.states import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.live.catalog import LiveCatalog, Outside
    from pgsluice.pipeline.live.ledger import Entry
    from pgsluice.pipeline.snapshot import Difference, Snapshot

NAMES_IN_A_NOTE: Final = 5


@dataclass(frozen=True, slots=True)
class Drift:
    """What a comparison of one database with one target's migrations found.

    `place` is the database, `server` what the migrations were replayed on, `dev` its specification, `last`
    the file name of the last of them. `shown` are the differences that stand for themselves, each with the
    number of others that go with it. `ignored` and `outside` were not compared. `runner` is the role whose
    objects count as the migrations' own.
    """

    target: str
    place: str
    server: str
    dev: str
    last: str | None
    runner: str
    differences: tuple[Difference, ...]
    shown: tuple[tuple[Difference, int], ...]
    ignored: tuple[str, ...]
    outside: tuple[Outside, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A comparison on one server: its description, what the history gave there, what differs."""

    server: str
    expected: Snapshot
    comparison: Comparison


def find_drift(
    project: Project,
    target: Target,
    url: str,
    *,
    to: str | None = None,
    progress: Callable[[str], None],
) -> Drift:
    """Compare a real database with the migrations that its ledger says it has, or all when it has no ledger.

    Args:
        project: Its dev server replays the migrations, or a server of the database's own major where this
            machine has one: then one printer prints both sides.
        target: What is compared.
        url: The database; it is only read.
        to: Compare with the migrations up to this version instead.

    Raises:
        InputError: There is no such version, or the migrations do not run.
        UnreachableError: The database or the dev server cannot be reached or read.
    """
    history = read_history(target.migrations_dir)
    progress(f"reading the catalog of target {target.name}")
    with open_reader(url, progress=progress) as conn:
        live = read_live(conn, url, target)
    chosen = up_to(history, to) if to is not None else applied(history, live.entries)
    return drift_of(
        project,
        target,
        live,
        history=chosen,
        notes=ledger_notes(history, live.entries, live.snapshot.runner),
        progress=progress,
    )


def drift_of(
    project: Project,
    target: Target,
    live: LiveCatalog,
    *,
    history: Sequence[Migration],
    notes: Sequence[str] = (),
    progress: Callable[[str], None],
) -> Drift:
    """Compare what was read of a database with what a history makes.

    Raises:
        InputError: The migrations do not run.
        UnreachableError: No dev server can be reached.
    """
    dev, replayed = _compare(project, target, live, history=history, progress=progress)
    comparison = replayed.comparison
    return Drift(
        target=target.name,
        place=live.place,
        server=replayed.server,
        dev=dev,
        last=history[-1].filename if history else None,
        runner=live.snapshot.runner,
        differences=comparison.differences,
        shown=without_parts(comparison.differences, replayed.expected, live.snapshot),
        ignored=live.snapshot.ignored,
        outside=live.outside,
        notes=(*notes, *comparison.notes),
    )


def up_to(history: Sequence[Migration], version: str) -> tuple[Migration, ...]:
    """The history up to a version, given as such or as a file's name.

    Raises:
        InputError: No migration has it.
    """
    for number, migration in enumerate(history):
        if version in (migration.version, migration.filename, migration.filename.removesuffix(".sql")):
            return tuple(history[: number + 1])
    known = [migration.version for migration in history]
    raise InputError(
        f"no migration has version {version}",
        hint=f"the last versions are {', '.join(known[-NAMES_IN_A_NOTE:])}"
        if known
        else "pgsluice build NAME",
    )


def applied(history: Sequence[Migration], entries: Sequence[Entry] | None) -> tuple[Migration, ...]:
    """The part of a history that the ledger has as applied; all of it when there is no ledger."""
    if not entries:
        return tuple(history)
    done = {entry.filename for entry in entries if entry.state is not LedgerState.DIRTY}
    return tuple(migration for migration in history if migration.filename in done)


def ledger_notes(
    history: Sequence[Migration], entries: Sequence[Entry] | None, runner: str
) -> tuple[str, ...]:
    """What the ledger says beside the catalog: pending, half-applied, changed and unknown migrations."""
    if entries is None:
        return (f"our role may not read {LEDGER}: compared with all migrations, as the ones of {runner}",)
    if not entries:
        return (f"there is no ledger of this target: compared with all migrations, as the ones of {runner}",)
    return tuple(_ledger_notes(history, entries))


def _ledger_notes(history: Sequence[Migration], entries: Sequence[Entry]) -> Iterator[str]:
    known = {entry.filename: entry for entry in entries}
    files = {migration.filename for migration in history}
    if pending := [one.filename for one in history if one.filename not in known]:
        yield f"pending: {_listed(pending)}"
    for entry in entries:
        if entry.state is LedgerState.DIRTY:
            yield (
                f"{entry.filename} was applied in part, {entry.statements_done} of {entry.statements_total} "
                "statements: what it did shows as drift"
            )
    if changed := [
        one.filename
        for one in history
        if one.filename in known and file_digest(one) != known[one.filename].digest
    ]:
        yield f"changed since they ran: {_listed(changed)}"
    if missing := [entry.filename for entry in entries if entry.filename not in files]:
        yield f"in the ledger and not in the folder: {_listed(missing)}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMES_IN_A_NOTE
    return ", ".join((*names[:NAMES_IN_A_NOTE], *((f"{more} more",) if more > 0 else ())))


def _compare(
    project: Project,
    target: Target,
    live: LiveCatalog,
    *,
    history: Sequence[Migration],
    progress: Callable[[str], None],
) -> tuple[str, Replayed]:
    """The comparison on the first server that can replay the history, and that server's specification."""
    *others, own = servers_for(project, live.major)
    for dev in others:
        try:
            return dev, compare_on(dev, project, target, live, history=history, progress=progress)
        except InputError:
            continue  # such as an extension that only the project's own server has; it says what is wrong
    return own, compare_on(own, project, target, live, history=history, progress=progress)


def servers_for(project: Project, major: int) -> tuple[str, ...]:
    """The `dev` values that may replay a history, the best first and the project's own last.

    A server of the database's own major prints what the database prints.
    """
    same = find_servers(project).get(major)
    return (project.dev,) if same in (None, project.dev) else (str(same), project.dev)


def compare_on(
    dev: str,
    project: Project,
    target: Target,
    live: LiveCatalog,
    *,
    history: Sequence[Migration],
    progress: Callable[[str], None],
) -> Replayed:
    """Replay a history on one server and compare."""
    with open_dev(dev, root=project.root, progress=progress) as server:
        progress(f"replaying the migrations on {server.description}")
        expected = expected_catalog(server, project, target, history=history)
        comparison = compare_live(live, expected, server, target=target, root=project.root, progress=progress)
        return Replayed(server.description, expected, comparison)


def expected_catalog(
    server: DevServer, project: Project, target: Target, *, history: Sequence[Migration]
) -> Snapshot:
    """What a history makes on a dev server; the database is kept for the next time."""
    name = bootstrap(server, target.requires, root=project.root)
    if history:
        name = server.template(
            f"history {history_digest(history)}",
            parent=name,
            fill=lambda conninfo: replay(conninfo, history, root=project.root),
        )
    with server.clone(name) as conninfo, connected(conninfo) as conn:
        return snapshot_of(conn, target)
