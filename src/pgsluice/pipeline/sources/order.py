"""Order a graph of statements: needs first, otherwise as given; cycles are broken where they may be."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# What it costs to ignore a need that closes a cycle.
FOREIGN_KEY: Final = 1  # can be added later
WISH: Final = 10  # may not be a need at all
NEED: Final = 1_000_000  # cannot be ignored

# For each node, the nodes that must come before it, with the cost of ignoring each.
Needs = list[dict[int, int]]


class CycleError(ValueError):
    """Nodes that need each other: each needs the next, the last the first."""

    def __init__(self, nodes: Sequence[int]) -> None:
        super().__init__(f"cycle of {len(nodes)} nodes")
        self.nodes = tuple(nodes)


@dataclass(frozen=True, slots=True)
class Order:
    """The nodes in order, and the (node, needed node) pairs that were ignored to get there."""

    nodes: tuple[int, ...]
    ignored: frozenset[tuple[int, int]] = field(default_factory=frozenset)


def arrange(needs: Needs, given: Sequence[int] = ()) -> Order:
    """Order nodes so that what each needs comes before it, and otherwise as given.

    Args:
        needs: What each node needs.
        given: All nodes in the order to keep where needs allow; by number if left out.

    Raises:
        CycleError: Some nodes need each other with no need among them that may be ignored.
    """
    ignored = {
        (node, needed)
        for component in _components(needs)
        if len(component) > 1
        for node, needed in _break(component, needs)
    }
    roots = given or range(len(needs))
    return Order(tuple(_depth_first(needs, roots, ignored=ignored)), frozenset(ignored))


def _break(component: Iterable[int], needs: Needs) -> Iterator[tuple[int, int]]:
    """The needs to ignore among nodes that all reach each other: greedy, cheapest node first."""
    members = sorted(component)
    inside = set(members)
    users: dict[int, list[tuple[int, int]]] = {node: [] for node in members}
    cost: dict[int, int] = {}
    for node in members:
        own = [(needed, weight) for needed, weight in needs[node].items() if needed in inside]
        cost[node] = sum(weight for _, weight in own)
        for needed, weight in own:
            users[needed].append((node, weight))
    ready = [(cost[node], node) for node in members if cost[node] < NEED]
    heapq.heapify(ready)
    done: set[int] = set()
    while ready:
        price, node = heapq.heappop(ready)
        if node in done or price != cost[node]:
            continue
        yield from ((node, needed) for needed in needs[node] if needed in inside and needed not in done)
        done.add(node)
        for user, weight in users[node]:
            cost[user] -= weight
            if user not in done and cost[user] < NEED:
                heapq.heappush(ready, (cost[user], user))
    if len(done) < len(members):
        raise CycleError(_find_cycle(inside - done, needs))


def _find_cycle(nodes: set[int], needs: Needs) -> list[int]:
    """One cycle of needs that cannot be ignored, from its smallest node on."""
    path = [min(nodes)]
    while True:
        following = min(
            needed for needed, weight in needs[path[-1]].items() if weight >= NEED and needed in nodes
        )
        if following in path:
            cycle = path[path.index(following) :]
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
        path.append(following)


def _depth_first(needs: Needs, roots: Sequence[int], *, ignored: set[tuple[int, int]]) -> Iterator[int]:
    seen: set[int] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(sorted(needs[root])))]
        while stack:
            node, rest = stack[-1]
            for needed in rest:
                if needed not in seen and (node, needed) not in ignored:
                    seen.add(needed)
                    stack.append((needed, iter(sorted(needs[needed]))))
                    break
            else:
                stack.pop()
                yield node


def _components(needs: Needs) -> Iterator[list[int]]:
    """The strongly connected components (Tarjan), without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    for root in range(len(needs)):
        if root in index:
            continue
        work = [(root, iter(needs[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while work:
            node, rest = work[-1]
            for needed in rest:
                if needed not in index:
                    index[needed] = low[needed] = len(index)
                    open_nodes.append(needed)
                    is_open.add(needed)
                    work.append((needed, iter(needs[needed])))
                    break
                if needed in is_open:
                    low[node] = min(low[node], index[needed])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == index[node]:
                    yield _close(open_nodes, is_open, last=node)


def _close(open_nodes: list[int], is_open: set[int], *, last: int) -> list[int]:
    component: list[int] = []
    while not component or component[-1] != last:
        component.append(open_nodes.pop())
    is_open.difference_update(component)
    return component
