"""What an adopted schema stands on: extensions, and objects that no migration can change yet.

Extensions in their usual schema are named in `requires`. All else goes into a script that `requires` names:
extensions in another schema, and base types, languages, transforms, access methods and parsers with what
they need. Both sides of every comparison get it, so the rest of the schema can use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.quoting import quote_identifier
from pgsluice.pipeline.sources.catalog import Catalog, Entry
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.sources.parse import Parsed

EXTENSIONS: Final = """
select e.extname::text, n.nspname::text
from pg_catalog.pg_extension as e
join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
where e.oid >= 16384
order by e.oid
"""
OWN_SCHEMAS: Final = """
select v.name::text, v.schema::text
from pg_catalog.pg_available_extension_versions as v
join pg_catalog.pg_available_extensions as a on a.name = v.name and a.default_version = v.version
where v.name = any(%s) and v.schema is not null
"""
USUAL_SCHEMA: Final = "public"
# Statements that make what a migration cannot, and the word for it; DefineStmt by its own kind.
_UNMOVED: Final = {
    "CreateAmStmt": ("access method", "amname"),
    "CreatePLangStmt": ("language", "plname"),
    "CreateTransformStmt": ("transform", "lang"),
}
_UNMOVED_DEFINITIONS: Final = {
    "OBJECT_TYPE": "base type",
    "OBJECT_TSPARSER": "text search parser",
    "OBJECT_TSTEMPLATE": "text search template",
}


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension of the live database; `schema` is where its objects are."""

    name: str
    schema: str


@dataclass(frozen=True, slots=True)
class Requirements:
    """`entries` of `requires`, and the script that one of them names, with what it makes and why."""

    entries: tuple[str, ...]
    script: str | None
    reasons: tuple[str, ...]


def read_extensions(conn: psycopg.Connection[Any]) -> tuple[Extension, ...]:
    """The extensions of a database but for those that every database has, in the order of their creation."""
    return tuple(Extension(*row) for row in conn.execute(EXTENSIONS).fetchall())


def refuse_missing_extensions(server: DevServer, extensions: Sequence[Extension], *, major: int) -> None:
    """Raise when the dev server lacks extensions that no recipe stands in for.

    Args:
        server: The dev server.
        extensions: Those of the live database.
        major: Its server's.

    Raises:
        InputError: It names all of them, and the option that chooses another server.
    """
    names = [extension.name for extension in extensions]
    offered = server.extensions.versions(names)
    missing = [name for name in names if name not in offered and name != "pgmq"]
    if not missing:
        return
    raise InputError(
        f"{server.description} lacks extensions of the database: {', '.join(missing)}",
        hint=f"name a dev server that has them: --dev local:/usr/lib/postgresql/{major}/bin, "
        f"--dev docker://postgres:{major} or --dev postgresql://...",
    )


def find_requirements(
    statements: Sequence[Parsed],
    extensions: Sequence[Extension],
    *,
    own_schemas: dict[str, str],
    given: Sequence[str],
    script: str,
) -> Requirements:
    """What goes into `requires`.

    Args:
        statements: The dump.
        extensions: Those of the live database.
        own_schemas: The schema that an extension's control file fixes, by extension.
        given: Entries that the user named.
        script: The name that the script gets if there is need of one.
    """
    usual = [one for one in extensions if one.schema == own_schemas.get(one.name, USUAL_SCHEMA)]
    moved = [one for one in extensions if one not in usual]
    kept = sorted(_closure(statements))
    parts = [
        text
        for one in moved
        for text in (
            f"create schema if not exists {quote_identifier(one.schema)};",
            f"create extension if not exists {quote_identifier(one.name)} "
            f"with schema {quote_identifier(one.schema)} cascade;",
        )
    ]
    parts += [f"{_if_needed(statements[number])};" for number in kept]
    reasons = [f"extension {one.name} in schema {one.schema}" for one in moved]
    reasons += [f"{word} {name}" for word, name in filter(None, map(unmoved, statements))]
    names = [one.name for one in usual if one.name not in given]
    own = [script] if parts else []
    text = "\n\n".join(dict.fromkeys(parts)) + "\n" if parts else None
    return Requirements((*names, *own, *given), text, tuple(dict.fromkeys(reasons)))


def unmoved(parsed: Parsed) -> tuple[str, str] | None:
    """Kind and name of what a statement makes, if no migration can make or change it."""
    if parsed.kind in _UNMOVED:
        word, key = _UNMOVED[parsed.kind]
        return word, str(parsed.node[key])
    if parsed.kind != "DefineStmt" or parsed.node["kind"] not in _UNMOVED_DEFINITIONS:
        return None
    names = [item["String"]["sval"] for item in parsed.node["defnames"]]
    return _UNMOVED_DEFINITIONS[parsed.node["kind"]], ".".join(names)


def _closure(statements: Sequence[Parsed]) -> set[int]:
    """The statements that make what no migration can, and all that they need."""
    wanted = [number for number, parsed in enumerate(statements) if unmoved(parsed) is not None]
    if not wanted:
        return set()
    creating = [number for number, parsed in enumerate(statements) if _creates(parsed)]
    entries = [_entry(statements[number]) for number in creating]
    place = {number: index for index, number in enumerate(creating)}
    graph = Graph(Catalog(entries))
    names = {definition.name for number in wanted for definition in entries[place[number]].facts.definitions}
    seen = {place[number] for number in wanted}
    waiting = list(seen)
    while waiting:
        index = waiting.pop()
        for needed in graph.needs[graph.node(index)]:
            for other in graph.nodes[needed]:
                if other not in seen and _is_needed(entries[other], names):
                    seen.add(other)
                    waiting.append(other)
    return {creating[index] for index in seen}


def _is_needed(entry: Entry, names: set[Any]) -> bool:
    """Whether an object may go along: what is about rows or a whole database stays with the migrations."""
    return bool(entry.facts.definitions) or any(name in names for name in entry.facts.alters)


def _creates(parsed: Parsed) -> bool:
    return parsed.kind not in ("CommentStmt", "GrantStmt", "AlterOwnerStmt", "AlterDefaultPrivilegesStmt")


def _entry(parsed: Parsed) -> Entry:
    line = parsed.file.text.count("\n", 0, parsed.start) + 1
    return Entry(parsed.file, parsed.start, parsed.end, line, parsed.kind, find_facts(parsed))


def _if_needed(parsed: Parsed) -> str:
    """A schema may be made for an extension already."""
    if parsed.kind != "CreateSchemaStmt":
        return parsed.text
    return f"create schema if not exists {quote_identifier(parsed.node['schemaname'])}"
