"""Rows of a table that can only change by being made anew: kept aside, then put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.counters import counters_after_rows
from pgsluice.pipeline.generate.held import HELD, brought_back, kept_aside
from pgsluice.pipeline.generate.tables import bring_rows_back, carry_rows_aside
from pgsluice.pipeline.plan.conversions import refuse_unreadable_copies
from pgsluice.pipeline.snapshot import Address

if TYPE_CHECKING:
    from pgsluice.pipeline.generate import Scene, Step
    from pgsluice.pipeline.plan.events import Events


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


def rows_aside(address: Address, columns: list[str], events: Events, scene: Scene) -> list[Step]:
    """Statements that keep the rows before the table goes."""
    gone = _destroyed_types(events)
    old = [scene.before.objects[Address("column", (*address.path, column))] for column in columns]
    refuse_unreadable_copies({column.address for column in old}, events.destroyed, scene)
    return [carry_rows_aside(scene.before.objects[address], [kept_aside(column, gone) for column in old])]


def rows_back(address: Address, columns: list[str], events: Events, scene: Scene) -> list[Step]:
    """Statements that put the rows back once the table and its partitions stand."""
    new, gone = scene.after.objects[address], _destroyed_types(events)
    columns_of = [Address("column", (*address.path, column)) for column in columns]
    values = [
        brought_back(scene.before.objects[column], scene.after.objects[column], gone) for column in columns_of
    ]
    return [*bring_rows_back(new, columns, values), *counters_after_rows(new, scene)]


def _destroyed_types(events: Events) -> frozenset[Address]:
    return frozenset(one for one in events.destroyed if one.kind in HELD)
