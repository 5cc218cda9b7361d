"""Statements in load order: the graph's order, with the foreign keys that close a circle split off."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from pgsluice.errors import InputError
from pgsluice.pipeline.sources.foreign_keys import SplitKey, split_keys, with_nameless
from pgsluice.pipeline.sources.model import SourceStatement
from pgsluice.pipeline.sources.order import CycleError, Order, arrange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.sources.catalog import Entry
    from pgsluice.pipeline.sources.graph import Graph


def lay_out(entries: Sequence[Entry], graph: Graph) -> tuple[SourceStatement, ...]:
    """The statements in load order.

    Raises:
        InputError: Statements need each other in a way that no foreign key explains.
    """
    try:
        order = arrange(graph.needs)
    except CycleError as exc:
        raise _cycle_error(entries, graph, exc) from exc
    texts: dict[int, str] = {}
    keys: list[tuple[int, SplitKey]] = []
    for number, bytes_ in _keys_to_split(entries, graph, order).items():
        texts[number], split = split_keys(entries[number].text, bytes_)
        keys += [(number, key) for key in split]
    nodes = order.nodes if not keys else _with_keys(graph, order, keys)
    statements: list[SourceStatement] = []
    for node in nodes:
        if node < len(graph.nodes):
            statements += [_statement(entries[number], texts.get(number)) for number in graph.nodes[node]]
        else:
            number, key = keys[node - len(graph.nodes)]
            statements.append(_key_statement(entries[number], key))
    return tuple(statements)


def _with_keys(graph: Graph, order: Order, keys: Sequence[tuple[int, SplitKey]]) -> tuple[int, ...]:
    """The order with the split keys in it, each as early as what it needs allows."""
    place = {node: index for index, node in enumerate(order.nodes)}
    nodes = [(index, -1, node) for index, node in enumerate(order.nodes)]
    earliest: dict[int, int] = {}
    for position, (number, key) in enumerate(keys):
        needed = (number, *graph.key_needs[number, key.byte])
        # not before the table's keys in front of it: automatic names follow the order
        after = max(earliest.get(number, 0), *(place[graph.node(other)] for other in needed))
        earliest[number] = after
        bisect.insort(nodes, (after, position, len(graph.nodes) + position))
    needs = graph.with_keys([(number, key.byte) for number, key in keys], ignored=order.ignored)
    return arrange(needs, [node for *_, node in nodes]).nodes


def _keys_to_split(entries: Sequence[Entry], graph: Graph, order: Order) -> dict[int, frozenset[int]]:
    """The foreign keys that refer to a table loaded later, by statement."""
    if not order.ignored:
        return {}
    chosen: dict[int, set[int]] = {}
    for (number, byte), needed in graph.key_needs.items():
        node = graph.node(number)
        if any((node, graph.node(other)) in order.ignored for other in needed):
            chosen.setdefault(number, set()).add(byte)
    return {number: with_nameless(entries[number].text, keys) for number, keys in chosen.items()}


def _statement(entry: Entry, text: str | None) -> SourceStatement:
    return SourceStatement(
        entry.text if text is None else text,
        entry.file.name,
        entry.line,
        entry.start,
        keeps_order=entry.keeps_order,
    )


def _key_statement(entry: Entry, key: SplitKey) -> SourceStatement:
    offset = entry.start + key.position
    line = entry.line + entry.text.count("\n", 0, key.position)
    return SourceStatement(key.text, entry.file.name, line, offset, is_verbatim=False)


def _cycle_error(entries: Sequence[Entry], graph: Graph, error: CycleError) -> InputError:
    cycle = [entries[graph.nodes[node][0]] for node in error.nodes]
    pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    return InputError(
        "these statements need each other, so that no order loads them",
        location=cycle[0].location,
        details=tuple(f"{entry.location}: {entry} needs {needed}" for entry, needed in pairs),
        hint="take the use out of one of them, or write it as a statement of its own that comes later",
    )
