"""Sorting: phases pulled early by what depends on them, then dependency order within a phase."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def components(nodes: Iterable[Key], edges: Mapping[Key, set[Key]]) -> list[list[Key]]:
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[Key, int] = {}
    low: dict[Key, int] = {}
    stack: list[Key] = []
    on_stack: set[Key] = set()
    found: list[list[Key]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            advanced = False
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges.get(target, ()))))
                    advanced = True
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                group: list[Key] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    group.append(member)
                    if member == node:
                        break
                if len(group) > 1:
                    found.append(group)
    return found


def topological(
    nodes: Iterable[Key], edges: Mapping[Key, set[Key]], *, rank: Mapping[Key, tuple[object, ...]]
) -> list[Key]:
    """Every node after its predecessors, the lowest rank first; `edges` lead from earlier to later."""
    waiting: dict[Key, int] = defaultdict(int)
    for node in nodes:
        waiting[node] += 0
        for target in edges.get(node, ()):
            waiting[target] += 1
    by_rank = sorted(waiting, key=lambda node: rank[node])
    place = {node: position for position, node in enumerate(by_rank)}
    ready = [place[node] for node in by_rank if waiting[node] == 0]
    heapq.heapify(ready)
    result: list[Key] = []
    while ready:
        node = by_rank[heapq.heappop(ready)]
        result.append(node)
        for target in edges.get(node, ()):
            waiting[target] -= 1
            if waiting[target] == 0:
                heapq.heappush(ready, place[target])
    return result


def pull_early(order: Iterable[Key], edges: Mapping[Key, set[Key]], *, phase: dict[Key, int]) -> None:
    """Lower each node's phase to the earliest phase of what comes after it, in place."""
    for node in reversed(list(order)):
        for target in edges.get(node, ()):
            phase[node] = min(phase[node], phase[target])
