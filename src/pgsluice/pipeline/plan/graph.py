"""The plan as a graph: one node a statement, one edge for each "must come before"."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgsluice.pipeline.generate import KINDS, Scene, Step
from pgsluice.pipeline.generate.columns import add_column
from pgsluice.pipeline.generate.decoration import decorate_changed, decorate_new
from pgsluice.pipeline.generate.held import drop_aside, put_aside
from pgsluice.pipeline.generate.lineage import brought_by
from pgsluice.pipeline.generate.not_null import is_key_of_inherited, is_plain
from pgsluice.pipeline.generate.partitions import is_written_by_partition
from pgsluice.pipeline.generate.tables import create_table
from pgsluice.pipeline.generate.types import create_domain
from pgsluice.pipeline.plan.carry import carried_columns, rows_aside, rows_back
from pgsluice.pipeline.plan.events import Events, container, steps_aside, taken_along
from pgsluice.pipeline.plan.occupied import ROUTINES, occupied
from pgsluice.pipeline.plan.ownership import add_ownership
from pgsluice.pipeline.plan.partitions import add_partition_moves
from pgsluice.pipeline.plan.persistence import order_persistence
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

EARLY = frozenset({Phase.PREPARE, Phase.EXPAND})
# Parts of a table that can be dropped ahead of it, where a cycle wants it.
CUTTABLE = frozenset({"default", "constraint", "index", "trigger", "policy", "rule"})
# Their `install` steps are switches and tuning, which nobody has to wait for.
STRUCTURAL = frozenset({"table", "column"})


@dataclass(frozen=True, slots=True)
class Node:
    """One statement: what it does (`drop`, `create`, …) to which object, and its place among its steps."""

    action: str
    address: Address
    position: int


@dataclass
class Graph:
    """Nodes with their steps; `edges` are certain, `hints` may be given up."""

    steps: dict[Node, Step] = field(default_factory=dict)
    edges: dict[Node, set[Node]] = field(default_factory=lambda: defaultdict(set))
    hints: dict[Node, set[Node]] = field(default_factory=lambda: defaultdict(set))
    chains: dict[tuple[str, Address], list[Node]] = field(default_factory=dict)

    def add(self, action: str, address: Address, steps: Iterable[Step]) -> None:
        """A chain of statements on one object, each after the one before."""
        chain = self.chains.setdefault((action, address), [])
        for step in steps:
            node = Node(action, address, len(chain))
            self.steps[node] = step
            if chain:
                self.edges[chain[-1]].add(node)
            chain.append(node)

    def alias(self, action: str, address: Address, to: tuple[str, Address]) -> None:
        """Let the statements of another object stand for this one's."""
        self.chains[action, address] = self.chains.get(to, [])

    def of(self, action: str, address: Address) -> list[Node]:
        return self.chains.get((action, address), [])

    def precede(self, earlier: Iterable[Node], later: Iterable[Node]) -> None:
        """Every node of `earlier` before every node of `later`."""
        targets = list(later)
        for node in earlier:
            self.edges[node].update(target for target in targets if target != node)


def build_graph(events: Events, scene: Scene, *, apart: frozenset[Address]) -> Graph:
    """All statements with their constraints of order.

    Args:
        events: What happens to each object.
        scene: Both catalogs.
        apart: Tables whose defaults and constraints must not stand inside `create table`, or go with
            `drop table`: they close a cycle there.
    """
    graph = Graph()
    _add_drops(graph, events, scene, apart)
    _add_creates(graph, events, scene, apart)
    for address in sorted(events.altered):
        graph.add("alter", address, events.altered[address].steps)
        old, new = scene.before.objects[address], scene.after.objects[address]
        graph.add("decorate", address, decorate_changed(old, new, scene))
    _follow_parents(graph, events, scene)
    _discard_last(graph, events, scene)
    add_ownership(graph, events, scene)
    order_persistence(graph, events, scene)
    _add_carried_rows(graph, events, scene)
    add_partition_moves(graph, events, scene)
    _order_by_needs(graph, events, scene)
    _order_by_names(graph, events, scene)
    _keys_before_partitions(graph, events, scene)
    return graph


def _keys_before_partitions(graph: Graph, events: Events, scene: Scene) -> None:
    """A foreign key to a partitioned table goes before the partitions, each of which it holds."""
    objects = scene.before.objects
    keys: dict[tuple[str, ...], list[Address]] = defaultdict(list)
    for address in sorted(events.destroyed):
        if address.kind == "constraint" and objects[address].get("type") == "f":
            keys[tuple(objects[address].get("references")[:2])].append(address)
    for address in sorted(events.destroyed if keys else ()):
        parent = objects[address].get("parent") if address.kind == "table" else None
        while parent is not None:
            for key in keys.get(tuple(parent), ()):
                graph.precede(graph.of("drop", key), graph.of("drop", address))
            parent = objects[Address("table", tuple(parent))].get("parent")


def _follow_parents(graph: Graph, events: Events, scene: Scene) -> None:
    """The statement on a parent's column or constraint is the one on each inherited one too."""
    for action, addresses in (("create", events.created), ("alter", events.altered.keys())):
        for address in sorted(addresses):
            if not graph.of(action, address):
                top = _inherited_from(address, scene)
                if top != address:
                    graph.alias(action, address, (action, top))
    for address in sorted(events.destroyed):
        old = scene.before.objects[address]
        above = brought_by(old, scene.before) if old.get("inherited") == "merged" else None
        if above is not None and above in events.destroyed:
            graph.precede(graph.of("drop", above), graph.of("drop", address))


def _inherited_from(address: Address, scene: Scene) -> Address:
    for _ in range(16):
        above = brought_by(scene.after.objects[address], scene.after)
        if above is None:
            break
        address = above
    return address


def _discard_last(graph: Graph, events: Events, scene: Scene) -> None:
    """A type that was put aside goes when its columns are converted and the types made of it are gone."""
    for address in events.put_aside:
        discard = graph.of("discard", address)
        graph.precede(graph.of("drop", address), discard)
        for user in scene.users.get(address, ()):
            if user in events.converted:
                graph.precede(graph.of("alter", user), discard)
            elif user in events.put_aside:
                graph.precede(graph.of("discard", user), discard)
            elif user in events.destroyed:
                graph.precede(graph.of("drop", user), discard)


def _add_drops(graph: Graph, events: Events, scene: Scene, apart: frozenset[Address]) -> None:
    covered: list[tuple[Address, Address]] = []
    for address in sorted(events.destroyed):
        old = scene.before.objects[address]
        above = taken_along(old, events, scene)
        if above is not None and not (address.kind in CUTTABLE and _is_apart(old, apart)):
            covered.append((address, above))
            continue
        if address in events.put_aside:
            graph.add("drop", address, put_aside(old, scene))
            graph.add("discard", address, drop_aside(old, scene))
        else:
            graph.add("drop", address, KINDS[address.kind].drop(old, scene))
    above_of = dict(covered)
    for address, above in covered:
        top = above
        while top in above_of:
            top = above_of[top]
        graph.alias("drop", address, ("drop", top))


def _is_apart(old: Object, apart: frozenset[Address]) -> bool:
    table = tuple(old.get("table")) if old.kind == "index" else old.path[:2]
    return Address("table", table) in apart


def _add_creates(graph: Graph, events: Events, scene: Scene, apart: frozenset[Address]) -> None:
    objects = scene.after.objects
    inside: dict[Address, list[Object]] = defaultdict(list)
    absorbed: set[Address] = set()
    for address in sorted(events.created, key=lambda one: (one.kind, one.path)):
        holder = _absorber(objects[address], events, scene, apart)
        if holder is not None:
            inside[holder].append(objects[address])
            absorbed.add(address)
    for address in sorted(events.created):
        if address in absorbed:
            continue
        graph.add("create", address, _create_steps(objects[address], inside[address], scene))
    for holder in sorted(inside):
        for member in inside[holder]:
            top = holder
            while top in absorbed:
                top = next(one for one in (container(objects[top]),) if one is not None)
            graph.alias("create", member.address, ("create", top))
    for address in sorted(events.created):
        graph.add("decorate", address, decorate_new(objects[address], scene))


def _absorber(new: Object, events: Events, scene: Scene, apart: frozenset[Address]) -> Address | None:
    """The created object whose own statement writes `new` along."""
    table = Address("table", new.path[:2])
    if new.kind == "column":
        return table if table in events.created else None
    if new.kind == "default":
        column = Address("column", new.path)
        if column not in events.created:
            return None
        if scene.after.objects[column].get("inherited") == "only":
            is_here = table in events.created and table not in apart
            return table if is_here and is_written_by_partition(new, scene) else None
        if table in events.created:
            plain = (
                scene.after.objects[table].get("of_type") is None
                and scene.after.objects[table].get("parent") is None
            )
            return table if plain and table not in apart else None
        return column
    if new.kind == "constraint" and table in events.created and table not in apart:
        fits = (
            new.get("type") in ("c", "p", "u", "x")
            and not new.get("not_valid")
            and new.get("inherited") is None
            and not is_key_of_inherited(new, scene)
        )
        bare = new.get("index_comment") is None and scene.after.objects[table].get("form") != "foreign"
        if fits and bare:
            return table
    if new.kind == "constraint" and new.get("type") == "n":
        column = Address("column", (*new.path[:2], new.get("columns")[0]))
        says_it = column in events.created and is_plain(new) and new.get("inherited") != "only"
        return column if says_it else None
    if new.kind == "domain constraint":
        domain = Address("domain", new.path[:2])
        return (
            domain if domain in events.created and domain not in apart and not new.get("not_valid") else None
        )
    return None


def _create_steps(new: Object, members: list[Object], scene: Scene) -> list[Step]:
    if new.kind == "table":
        columns = sorted(
            (one for one in members if one.kind == "column"), key=lambda one: int(one.get("position"))
        )
        defaults = {one.path[2]: str(one.get("expression")) for one in members if one.kind == "default"}
        constraints = sorted(
            (one for one in members if one.kind == "constraint" and one.get("type") != "n"),
            key=_constraint_rank,
        )
        return create_table(new, scene, columns=columns, defaults=defaults, constraints=constraints)
    if new.kind == "domain":
        return create_domain(new, members)
    if new.kind == "column":
        default = next((str(one.get("expression")) for one in members if one.kind == "default"), None)
        return add_column(new, scene, default=default)
    return KINDS[new.kind].create(new, scene)


def _constraint_rank(one: Object) -> tuple[int, str]:
    return ("pucx".index(one.get("type")), one.path[2])


def _add_carried_rows(graph: Graph, events: Events, scene: Scene) -> None:
    for address in sorted(events.destroyed & events.created):
        columns = carried_columns(address, events, scene)
        if not columns:
            continue
        graph.add("keep", address, rows_aside(address, columns, events, scene))
        graph.add("refill", address, rows_back(address, columns, events, scene))
        graph.precede(graph.of("keep", address), graph.of("drop", address))
        for column in columns:
            inherited = scene.after.objects[Address("column", (*address.path, column))]
            above = brought_by(inherited, scene.after)
            graph.precede(graph.of("create", above) if above else (), graph.of("refill", address))
        for user in scene.users.get(address, ()):
            graph.precede(graph.of("keep", address), graph.of("drop", user) + graph.of("alter", user))
        tables = [one for one in events.created if one.kind == "table"]
        for table in tables:
            graph.precede(graph.of("create", table)[:1], graph.of("refill", address))


def _waited_for(graph: Graph, address: Address, user: Object) -> list[Node]:
    """The statements on `address` after which something that stands on it can be made."""
    nodes = graph.of("create", address) or graph.of("alter", address)
    if address.kind not in STRUCTURAL:
        return nodes
    late = user.kind in ("constraint", "index")
    return [
        node
        for node in nodes
        if graph.steps[node].phase in EARLY or (late and graph.steps[node].phase is Phase.ENFORCE)
    ]


def _order_by_needs(graph: Graph, events: Events, scene: Scene) -> None:
    before, after = scene.before.objects, scene.after.objects
    for address in events.created:
        new, nodes = after[address], graph.of("create", address)
        if address in events.destroyed:
            graph.precede(graph.of("drop", address), nodes)
        for needed in new.needs:
            if _is_inside(address, needed) and needed in events.altered:
                continue
            if nodes and needed.path[:2] == address.path[:2] != nodes[0].address.path[:2]:
                continue  # a tree's statement brings it to the partition, whenever that comes
            waits = [node for node in _waited_for(graph, needed, new) if node not in nodes]
            graph.precede(waits, nodes[:1])
        for mentioned in new.hints:
            _hint(graph, _waited_for(graph, mentioned, new), nodes)
        graph.precede(nodes, [node for node in graph.of("decorate", address) if node not in nodes])
    for address in events.altered:
        nodes = graph.of("alter", address)
        for needed in after[address].needs:
            if not _is_inside(address, needed):
                graph.precede(_waited_for(graph, needed, after[address]), nodes)
        for mentioned in after[address].hints:
            _hint(graph, _waited_for(graph, mentioned, after[address]), nodes)
        for needed in before[address].needs:
            if needed in events.destroyed and needed not in after[address].needs:
                if address not in events.converted:
                    graph.precede(nodes, graph.of("drop", needed))
            elif needed in events.altered and steps_aside(address, needed, events, scene):
                graph.precede(nodes, graph.of("alter", needed))
        graph.precede(nodes, graph.of("decorate", address))
        if address.kind == "table" and {"parent", "inherits", "bound"} & _changed(
            before[address], after[address]
        ):
            _children_first(graph, address, scene)
    for address in events.destroyed:
        nodes = graph.of("drop", address)
        for needed in before[address].needs:
            if needed in events.destroyed:
                targets = [node for node in graph.of("drop", needed) if node not in nodes]
                graph.precede([node for node in nodes if node not in targets], targets)
            elif needed in events.altered:
                graph.precede(nodes, graph.of("alter", needed))


def _changed(old: Object, new: Object) -> set[str]:
    return {facet for facet in ("parent", "inherits", "bound") if old.get(facet) != new.get(facet)}


def _is_inside(address: Address, needed: Address) -> bool:
    return (
        needed.kind == "table"
        and address.kind in ("column", "constraint")
        and address.path[:2] == needed.path
    )


def _children_first(graph: Graph, table: Address, scene: Scene) -> None:
    """A table that joins a tree must have its columns and checks right before it does."""
    for address in scene.after.objects:
        if address.kind in ("column", "constraint") and address.path[:2] == table.path:
            nodes = graph.of("create", address) + graph.of("alter", address)
            own = [node for node in nodes if node.address.path[:2] == table.path]
            graph.precede(own, graph.of("alter", table))


def _hint(graph: Graph, earlier: list[Node], later: list[Node]) -> None:
    for node in earlier:
        graph.hints[node].update(target for target in later if target != node)


def _order_by_names(graph: Graph, events: Events, scene: Scene) -> None:
    freed: dict[tuple[str, ...], list[Address]] = defaultdict(list)
    for address in events.destroyed:
        for name in occupied(scene.before.objects[address]):
            freed[name].append(address)
    for address in sorted(events.created | events.altered.keys()):
        action = "create" if address in events.created else "alter"
        for name in occupied(scene.after.objects[address]):
            for old in freed.get(name, ()):
                if old != address:
                    graph.precede(graph.of("drop", old), graph.of(action, address))
    _drop_old_signatures_first(graph, events)


def _drop_old_signatures_first(graph: Graph, events: Events) -> None:
    """A routine's old signature goes before the new one comes, where nothing else says otherwise."""
    gone: dict[tuple[str, ...], list[Address]] = defaultdict(list)
    for address in events.destroyed:
        if address.kind in ROUTINES:
            gone[address.path[:2]].append(address)
    for address in events.created:
        if address.kind in ROUTINES:
            for old in gone.get(address.path[:2], ()):
                _hint(graph, graph.of("drop", old), graph.of("create", address))
