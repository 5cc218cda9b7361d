"""Partitions: leave a tree, join one, and rows that belong to another partition afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import automatic, ident, qualified
from pgsluice.pipeline.generate.not_null import rename_not_null
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Hazard, Phase, RowCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

HASHED: Final = "satisfies_hash_partition"
NAMED_NOT_NULLS: Final = 180000


def detach_partition(old: Object) -> Step:
    """Take a partition out of its tree; its rows stay where they are."""
    parent, name = qualified(old.get("parent")), qualified(old.path)
    return Step(f"ALTER TABLE {parent} DETACH PARTITION {name}", Phase.EXPAND)


def own_names(old: Object, scene: Scene) -> list[Step]:
    """Before 18, what 18 would need: a table on its own names its not-null constraints after itself."""
    if scene.after.version_num >= NAMED_NOT_NULLS:
        return []
    return [
        Step(
            rename_not_null(
                (old.path[0], old.path[1]),
                column.path[2],
                automatic(old.path[1], column.path[2], "not_null"),
            ),
            Phase.EXPAND,
        )
        for column in scene.parts[old.path]
        if column.kind == "column" and column.get("not_null") and column.address in scene.before.objects
    ]


def attach_partition(old: Object, new: Object, scene: Scene) -> Step:
    """Put a table into a tree; rows that fit neither its bound nor the tree it was in before are refused."""
    name, bound = ".".join(new.path), new.get("bound")
    hazard = Hazard("scans-table", f"{name} is scanned to check that its rows fit the bound")
    siblings = [
        obj.get("bound_condition")
        for obj in scene.after.objects.values()
        if obj.kind == "table" and obj.get("parent") == new.get("parent")
    ]
    condition = outside(siblings if stays_in_tree(old, new) else [new.get("bound_condition")])
    checks: tuple[RowCheck, ...] = ()
    if condition is not None:
        checks = (
            RowCheck(
                rows=f"select * from {qualified(old.path)} where {condition}",
                message=f"rows of {name} do not fit its new bound {bound}",
                hint="move these rows to another partition in block expand, or choose a wider bound",
            ),
        )
    sql = f"ALTER TABLE {qualified(new.get('parent'))} ATTACH PARTITION {qualified(new.path)} {bound}"
    return Step(sql, Phase.EXPAND, (hazard,), checks=checks)


def attach_created(new: Object) -> Step:
    """Put a table that was just created into its tree."""
    parent, name = qualified(new.get("parent")), qualified(new.path)
    return Step(f"ALTER TABLE {parent} ATTACH PARTITION {name} {new.get('bound')}", Phase.EXPAND)


def differs_from_tree(new: Object, columns: Sequence[Object], scene: Scene) -> bool:
    """Whether `partition of` would give columns in another order, or not-null constraints of another name."""
    tree = tuple(new.get("parent"))
    above = {obj.path[2]: obj for obj in scene.parts[tree] if obj.kind == "column"}
    if [column.path[2] for column in columns] != sorted(
        above, key=lambda name: int(above[name].get("position"))
    ):
        return True
    return scene.after.version_num >= NAMED_NOT_NULLS and any(
        column.get("not_null")
        and above[column.path[2]].get("not_null")
        and _not_null_name(column, scene) != _not_null_name(above[column.path[2]], scene)
        for column in columns
    )


def _not_null_name(column: Object, scene: Scene) -> str:
    named = scene.not_nulls.get(column.path)
    return named.path[2] if named is not None else automatic(column.path[1], column.path[2], "not_null")


def is_written_by_partition(default: Object, scene: Scene) -> bool:
    """Whether a default that a partition shares with its tree stands in the partition's own columns."""
    table = scene.after.objects[Address("table", default.path[:2])]
    if table.get("parent") is None:
        return False
    above = scene.after.objects.get(Address("default", (*table.get("parent"), default.path[2])))
    if above is None or above.get("expression") != default.get("expression"):
        return False
    columns = [one for one in scene.parts[table.path] if one.kind == "column"]
    return differs_from_tree(table, sorted(columns, key=lambda one: int(one.get("position"))), scene)


def tree_checks(new: Object, scene: Scene) -> list[Object]:
    """The checks that a table needs before it joins a tree that has them by then."""
    return [
        obj
        for obj in scene.parts[new.path]
        if obj.kind == "constraint"
        and obj.get("type") == "c"
        and obj.get("inherited") == "only"
        and _stands_early(Address("constraint", (*new.get("parent"), obj.path[2])), scene)
    ]


def _stands_early(check: Address, scene: Scene) -> bool:
    """Whether a tree's check is there before the plan, or comes inside the tree's `create table`."""
    is_new_table = Address("table", check.path[:2]) not in scene.before.objects
    return check in scene.before.objects or (is_new_table and not scene.after.objects[check].get("not_valid"))


def stays_in_tree(old: Object, new: Object | None) -> bool:
    """Whether only the bound changes, so that rows beyond it have a tree to go to."""
    return new is not None and old.get("parent") is not None and old.get("parent") == new.get("parent")


def outside(bounds: Sequence[str | None]) -> str | None:
    """The condition of rows that fit none of the bounds; None where nobody can say."""
    if any(bound is None or HASHED in bound for bound in bounds):
        return None
    return f"NOT COALESCE({' OR '.join(str(bound) for bound in bounds)}, true)"


def inside(bounds: Sequence[str | None]) -> str | None:
    """The condition of rows that fit at least one of the bounds; None where all do."""
    if any(bound is None or HASHED in bound for bound in bounds):
        return None
    return " OR ".join(str(bound) for bound in bounds)


def set_rows_aside(partition: Object, columns: Sequence[str], *, where: str | None) -> list[Step]:
    """Move the rows that fit the new bound no longer out of a partition."""
    name, aside = qualified(partition.path), _aside(partition)
    condition = f"\nWHERE {where}" if where is not None else ""
    hazard = Hazard("moves-rows", f"rows of {'.'.join(partition.path)} move to the partition they belong to")
    keep = (
        f"CREATE TEMPORARY TABLE {aside} ON COMMIT DROP AS\nSELECT {_listed(columns)}\nFROM {name}{condition}"
    )
    return [
        Step(keep, Phase.EXPAND, (hazard,)),
        Step(f"DELETE FROM {name}{condition}", Phase.EXPAND),
    ]


def route_rows(partition: Object, columns: Sequence[str]) -> list[Step]:
    """Put rows that were set aside into the tree, which finds each its partition."""
    aside = f"pg_temp.{_aside(partition)}"
    return [_into(partition, columns, aside), Step(f"DROP TABLE {aside}", Phase.EXPAND)]


def route_all(partition: Object, columns: Sequence[str], *, where: str | None) -> list[Step]:
    """Copy the rows of a partition that goes into those that take its place."""
    condition = f"\nWHERE {where}" if where is not None else ""
    return [_into(partition, columns, f"{qualified(partition.path)}{condition}")]


def _into(partition: Object, columns: Sequence[str], source: str) -> Step:
    listed = _listed(columns)
    tree = qualified(partition.get("parent"))
    return Step(
        f"INSERT INTO {tree} ({listed})\nOVERRIDING SYSTEM VALUE\nSELECT {listed}\nFROM {source}",
        Phase.EXPAND,
    )


def switch_trigger(trigger: Object, *, on: bool) -> Step:
    """Rows that only change their partition fire no trigger of the user's."""
    word = "ENABLE" if on else "DISABLE"
    name = ident(trigger.path[2])
    return Step(f"ALTER TABLE {qualified(trigger.path[:2])} {word} TRIGGER {name}", Phase.EXPAND)


def _aside(partition: Object) -> str:
    return ident(f"moved_{'_'.join(partition.path)}"[:60])


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(ident, columns))
