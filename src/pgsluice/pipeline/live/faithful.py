"""What a dump leaves behind: put into a copy where that can be done, otherwise refused or named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import RefusedError
from pgsluice.pipeline.generate import KINDS, Scene
from pgsluice.pipeline.generate.decoration import decorate_new
from pgsluice.pipeline.generate.naming import qualified
from pgsluice.pipeline.live.compare import SECRET, SPELLED, comparable
from pgsluice.pipeline.live.copy import IS_SUPERUSER
from pgsluice.pipeline.snapshot import Address, compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from pgsluice.pipeline.live.catalog import LiveCatalog
    from pgsluice.pipeline.snapshot import Difference, Snapshot

# The rows do not matter; a refresh would run the query, perhaps over foreign tables.
POPULATE: Final = """
update pg_catalog.pg_class as c
set relispopulated = true
from pg_catalog.pg_namespace as n
where n.oid = c.relnamespace and c.relkind = 'm' and not c.relispopulated
  and not (n.nspname || '.' || c.relname) = any(%(empty)s)
"""
MATERIALIZED: Final = "materialized view"


class HalfDoneError(RefusedError):
    """A database holds what a command left half-done, which no dump has."""


def refuse_half_done(live: LiveCatalog) -> None:
    """Refuse a database of which a dump would lack a part that is there.

    Raises:
        HalfDoneError: An index is invalid, or a partition is on its way out.
    """
    if found := sorted(_half_done(live.snapshot)):
        raise HalfDoneError(
            f"{live.place} holds what was left half-done: {found[0][0]}",
            details=tuple(what for what, _ in found[1:]),
            hint=" ".join(("end or undo it first:", *(statement for _, statement in found))),
        )


def _half_done(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What is wrong, and the statement that mends it."""
    for address, obj in snapshot.objects.items():
        if address.kind == "index" and obj.get("invalid") and obj.get("table_kind") != "p":
            yield f"{address} is invalid", f"drop index concurrently {qualified(address.path)};"
        elif address.kind == "constraint" and obj.get("index_invalid"):
            table = snapshot.objects.get(Address("table", address.path[:2]))
            if table is None or table.get("form") != "partitioned":
                index = qualified((address.path[0], address.path[2]))
                yield f"the index of {address} is invalid", f"reindex index concurrently {index};"
        elif address.kind == "table" and obj.get("detach_pending"):
            parent = f"alter table {qualified(obj.get('parent'))}"
            mending = f"{parent} detach partition {qualified(address.path)} finalize;"
            yield f"{address} is being detached", mending


def complete(conn: Connection[Any], live: LiveCatalog, copied: Snapshot) -> bool:
    """Put into a copy what `pg_dump` leaves out; whether anything was changed.

    Casts, where only some schemas are dumped, and whether materialized views are filled, where our role on
    the dev server may say so.
    """
    casts = [
        obj
        for address, obj in live.snapshot.objects.items()
        if address.kind == "cast" and address not in copied.objects
    ]
    scene = Scene(copied, live.snapshot)
    for cast in casts:
        for step in (*KINDS["cast"].create(cast, scene), *decorate_new(cast, scene)):
            conn.execute(step.sql.encode(), prepare=False)
    views = [one for one in copied.objects if one.kind == MATERIALIZED]
    filled = bool(views) and conn.execute(IS_SUPERUSER).fetchone() == (True,)
    if filled:
        known = live.snapshot.objects
        empty = [one for one in views if one in known and known[one].get("unpopulated")]
        conn.execute(POPULATE, {"empty": [".".join(one.path) for one in empty]})
    return bool(casts) or filled


def not_planned(want: Snapshot, have: Snapshot, *, goal: Snapshot, base: Snapshot) -> tuple[Difference, ...]:
    """The differences of two databases that their copies do not have, and so no plan.

    Args:
        want: What the second really is.
        have: What the first really is.
        goal: The second as it was copied.
        base: The first as it was copied.
    """
    carried = {(one.address, one.facet) for one in compare(goal, base)}
    return tuple(
        one
        for one in compare(*comparable(want, have))
        if one.facet not in SPELLED
        and one.address.kind != SECRET
        and not carried & {(one.address, one.facet), (one.address, None)}
    )
