"""Adopt a database at a version: check that it is what the migrations make, and say so in its ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, RefusedError, UnreachableError
from pgsluice.pipeline.check import check_folder
from pgsluice.pipeline.devdb import bootstrap, open_dev
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.live.atlas_revisions import read_revisions, take_over
from pgsluice.pipeline.live.catalog import open_reader, read_live
from pgsluice.pipeline.live.compare import compare_live, may_not_agree
from pgsluice.pipeline.live.database import open_database, require_writable
from pgsluice.pipeline.live.drift import Drift, drift_of, up_to
from pgsluice.pipeline.live.ledger import (
    LEDGER,
    TOOL,
    Entry,
    LedgerState,
    file_digest,
    ledger_lock,
    read_ledger,
    record_baseline,
)
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.replay import replay
from pgsluice.pipeline.states import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.live.catalog import LiveCatalog
    from pgsluice.pipeline.snapshot import Snapshot

SHOWN: Final = 20
# What databases have that no migration has reached: `requires` is put in by hand.
AT_FIRST: Final = frozenset({"default privileges", "extension", "schema"})


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user asks of a baseline.

    `version` is the last migration that the database has, None for the last of all; with `from_atlas`
    Atlas's table in `revisions_schema` says it. `allow_drift` adopts a database that differs.
    """

    version: str | None = None
    from_atlas: bool = False
    revisions_schema: str = "atlas_schema_revisions"
    allow_drift: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline came to: `recorded` are file names; `drift` what the comparison found.

    `is_new` is False where the ledger had it all already.
    """

    target: str
    place: str
    recorded: tuple[str, ...]
    drift: Drift | None
    is_new: bool


def adopt(
    project: Project, target: Target, url: str, *, wish: Wish, progress: Callable[[str], None]
) -> Baseline:
    """Record that a database has a target's migrations up to a version, if its catalog is what they make.

    Raises:
        InputError: There is no such version, or the migrations do not run on the dev server.
        RefusedError: The database has drifted, its ledger says something else, the migrations are not the
            recorded ones, or Atlas's revisions are not these migrations.
        UnreachableError: A server cannot be reached, read or, at last, written.
    """
    folder = check_folder(project, target)
    if folder.problem is not None:
        raise folder.problem
    history = read_history(target.migrations_dir)
    if not history:
        raise InputError(f"target {target.name} has no migrations", hint="pgsluice build NAME")
    progress(f"reading the catalog of target {target.name}")
    with open_reader(url, progress=progress) as conn:
        live = read_live(conn, url, target)
        chosen = tuple(history) if wish.version is None else up_to(history, wish.version)
        if wish.from_atlas:
            revisions = read_revisions(conn, wish.revisions_schema)
            chosen = take_over(revisions, history, folder=target.migrations_dir)
    names = tuple(migration.filename for migration in chosen)
    if _is_recorded(live.entries, chosen, place=live.place):
        return Baseline(target.name, live.place, names, None, is_new=False)
    found = drift_of(project, target, live, history=chosen, progress=progress)
    if found.differences and not wish.allow_drift:
        asked = wish.version is not None or wish.from_atlas
        is_empty = _is_empty(live.snapshot)
        dev = None if asked or is_empty else found.dev
        better = dev and newest_that_agrees(
            dev, project, target, live, history=chosen[:-1], progress=progress
        )
        raise _drifted(found, better or None, is_empty=is_empty)
    if not wish.dry_run:
        _record(target, url, chosen, found, progress=progress)
    return Baseline(target.name, live.place, names, found, is_new=True)


def newest_that_agrees(
    dev: str,
    project: Project,
    target: Target,
    live: LiveCatalog,
    *,
    history: Sequence[Migration],
    progress: Callable[[str], None],
) -> Migration | None:
    """The last of these migrations after which the catalog is that of the database, None where none is."""
    best: Migration | None = None
    with open_dev(dev, root=project.root, progress=progress) as server:
        start = bootstrap(server, target.requires, root=project.root)
        with server.clone(start) as conninfo:
            for migration in history:
                progress(f"comparing with the migrations up to {migration.filename}")
                replay(conninfo, [migration], root=project.root)
                with connected(conninfo) as conn:
                    expected = snapshot_of(conn, target)
                if may_not_agree(expected, live):
                    continue
                comparison = compare_live(
                    live, expected, server, target=target, root=project.root, progress=progress
                )
                best = best if comparison.differences else migration
    return best


def _is_recorded(entries: Sequence[Entry] | None, chosen: Sequence[Migration], *, place: str) -> bool:
    """Whether the ledger says just this already; anything else that it says is a refusal."""
    if entries is None:
        raise UnreachableError(
            f"the ledger of {place} cannot be read",
            hint=f"grant select on {LEDGER}, or connect as the role that runs the migrations",
        )
    if not entries:
        return False
    wanted = {migration.filename: file_digest(migration) for migration in chosen}
    known = {entry.filename: entry.digest for entry in entries if entry.state is not LedgerState.DIRTY}
    if wanted == known:
        return True
    raise RefusedError(
        f"the ledger of {place} has {len(entries)} migrations of target {entries[0].target} already",
        details=tuple(f"{entry.filename}: {entry.state}" for entry in entries[-SHOWN:]),
        hint=f"pgsluice status --target {entries[0].target}",
    )


def _record(
    target: Target,
    url: str,
    chosen: Sequence[Migration],
    found: Drift,
    *,
    progress: Callable[[str], None],
) -> None:
    """Write the ledger, unless another run has written it since it was read."""
    count = len(found.differences)
    tool = f"{TOOL}, drift allowed: {count} facets" if count else TOOL
    with open_database(url, progress=progress) as conn:
        require_writable(conn, url)
        with ledger_lock(conn, progress=progress):
            if not _is_recorded(read_ledger(conn, target.name), chosen, place=found.place):
                record_baseline(conn, target.name, chosen, tool=tool)


def _is_empty(snapshot: Snapshot) -> bool:
    """Whether nothing is there but what may be before the first migration."""
    return all(address.kind in AT_FIRST for address in snapshot.objects)


def _drifted(found: Drift, better: Migration | None, *, is_empty: bool) -> RefusedError:
    lines = [str(difference) for difference, _ in found.shown[:SHOWN]]
    if len(found.shown) > SHOWN:
        lines.append(f"... {len(found.shown) - SHOWN} more differences")
    lines += [f"note: {note}" for note in found.notes]
    if is_empty:
        hint = f"pgsluice apply --target {found.target}: the database has nothing of this target yet"
    elif better is not None:
        hint = f"pgsluice baseline {better.version} --target {found.target}: up to there the catalog agrees"
    else:
        hint = "name the version that it has, mend what differs, or --allow-drift"
    return RefusedError(
        f"{found.place} is not what the migrations of {found.target} up to {found.last} make",
        details=tuple(lines),
        hint=hint,
    )
