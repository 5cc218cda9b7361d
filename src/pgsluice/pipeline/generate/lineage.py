"""What a table's parents bring along: columns, constraints, triggers and indexes of its own name for them."""

from __future__ import annotations

from pgsluice.pipeline.generate.naming import qualified
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.snapshot import Address, Object, Snapshot
from pgsluice.pipeline.statement import Phase


def parents(table: Object | None) -> list[tuple[str, ...]]:
    """The tables above in its tree: one for a partition, any number by inheritance."""
    if table is None:
        return []
    above = [table.get("parent")] if table.get("parent") else table.get("inherits") or []
    return [tuple(one) for one in above]


def parents_of(table: tuple[str, ...], snapshot: Snapshot) -> list[tuple[str, ...]]:
    """`parents` by path."""
    return parents(snapshot.objects.get(Address("table", table[:2])))


def brought_by(obj: Object, snapshot: Snapshot) -> Address | None:
    """The parent's object that an inherited one comes and goes with, None where there is none."""
    if obj.kind == "index":
        whole = obj.get("parent")
        return Address("index", tuple(whole)) if whole else None
    if obj.kind not in ("column", "constraint", "trigger") or obj.get("inherited") is None:
        return None
    name = obj.get("parent_name") or obj.path[2]
    above = [Address(obj.kind, (*parent, name)) for parent in parents_of(obj.path, snapshot)]
    return next((one for one in above if one in snapshot.objects), None)


def must_be_made_anew(old: Object, new: Object, scene: Scene) -> bool:
    """Whether a table cannot come to inherit this column or check as *after* does: only a new table can.

    PostgreSQL keeps what a table once had of its own when it joins a parent, save for partitions.
    """
    if new.get("inherited") in (None, old.get("inherited")) or _is_partition(new, scene):
        return False
    if new.get("inherited") == "merged":
        return old.get("inherited") == "only" and new.kind == "column"
    return new.kind == "column" or brought_by(new, scene.before) is not None


def lacks_for_joining(table: Object, scene: Scene) -> bool:
    """Whether the parents that a table is to join have a column or check that must come from them alone."""
    joined = [parent for parent in parents(table) if parent not in parents_of(table.path, scene.before)]
    for new in scene.parts[table.path]:
        if new.get("inherited") != "only":
            continue
        kind, name = new.kind, new.path[2]
        if new.get("type") == "n":
            kind, name = "column", new.get("columns")[0]
        above = [Address(kind, (*parent, name)) for parent in joined]
        if any(one in scene.before.objects for one in above):
            return True
    return False


def joins_with(new: Object, scene: Scene) -> bool:
    """Whether a table is to join a tree that has this column or check by then: it must bring its own."""
    return joins_tree(new, scene) and any(
        Address(new.kind, (*parent, new.path[2])) in scene.before.objects
        or Address("table", parent) not in scene.before.objects
        for parent in parents_of(new.path, scene.after)
    )


def joins_tree(part: Object, scene: Scene) -> bool:
    """Whether the table of this column or constraint is there and to become another tree's partition."""
    table = Address("table", part.path[:2])
    old, new = scene.before.objects.get(table), scene.after.objects[table]
    return old is not None and new.get("parent") is not None and old.get("parent") != new.get("parent")


def leaves_parent(part: Object, scene: Scene) -> bool:
    """Whether the table of this inherited column, constraint or index outlives its bond with the parent."""
    table = tuple(part.get("table")) if part.kind == "index" else part.path[:2]
    new = scene.after.objects.get(Address("table", table))
    above = brought_by(part, scene.before)
    if new is None or above is None:
        return False
    gone = [one for one in parents_of(table, scene.before) if one not in parents(new)]
    if part.kind == "index":
        return bool(gone)
    return above.path[:2] in gone and not any(one not in gone for one in parents_of(table, scene.before))


def leave_parents(old: Object, new: Object | None) -> list[Step]:
    """`no inherit` for each parent that the table has no longer."""
    table = f"ALTER TABLE {qualified(old.path)}"
    gone = [one for one in parents(old) if one not in parents(new)]
    return [Step(f"{table} NO INHERIT {qualified(one)}", Phase.EXPAND) for one in gone]


def join_parents(old: Object, new: Object) -> list[Step]:
    """`inherit` for each parent that the table has not yet."""
    table = f"ALTER TABLE {qualified(new.path)}"
    fresh = [one for one in parents(new) if one not in parents(old)]
    return [Step(f"{table} INHERIT {qualified(one)}", Phase.EXPAND) for one in fresh]


def keepers(column: Object, scene: Scene) -> tuple[list[Address], list[Address]]:
    """The children's columns that stay when the parent's is dropped, and those that go with it."""
    stay: list[Address] = []
    go: list[Address] = []
    for address, obj in scene.before.objects.items():
        if address.kind != "table" or column.path[:2] not in parents(obj):
            continue
        child = Address("column", (*address.path, column.path[2]))
        if child in scene.before.objects and not _leaves(address, column.path[:2], scene):
            (stay if child in scene.after.objects else go).append(child)
    return stay, go


def _leaves(table: Address, parent: tuple[str, ...], scene: Scene) -> bool:
    return parent not in parents(scene.after.objects.get(table))


def _is_partition(obj: Object, scene: Scene) -> bool:
    table = scene.after.objects.get(Address("table", obj.path[:2]))
    return table is not None and table.get("parent") is not None
