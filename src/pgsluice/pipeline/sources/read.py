"""Read a schema folder: every statement of it, in an order in which the whole loads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pgsluice.pipeline.digest import relative_name, schema_digest, schema_files
from pgsluice.pipeline.sources.catalog import Catalog, Entry
from pgsluice.pipeline.sources.directives import find_renames
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.graph import Graph
from pgsluice.pipeline.sources.kinds import check_allowed
from pgsluice.pipeline.sources.layout import lay_out
from pgsluice.pipeline.sources.model import Rename, SchemaSource, SourceFile
from pgsluice.pipeline.sources.names import Trait
from pgsluice.pipeline.sources.parse import parse_file, read_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
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
    superusers = {entry.facts.superuser for entry in entries}
    return SchemaSource(
        statements=lay_out(entries, graph),
        digest=schema_digest(folder),
        renames=tuple(renames),
        roles=tuple(sorted(roles)),
        superusers=tuple(sorted(filter(None, superusers))),
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
