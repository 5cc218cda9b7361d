"""Sequences and the columns that own them: tied last, untied first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.sequences import disown_sequence, give_sequence, own_sequence
from pgsluice.pipeline.snapshot import Address, Object

if TYPE_CHECKING:
    from pgsluice.pipeline.generate import Scene
    from pgsluice.pipeline.plan.events import Events
    from pgsluice.pipeline.plan.graph import Graph


def add_ownership(graph: Graph, events: Events, scene: Scene) -> None:
    """Tie sequences to their columns last, untie first those that outlive a table.

    A sequence and the table of its column have one owner, so it changes hands before it is tied.
    """
    for address, new in sorted(scene.after.objects.items()):
        if address.kind != "sequence":
            continue
        old = scene.before.objects.get(address) if address not in events.created else None
        was = _owner_column(old)
        holder = _role_of(old, scene)
        if old is not None and was is not None and was in events.destroyed:
            graph.add("disown", address, [disown_sequence(new)])
            graph.precede(graph.of("disown", address), graph.of("drop", was))
            was = None
        now = _owner_column(new)
        if now == was:
            continue
        steps = [own_sequence(new)]
        if now is not None and (wanted := _table_role(now, events, scene)) != holder:
            steps = [give_sequence(new, wanted), *steps]
            steps = [disown_sequence(new), *steps] if was is not None else steps
        graph.add("own", address, steps)
        links = graph.of("own", address)
        graph.precede(
            graph.of("create", address) + graph.of("alter", address) + graph.of("disown", address), links
        )
        if now is not None:
            graph.precede(graph.of("create", now)[:1], links)
            graph.precede(links, graph.of("decorate", Address("table", now.path[:2])))


def _owner_column(sequence: Object | None) -> Address | None:
    owned_by = sequence.get("owned_by") if sequence is not None else None
    return Address("column", tuple(owned_by)) if owned_by else None


def _role_of(sequence: Object | None, scene: Scene) -> str | None:
    """Who owns a sequence of *before*: its table's owner where it is tied; None for whoever runs the plan."""
    if sequence is None:
        return None
    column = _owner_column(sequence)
    holder = scene.before.objects.get(Address("table", column.path[:2])) if column is not None else sequence
    owner: str | None = holder.get("owner") if holder is not None else None
    return owner


def _table_role(column: Address, events: Events, scene: Scene) -> str | None:
    table = Address("table", column.path[:2])
    old = scene.before.objects.get(table) if table not in events.created else None
    owner: str | None = old.get("owner") if old is not None else None
    return owner
