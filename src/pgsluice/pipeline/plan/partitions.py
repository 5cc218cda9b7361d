"""Partitions that leave, join or shift in a tree: detach first, attach last, rows to where they belong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.bounds import may_overlap
from pgsluice.pipeline.generate.lineage import leave_parents, parents
from pgsluice.pipeline.generate.partitions import (
    detach_partition,
    inside,
    outside,
    own_names,
    route_all,
    route_rows,
    set_rows_aside,
    stays_in_tree,
    switch_trigger,
)
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pgsluice.pipeline.generate import Scene
    from pgsluice.pipeline.plan.events import Events
    from pgsluice.pipeline.plan.graph import Graph, Node

EARLY = frozenset({Phase.PREPARE, Phase.EXPAND})


@dataclass(frozen=True, slots=True)
class _Tree:
    """What one partitioned table loses and gains: `old` that leave, `new` that come, `others` that stay."""

    address: Address
    leaving: tuple[Object, ...]
    coming: tuple[Object, ...]
    default: Object | None


def add_partition_moves(graph: Graph, events: Events, scene: Scene) -> None:
    """Add detachments and row moves, and order them around what attaches, creates and drops partitions."""
    trees = _trees(events, scene)
    for old in _each(tree.leaving for tree in trees):
        new = scene.after.objects.get(old.address)
        partition = old.get("parent") is not None
        leave = [detach_partition(old)] if partition else leave_parents(old, new)
        names = own_names(old, scene) if old.address in events.altered and not stays_in_tree(old, new) else []
        graph.add("detach", old.address, leave + names)
        detached = graph.of("detach", old.address)
        graph.precede(detached, graph.of("alter", old.address) + graph.of("drop", old.address))
        if old.address in events.altered and not stays_in_tree(old, new):
            graph.precede(detached, _own_parts(graph, old.address, events, scene))
    for tree in trees:
        _order_tree(tree, graph, events, scene)
        if tree.address not in events.destroyed:
            _move_rows(tree, graph, events, scene)


def _each(groups: Iterable[tuple[Object, ...]]) -> list[Object]:
    return list({obj.address: obj for group in groups for obj in group}.values())


def _own_parts(graph: Graph, table: Address, events: Events, scene: Scene) -> list[Node]:
    """Statements on the columns and constraints of a table that its parents would forbid."""
    changed = events.destroyed | events.created | events.altered.keys()
    parts = [one for one in changed if one.kind in ("column", "constraint") and one.path[:2] == table.path]
    nodes = [
        node for one in parts for action in ("drop", "create", "alter") for node in graph.of(action, one)
    ]
    own = [node for node in nodes if node.address.path[:2] == table.path]
    for one in events.destroyed:
        if one.kind == "index" and tuple(scene.before.objects[one].get("table")) == table.path:
            own += [node for node in graph.of("drop", one) if node.address == one]
    return own


def _order_tree(tree: _Tree, graph: Graph, events: Events, scene: Scene) -> None:
    shape = _shape_of(graph, tree.address, events, scene)
    keys = [key for key in events.destroyed | events.created if _points_into(key, tree.address, scene)]
    for old in tree.leaving:
        detached = graph.of("detach", old.address)
        new = scene.after.objects.get(old.address)
        if old.address in events.altered and not stays_in_tree(old, new):
            graph.precede(detached, shape)
            for address in events.destroyed:
                if address.kind == "column" and address.path[:2] == tree.address.path:
                    graph.precede(detached, graph.of("drop", address))
        else:
            graph.precede(shape, detached)
        graph.precede(detached, graph.of("drop", tree.address))
        for coming in tree.coming:
            graph.precede(detached, _arrival(graph, coming))
        for key in keys:
            graph.precede(graph.of("drop", key), detached)
    for new in tree.coming:
        _fit_columns(new, tree, graph, events, scene)
        for key in keys:
            graph.precede(_arrival(graph, new), graph.of("create", key))


def _points_into(key: Address, tree: Address, scene: Scene) -> bool:
    obj = scene.after.objects.get(key) or scene.before.objects.get(key)
    if obj is None or key.kind != "constraint" or obj.get("type") != "f":
        return False
    return key.path[:2] != tree.path and tuple(obj.get("references")[:2]) == tree.path


def _trees(events: Events, scene: Scene) -> list[_Tree]:
    before, after = scene.before.objects, scene.after.objects
    trees: dict[Address, tuple[list[Object], list[Object]]] = {}
    for address in sorted(events.destroyed | events.created | events.altered.keys()):
        if address.kind != "table":
            continue
        old, new = before.get(address), after.get(address)
        moved = address in events.altered and _place(old) != _place(new)
        was, now = _parents(old), _parents(new)
        if old is not None:
            dropped = address in events.destroyed and old.get("parent") is not None
            for parent in was:
                away = moved and (parent not in now or old.get("parent") is not None)
                if away or (dropped and parent not in events.destroyed):
                    trees.setdefault(parent, ([], []))[0].append(old)
        if new is not None:
            for parent in now:
                joined = moved and (parent not in was or new.get("parent") is not None)
                if joined or address in events.created:
                    trees.setdefault(parent, ([], []))[1].append(new)
    return [_tree(parent, leaving, coming, scene) for parent, (leaving, coming) in sorted(trees.items())]


def _tree(parent: Address, leaving: list[Object], coming: list[Object], scene: Scene) -> _Tree:
    members = [obj for obj in scene.after.objects.values() if obj.kind == "table" and parent in _parents(obj)]
    default = next((obj for obj in members if obj.get("bound") == "DEFAULT"), None)
    was = scene.before.objects.get(default.address) if default is not None else None
    stays = was is not None and _place(was) == _place(default)
    return _Tree(parent, tuple(leaving), tuple(coming), was if stays else None)


def _parents(obj: Object | None) -> list[Address]:
    return [Address("table", path) for path in parents(obj)]


def _place(obj: Object | None) -> tuple[object, object]:
    return (parents(obj), obj.get("bound")) if obj is not None else (None, None)


def _arrival(graph: Graph, new: Object) -> list[Node]:
    return graph.of("alter", new.address) + graph.of("create", new.address)


def _shape_of(graph: Graph, tree: Address, events: Events, scene: Scene) -> list[Node]:
    """Statements on the tree's columns, which a detached partition would miss."""
    return [
        node
        for address in scene.after.objects
        if address.kind == "column" and address.path[:2] == tree.path and tree not in events.created
        for node in graph.of("create", address) + graph.of("alter", address)
        if graph.steps[node].phase in EARLY
    ]


def _fit_columns(new: Object, tree: _Tree, graph: Graph, events: Events, scene: Scene) -> None:
    """A table that joins needs the tree's columns and no others: some come before it, some with it."""
    attach = graph.of("alter", new.address)
    for node in _shape_of(graph, tree.address, events, scene) if attach else ():
        own = Address("column", (*new.path, node.address.path[-1]))
        if node.action == "create" and own not in scene.before.objects:
            graph.precede(attach, [node])
        else:
            graph.precede([node], attach)
    for address in events.destroyed if attach else ():
        if address.kind == "column" and address.path[:2] in (tree.address.path, new.path):
            drops = [node for node in graph.of("drop", address) if node.address.kind == "column"]
            graph.precede(drops, attach)


def _move_rows(tree: _Tree, graph: Graph, events: Events, scene: Scene) -> None:
    columns = _carried(tree.address, events, scene)
    if not columns:
        return
    moved = []
    for old in tree.leaving:
        gains = [new for new in tree.coming if new.path != old.path and _takes(new, old)]
        if old.address in events.altered:
            new = scene.after.objects[old.address]
            if stays_in_tree(old, new) and (gains or tree.default is not None):
                moved.append(_shift(old, new, tree, columns, graph))
        elif gains and old.address not in events.created:
            where = inside([new.get("bound_condition") for new in gains])
            graph.add("route", old.address, route_all(old, columns, where=where))
            graph.precede(graph.of("detach", old.address), graph.of("route", old.address))
            graph.precede(graph.of("route", old.address), graph.of("drop", old.address))
            moved.append(old.address)
    if tree.default is not None and tree.coming and not _is_referenced(tree.address, scene):
        moved.append(_shift(tree.default, scene.after.objects[tree.default.address], tree, columns, graph))
    routes = [node for address in moved for node in graph.of("route", address)]
    for new in tree.coming:
        graph.precede(_arrival(graph, new), routes)
    _quietly(tree, routes, graph, events, scene)


def _takes(new: Object, old: Object) -> bool:
    return may_overlap(str(new.get("bound")), str(old.get("bound")))


def _shift(old: Object, new: Object, tree: _Tree, columns: list[str], graph: Graph) -> Address:
    """Rows beyond a partition's new bound wait aside until all partitions stand."""
    address = old.address
    where = outside([new.get("bound_condition")])
    graph.add("aside", address, set_rows_aside(old, columns, where=where))
    graph.add("route", address, route_rows(old, columns))
    aside = graph.of("aside", address)
    graph.precede(graph.of("detach", address), aside)
    graph.precede(aside, graph.of("alter", address) + graph.of("route", address))
    for one in tree.coming:
        graph.precede(aside, _arrival(graph, one))
    return address


def _quietly(tree: _Tree, routes: list[Node], graph: Graph, events: Events, scene: Scene) -> None:
    """Triggers that live through the plan are off while rows only change their partition."""
    for address, trigger in scene.before.objects.items():
        if address.kind != "trigger" or address.path[:2] != tree.address.path or not routes:
            continue
        changes = address in events.destroyed or address in events.altered
        if changes or trigger.get("enabled") or trigger.get("inherited"):
            continue
        graph.add("quiet", address, [switch_trigger(trigger, on=False)])
        graph.add("wake", address, [switch_trigger(trigger, on=True)])
        graph.precede(graph.of("quiet", address), routes)
        graph.precede(routes, graph.of("wake", address))


def _carried(tree: Address, events: Events, scene: Scene) -> list[str]:
    kept = [
        column
        for address, column in scene.before.objects.items()
        if address.kind == "column"
        and address.path[:2] == tree.path
        and address in scene.after.objects
        and address not in events.destroyed
        and not scene.after.objects[address].get("generated")
    ]
    return [column.path[2] for column in sorted(kept, key=lambda one: int(one.get("position")))]


def _is_referenced(tree: Address, scene: Scene) -> bool:
    """Whether keys point at the tree: deleting a row there would reach beyond it."""
    return any(
        obj.kind == "constraint" and obj.get("type") == "f" and tuple(obj.get("references")[:2]) == tree.path
        for snapshot in (scene.before, scene.after)
        for obj in snapshot.objects.values()
    )
