"""Read a schema folder: every statement of it, in an order in which the whole loads."""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import TYPE_CHECKING

from pgsluice.errors import InputError
from pgsluice.pipeline.digest import relative_name, schema_digest, schema_files
from pgsluice.pipeline.sources.catalog import Catalog, Entry
from pgsluice.pipeline.sources.directives import find_renames
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.foreign_keys import split_keys, with_nameless
from pgsluice.pipeline.sources.graph import Graph
from pgsluice.pipeline.sources.kinds import check_allowed
from pgsluice.pipeline.sources.model import Rename, SchemaSource, SourceFile, SourceStatement
from pgsluice.pipeline.sources.names import Trait
from pgsluice.pipeline.sources.order import CycleError, Order, arrange
from pgsluice.pipeline.sources.parse import parse_file, read_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path


def read_schema(folder: Path, *, root: Path, known: Collection[str] = ()) -> SchemaSource:
    """Read `folder/**/*.sql` and put its statements in load order.

    Args:
        folder: The schema folder; an empty one is legal.
        root: What file names in the result and in messages are relative to.
        known: Schemas, or qualified names, that something else defines (the target's `requires`).

    Raises:
        InputError: A file or statement that cannot be used, an object defined twice, statements that need
            each other; each with its place.
    """
    files = [read_file(path, relative_name(path, root)) for _, path in schema_files(folder, root=root)]
    entries: list[Entry] = []
    renames: list[Rename] = []
    for file in files:
        own = _read_entries(file)
        entries += own
        renames += find_renames(file, own)
    graph = Graph(Catalog(entries, known))
    roles = {role for entry in entries for role in entry.facts.roles}
    return SchemaSource(
        statements=_ordered(entries, graph),
        digest=schema_digest(folder),
        renames=tuple(renames),
        roles=tuple(sorted(roles)),
        files={file.name: file for file in files},
    )


def read_entries(files: Iterable[SourceFile]) -> list[Entry]:
    """The statements of files with what ordering knows about them, in file order."""
    return [entry for file in files for entry in _read_entries(file)]


def _read_entries(file: SourceFile) -> list[Entry]:
    entries = []
    line, counted = 1, 0
    for parsed in parse_file(file):
        check_allowed(parsed)
        line += file.text.count("\n", counted, parsed.start)
        counted = parsed.start
        entries.append(Entry(file, parsed.start, parsed.end, line, parsed.kind, find_facts(parsed)))
    if any(Trait.IMPERATIVE in entry.facts.traits for entry in entries):
        return [replace(entry, keeps_order=True) for entry in entries]
    return entries


def _ordered(entries: Sequence[Entry], graph: Graph) -> tuple[SourceStatement, ...]:
    try:
        order = arrange(graph.needs)
    except CycleError as exc:
        raise _cycle_error(entries, graph, exc) from exc
    numbers = [number for node in order.nodes for number in graph.nodes[node]]
    place = {number: index for index, number in enumerate(numbers)}
    texts: dict[int, str] = {}
    later: list[tuple[int, int, int, SourceStatement]] = []
    for number, keys in _keys_to_split(entries, graph, order).items():
        entry = entries[number]
        texts[number], split = split_keys(entry.text, keys)
        after = place[number]
        for key in split:  # one after the other: names depend on it
            after = max(after, *(place[other] for other in graph.key_needs[number, key.byte]))
            later.append((after, number, key.byte, _key_statement(entry, key.position, text=key.text)))
    later.sort(key=lambda item: item[:3])
    statements: list[SourceStatement] = []
    for index, number in enumerate(numbers):
        statements.append(_statement(entries[number], texts.get(number)))
        first = bisect.bisect_left(later, index, key=lambda item: item[0])
        last = bisect.bisect_right(later, index, key=lambda item: item[0])
        statements += [item[3] for item in later[first:last]]
    return tuple(statements)


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


def _key_statement(entry: Entry, position: int, *, text: str) -> SourceStatement:
    offset = entry.start + position
    line = entry.line + entry.text.count("\n", 0, position)
    return SourceStatement(text, entry.file.name, line, offset, is_verbatim=False)


def _cycle_error(entries: Sequence[Entry], graph: Graph, error: CycleError) -> InputError:
    cycle = [entries[graph.nodes[node][0]] for node in error.nodes]
    pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    return InputError(
        "these statements need each other, so that no order loads them",
        location=cycle[0].location,
        details=tuple(f"{entry.location}: {entry} needs {needed}" for entry, needed in pairs),
        hint="take the use out of one of them, or write it as a statement of its own that comes later",
    )
