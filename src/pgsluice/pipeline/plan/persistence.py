"""Tables that become logged or unlogged: a logged table may at no time point at an unlogged one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.snapshot import Address

if TYPE_CHECKING:
    from pgsluice.pipeline.generate import Scene
    from pgsluice.pipeline.plan.events import Events
    from pgsluice.pipeline.plan.graph import Graph


def order_persistence(graph: Graph, events: Events, scene: Scene) -> None:
    """Where foreign keys lead from one such table to another, the right one of them changes first."""
    before, after = scene.before.objects, scene.after.objects
    changed = {
        address
        for address in events.altered
        if address.kind == "table" and before[address].get("persistence") != after[address].get("persistence")
    }
    for address, key in sorted(before.items()) if changed else ():
        if address.kind != "constraint" or key.get("type") != "f":
            continue
        child, parent = Address("table", address.path[:2]), Address("table", tuple(key.get("references")[:2]))
        if child == parent or not {child, parent} <= changed:
            continue
        first, second = (child, parent) if after[child].get("persistence") else (parent, child)
        graph.precede(graph.of("alter", first), graph.of("alter", second))
