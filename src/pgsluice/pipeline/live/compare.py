"""Compare a real database with an expected catalog that another server, perhaps of another major, printed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.diff import misordered
from pgsluice.pipeline.live.copy import schema_copy
from pgsluice.pipeline.live.naming_runner import as_run_by
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.snapshot import Address, Difference, Snapshot, compare
from pgsluice.pipeline.states import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from pgsluice.config import Target
    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.live.catalog import LiveCatalog
    from pgsluice.pipeline.snapshot import Object, Value

NAMED_NOT_NULL: Final = 180000
"""Since when the names of not-null constraints are kept."""
MAINTAIN: Final = "MAINTAIN"
PARTITION_IDENTITY: Final = frozenset({"identity", "sequence"})
MAINTAINED: Final = 170000
"""Since when there is a privilege to maintain, and partitions share the identity of their table."""
# What servers of two majors may spell in two ways. Everything else is alike on every server, and some of it
# is changed or lost on the way to a copy: owners, tablespaces, invalid indexes, disabled triggers of keys.
SPELLED: Final = frozenset(
    {
        "bound",
        "check",
        "column_defaults",
        "columns",
        "default",
        "definition",
        "expression",
        "expressions",
        "generated",
        "locale",
        "partition_key",
        "tables",
        "using",
    }
)
MOST_TABLES: Final = 5
SECRET: Final = "user mapping"
"""The kind whose options hold passwords."""
# Children of a relation that go with it.
PARTS: Final = frozenset(
    {"column", "default", "constraint", "trigger", "rule", "policy", "domain constraint"}
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between what was expected and what was found, and what a reader must know of them."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()


def compare_live(
    live: LiveCatalog,
    expected: Snapshot,
    server: DevServer,
    *,
    target: Target,
    root: Path,
    progress: Callable[[str], None],
) -> Comparison:
    """Every facet in which a real database differs from `expected`, which `server` printed.

    Servers of two majors print views, functions and expressions differently. What differs between them is
    looked at again in a copy of the real database's schema on `server`; where none can be made, the direct
    comparison stands, with a note.
    """
    expected = as_run_by(expected, live.snapshot.runner)
    want, have = comparable(expected, live.snapshot)
    direct, notes = _less_versions(compare(want, have))
    direct = tuple(one for one in direct if live.sees_secrets or not _is_secret(one))
    if live.major != server.major and any(one.facet in SPELLED for one in direct):
        progress(f"copying the schema of {live.place} to {server.description}")
        try:
            copied = _printed_by(server, live, target, root)
        except (InputError, UnreachableError) as exc:
            notes += (_caveat(live, server, exc),)
        else:
            direct = settled(direct, compare(*comparable(expected, copied)))
    mine, known = _less_known_owners(direct, live)
    order = column_order(expected, live.snapshot, made_by="the migrations have")
    return Comparison(mine, notes + known + order)


def column_order(
    expected: Snapshot, actual: Snapshot, *, made_by: str, but: Collection[tuple[str, ...]] = ()
) -> tuple[str, ...]:
    """A note for each table whose columns stand in another order, which no statement can mend.

    `made_by` names what has the expected order, as `the migrations have`; the tables of `but` are left out.
    """
    found = [
        f"column order of {'.'.join(table)} is {', '.join(have)}; {made_by} {', '.join(want)}"
        for table, (want, have) in misordered(expected, actual).items()
        if table not in but
    ]
    more = len(found) - MOST_TABLES
    return (*found[:MOST_TABLES], *((f"column order of {more} more",) if more > 0 else ()))


def may_not_agree(expected: Snapshot, live: LiveCatalog) -> bool:
    """Whether a whole object is on one side alone, which is told at once."""
    want, have = comparable(as_run_by(expected, live.snapshot.runner), live.snapshot)
    return want.objects.keys() != have.objects.keys()


def comparable(one: Snapshot, other: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Both without what one of the two servers is too old to tell."""
    if one.version_num // 10000 == other.version_num // 10000:
        return one, other
    lowest = min(one.version_num, other.version_num)
    return _as_told_by(lowest, one), _as_told_by(lowest, other)


def settled(direct: Iterable[Difference], copied: Iterable[Difference]) -> tuple[Difference, ...]:
    """The differences seen directly, less those of spelling: a copy on the same server does not have them.

    What only the copy shows came from copying, and what it lacks altogether says nothing.
    """
    again = {(one.address, one.facet): one for one in copied}
    whole = {address for address, facet in again if facet is None}
    kept: list[Difference] = []
    for one in direct:
        if one.facet not in SPELLED or one.address in whole:
            kept.append(one)
        elif (one.address, one.facet) in again:
            kept.append(again[one.address, one.facet])
    return tuple(kept)


def without_parts(
    differences: Iterable[Difference], *snapshots: Snapshot
) -> tuple[tuple[Difference, int], ...]:
    """Each difference with the number of others that it brings along: a lost table loses its columns.

    Args:
        differences: In address order.
        snapshots: Those that were compared: they tell on which table an index stands.
    """
    listed = tuple(differences)
    whole = {(one.address, bool(one.after)) for one in listed if one.facet is None}
    counts: dict[Address, int] = {}
    kept: list[Difference] = []
    for one in listed:
        holder = next(
            (
                above
                for above in _holders(one.address, snapshots)
                if one.facet is None and (above, bool(one.after)) in whole
            ),
            None,
        )
        if holder is None:
            kept.append(one)
        else:
            counts[holder] = counts.get(holder, 0) + 1
    return tuple((one, counts.get(one.address, 0) if one.facet is None else 0) for one in kept)


def _holders(address: Address, snapshots: Iterable[Snapshot]) -> Iterable[Address]:
    """What an object goes with, the outermost first."""
    tables: list[tuple[str, ...]] = [address.path[:2]] if address.kind in PARTS else []
    for snapshot in snapshots:
        obj = snapshot.objects.get(address)
        place = None if obj is None else obj.get("table") if address.kind == "index" else obj.get("owned_by")
        if place and address.kind in ("index", "sequence"):
            tables.append(tuple(place[:2]))
    for table in tables:
        for kind in ("table", "materialized view", "view", "domain"):
            yield Address(kind, table)
    if address.kind == "default":
        yield Address("column", address.path)


def _printed_by(server: DevServer, live: LiveCatalog, target: Target, root: Path) -> Snapshot:
    with (
        schema_copy(
            server,
            live.url,
            manages=target.manages,
            requires=target.requires,
            root=root,
            runner=live.snapshot.runner,
        ) as conninfo,
        connected(conninfo) as conn,
    ):
        return snapshot_of(conn, target)


def _caveat(live: LiveCatalog, server: DevServer, exc: InputError | UnreachableError) -> str:
    reason = "; ".join((exc.message, *exc.details[:1]))
    return (
        f"{live.place} is PostgreSQL {live.major}, and {server.description} prints views, functions and "
        f"expressions in its own way: some differences may be of spelling alone ({reason})"
    )


def without_not_null_names(snapshot: Snapshot) -> Snapshot:
    """A snapshot less the names of its not-null constraints, which no server before 18 keeps."""
    objects = {
        address: _with(obj, {name: value for name, value in obj.facets.items() if name != "not_null_name"})
        for address, obj in snapshot.objects.items()
        if not (address.kind == "constraint" and obj.get("type") == "n")
    }
    return replace(snapshot, objects=objects)


def _as_told_by(version_num: int, snapshot: Snapshot) -> Snapshot:
    """The part of a snapshot that a server of that version knows as well."""
    if version_num < NAMED_NOT_NULL:
        snapshot = without_not_null_names(snapshot)
    if version_num >= MAINTAINED:
        return snapshot
    objects = {address: _with(obj, dict(_unmaintained(obj))) for address, obj in snapshot.objects.items()}
    return replace(snapshot, objects=objects)


def _unmaintained(obj: Object) -> Iterator[tuple[str, Value]]:
    """The facets of an object as they are before 17."""
    for name, value in obj.facets.items():
        if name in ("grants", "privileges"):
            yield name, [grant for grant in value if grant[1] != MAINTAIN]
        elif not (name in PARTITION_IDENTITY and obj.kind == "column" and "inherited" in obj.facets):
            yield name, value


def _with(obj: Object, facets: dict[str, Value]) -> Object:
    return obj if facets == obj.facets else replace(obj, facets=facets)


def _less_versions(
    differences: Iterable[Difference],
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Without extensions' versions, which their packages decide and no migration: they become notes."""
    kept: list[Difference] = []
    notes: list[str] = []
    for one in differences:
        if one.address.kind == "extension" and one.facet == "version":
            notes.append(f"{one.address} has version {one.after}, the dev server {one.before}")
        else:
            kept.append(one)
    return tuple(kept), tuple(notes)


def _less_known_owners(
    differences: Iterable[Difference], live: LiveCatalog
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Without objects of the roles that ran migrations earlier: one note for each of those."""
    kept: list[Difference] = []
    owned: dict[str, int] = {}
    for one in differences:
        if one.facet == "owner" and one.before is None and one.after in live.earlier_owners:
            owned[one.after] = owned.get(one.after, 0) + 1
        else:
            kept.append(one)
    runner = live.snapshot.runner
    return tuple(kept), tuple(
        f"{count} {'object belongs' if count == 1 else 'objects belong'} to {owner}, "
        f"from before migrations ran as {runner}"
        for owner, count in sorted(owned.items())
    )


def _is_secret(difference: Difference) -> bool:
    """Options that hold passwords, which only those who may use them are shown."""
    return difference.address.kind == SECRET and difference.facet == "options"
