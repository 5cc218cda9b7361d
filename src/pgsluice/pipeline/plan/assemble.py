"""Make the plan: events, graph, order, and what a reviewer must be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import RefusedError
from pgsluice.pipeline.generate import KINDS, Scene, Step
from pgsluice.pipeline.generate.spelling import keep_array_casts
from pgsluice.pipeline.plan.events import Events, classify
from pgsluice.pipeline.plan.graph import Graph, Node, build_graph
from pgsluice.pipeline.plan.order import components, pull_early, topological
from pgsluice.pipeline.plan.renames import suspected_renames
from pgsluice.pipeline.snapshot import Address, Snapshot
from pgsluice.pipeline.statement import PHASE_ORDER, Loss, Phase, Plan, RowCheck, Statement

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND_RANK: Final = {kind: position for position, kind in enumerate(KINDS)}
ACTION_RANK: Final = {
    "keep": 0,
    "disown": 1,
    "detach": 1,
    "drop": 2,
    "alter": 3,
    "create": 4,
    "aside": 4,
    "quiet": 5,
    "route": 6,
    "wake": 7,
    "own": 5,
    "refill": 6,
    "discard": 7,
    "decorate": 8,
}
VERBS: Final = {
    "keep": "keep the rows of",
    "refill": "put back the rows of",
    "discard": "discard the old",
    "own": "tie",
    "disown": "untie",
    "aside": "set rows aside of",
    "route": "route rows of",
    "decorate": "settle",
}
TABLE_PARTS: Final = frozenset({"table", "column", "default", "constraint", "trigger", "policy", "rule"})


def make_plan(before: Snapshot, after: Snapshot, *, settling: bool = False) -> Plan:
    """The ordered statements that lead from one catalog to the other.

    Args:
        before: The catalog that the history gives.
        after: The catalog that the schema files give.
        settling: Whether a plan has run already and this one only settles what it left.

    Raises:
        RefusedError: A kind that has no generator differs, or the change would need a cycle.
    """
    scene = Scene(before, after, settling)
    events = classify(scene)
    graph, edges = _acyclic(events, scene)
    phase = {node: PHASE_ORDER.index(step.phase) for node, step in graph.steps.items()}
    rank: dict[Node, tuple[object, ...]] = {node: _rank(node, phase, scene=scene) for node in graph.steps}
    order = topological(graph.steps, edges, rank=rank)
    pull_early(order, edges, phase=phase)
    _prepare_early_drops(graph, edges, order, phase)
    rank = {node: _rank(node, phase, scene=scene) for node in graph.steps}
    order = topological(graph.steps, edges, rank=rank)
    rebuilt_with_rows = {address for action, address in graph.chains if action == "keep"}
    return _assemble(order, graph, phase, edges=edges, scene=scene, events=events, kept=rebuilt_with_rows)


def _rank(node: Node, phase: Mapping[Node, int], *, scene: Scene) -> tuple[object, ...]:
    if node.action in ("drop", "disown", "detach", "keep"):
        return (
            phase[node],
            ACTION_RANK[node.action],
            -KIND_RANK[node.address.kind],
            node.address.path,
            node.position,
        )
    table = node.address.path[:2] if node.address.kind in TABLE_PARTS else node.address.path
    late = node.action == "decorate"
    return (
        phase[node],
        3,
        0 if not late else 1,
        *((KIND_RANK[node.address.kind], table) if not late else (table, KIND_RANK[node.address.kind])),
        _column_place(node, scene),
        node.address.path,
        ACTION_RANK[node.action],
        node.position,
    )


def _column_place(node: Node, scene: Scene) -> int:
    """Where the schema has a column, so that new ones come in its order; 0 for all other kinds."""
    column = scene.after.objects.get(node.address) if node.address.kind == "column" else None
    return int(column.get("position")) if column is not None else 0


def _acyclic(events: Events, scene: Scene) -> tuple[Graph, dict[Node, set[Node]]]:
    """The graph without cycles: hints give way first, then what stands inside `create table`."""
    apart: frozenset[Address] = frozenset()
    for _ in range(8):
        graph = build_graph(events, scene, apart=apart)
        edges = {node: graph.edges.get(node, set()) | graph.hints.get(node, set()) for node in graph.steps}
        for group in components(graph.steps, edges):
            members = set(group)
            for node in group:
                edges[node] = graph.edges.get(node, set()) | (graph.hints.get(node, set()) - members)
        cycles = components(graph.steps, edges)
        if not cycles:
            return graph, edges
        tables = {
            node.address for group in cycles for node in group if node.address.kind in ("table", "domain")
        }
        if tables <= apart:
            break
        apart |= tables
    names = sorted({f"{node.action} {node.address}" for node in cycles[0]})
    raise RefusedError(
        "these changes need each other, so that no order of statements makes them",
        details=tuple(names[:20]),
        hint="make the change in two migrations, the second one after the first has been built",
    )


def _prepare_early_drops(
    graph: Graph, edges: Mapping[Node, set[Node]], order: list[Node], phase: dict[Node, int]
) -> None:
    """A drop that something waits for moves from `retire` to `prepare`, if nothing must come before it."""
    retire = PHASE_ORDER.index(Phase.RETIRE)
    earliest: dict[Node, int] = dict.fromkeys(graph.steps, 0)
    for node in order:
        if node.action == "drop" and graph.steps[node].phase is Phase.RETIRE and phase[node] < retire:
            phase[node] = earliest[node]
        for target in edges.get(node, ()):
            earliest[target] = max(earliest[target], phase[node])


def _assemble(
    order: list[Node],
    graph: Graph,
    phase: Mapping[Node, int],
    *,
    edges: Mapping[Node, set[Node]],
    scene: Scene,
    events: Events,
    kept: set[Address],
) -> Plan:
    statements: list[Statement] = []
    steps: list[tuple[Node, Step]] = [(node, graph.steps[node]) for node in order]
    for node, step in steps:
        claim = f"{VERBS.get(node.action, node.action)} {node.address}"
        hazards = () if _has_no_rows(node, scene, events) else step.hazards
        work = None if scene.settling or _is_made(node, scene, events) else step.work
        statements.append(
            Statement(
                keep_array_casts(step.sql),
                claim,
                PHASE_ORDER[phase[node]],
                hazards,
                node.address,
                work,
                step.checks,
            )
        )
    checks: dict[RowCheck, None] = {}
    for _, step in steps:
        checks.update(dict.fromkeys(step.checks))
    return Plan(
        statements=tuple(statements),
        checks=tuple(checks),
        backfills=tuple(step.backfill for _, step in steps if step.backfill is not None),
        losses=_losses(steps, scene, kept),
        touched=_touched(order, scene),
        order=_order(order, edges),
    )


def _order(order: list[Node], edges: Mapping[Node, set[Node]]) -> frozenset[tuple[int, int]]:
    place = {node: number for number, node in enumerate(order)}
    return frozenset((place[node], place[later]) for node in order for later in edges.get(node, ()))


def _has_no_rows(node: Node, scene: Scene, events: Events) -> bool:
    """Whether the statement is on a table that the plan makes: nobody waits for it, nothing is scanned."""
    table = _table_of(node, scene)
    return table is not None and table in events.created and table not in events.destroyed


def _is_made(node: Node, scene: Scene, events: Events) -> bool:
    """Whether the statement is on a table or a view that the plan makes, new or anew."""
    table = _table_of(node, scene)
    view = Address("materialized view", table.path) if table is not None else None
    return table in events.created or view in events.created


def _losses(steps: list[tuple[Node, Step]], scene: Scene, kept: set[Address]) -> tuple[Loss, ...]:
    found: list[Loss] = []
    losing = [(node, step) for node, step in steps if step.loss is not None]
    likely = suspected_renames(scene.before, scene.after) if losing else {}
    for node, step in losing:
        assert step.loss is not None
        if node.address in kept:
            found += _columns_not_carried(node.address, step, scene)
        elif not _carried_with_tree(node.address, kept, scene):
            found.append(Loss(step.loss, step.sql, likely.get(node.address)))
    return tuple(found)


def _carried_with_tree(table: Address, kept: set[Address], scene: Scene) -> bool:
    """Whether the rows of a partition are part of those that its tree's root keeps."""
    old = scene.before.objects.get(table)
    while table.kind == "table" and old is not None and old.get("parent") is not None:
        table = Address("table", tuple(old.get("parent")))
        if table in kept:
            return True
        old = scene.before.objects.get(table)
    return False


def _columns_not_carried(table: Address, step: Step, scene: Scene) -> list[Loss]:
    return [
        Loss(f"column {'.'.join(address.path)} and its values", step.sql)
        for address, old in scene.before.objects.items()
        if address.kind == "column"
        and address.path[:2] == table.path
        and address not in scene.after.objects
        and not old.get("generated")
    ]


def _touched(order: list[Node], scene: Scene) -> tuple[tuple[str, str], ...]:
    """Tables that exist before and after and have a statement of the plan on them or their parts."""
    found = set()
    for node in order:
        address = None if node.action == "decorate" else _table_of(node, scene)
        if address is not None and address in scene.before.objects and address in scene.after.objects:
            found.add((address.path[0], address.path[1]))
    return tuple(sorted(found))


def _table_of(node: Node, scene: Scene) -> Address | None:
    """The table on which a statement works, None for one that stands elsewhere."""
    if node.address.kind in TABLE_PARTS:
        return Address("table", node.address.path[:2])
    if node.address.kind == "index":
        obj = scene.after.objects.get(node.address) or scene.before.objects[node.address]
        return Address("table", tuple(obj.get("table")))
    return None
