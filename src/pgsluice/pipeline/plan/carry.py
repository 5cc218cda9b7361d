"""Rows of a table that can only change by being made anew: kept aside, then put back."""

from __future__ import annotations

from pgsluice.pipeline.generate import Scene, Step
from pgsluice.pipeline.generate.columns import counters_after_rows
from pgsluice.pipeline.generate.tables import bring_rows_back, carry_rows_aside
from pgsluice.pipeline.plan.events import Events
from pgsluice.pipeline.snapshot import Address


def carried_columns(address: Address, events: Events, scene: Scene) -> list[str]:
    """The columns whose values survive the rebuild of a table, in table order; none if nothing is carried."""
    if address.kind != "table":
        return []
    old, new = scene.before.objects[address], scene.after.objects[address]
    if "foreign" in (old.get("form"), new.get("form")) or _carried_by_parent(address, events, scene):
        return []
    kept = [
        column
        for column in scene.after.objects.values()
        if column.kind == "column"
        and column.path[:2] == address.path
        and column.address in scene.before.objects
        and not column.get("generated")
    ]
    return [column.path[2] for column in sorted(kept, key=lambda one: int(one.get("position")))]


def _carried_by_parent(address: Address, events: Events, scene: Scene) -> bool:
    was, now = scene.before.objects[address].get("parent"), scene.after.objects[address].get("parent")
    return was is not None and was == now and events.rebuilt(Address("table", tuple(was)))


def rows_aside(address: Address, columns: list[str], scene: Scene) -> list[Step]:
    """Statements that keep the rows before the table goes."""
    return [carry_rows_aside(scene.before.objects[address], columns)]


def rows_back(address: Address, columns: list[str], scene: Scene) -> list[Step]:
    """Statements that put the rows back once the table and its partitions stand."""
    new = scene.after.objects[address]
    return [*bring_rows_back(new, columns), *counters_after_rows(new, scene)]
