"""How many locks a file holds at its end, estimated from its text.

The lock table has max_locks_per_transaction * max_connections entries, 64 * 100 by default, shared by all
sessions. One relation takes one entry, whatever its modes. A new table comes with a TOAST table and its index
where a column can be long, an index for each key, a sequence for each identity. An altered table takes one; a
dropped one takes its indexes and TOAST table along, of which the text shows nothing: one index is assumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import Name, commands, dropped, relation_name, relations, words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, ScriptStatement

LOCK_TABLE: Final = 64 * 100
TOAST: Final = 2
DROPPED: Final = 1 + 1 + TOAST

_KEYS: Final = frozenset({"CONSTR_PRIMARY", "CONSTR_UNIQUE", "CONSTR_EXCLUSION"})
_SERIAL: Final = frozenset({"smallserial", "serial", "bigserial", "serial2", "serial4", "serial8"})
_SHORT: Final = _SERIAL | {
    "bool",
    "char",
    "date",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "interval",
    "money",
    "name",
    "oid",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "uuid",
}
_SCHEMA_PARTS: Final = 2


def check_locks(context: Context) -> Iterator[LintFinding]:
    """Warn where the estimate passes what the default lock table holds."""
    script = context.script
    if not script.transactional:
        return
    locks: dict[Name, int] = {}
    total = 0
    for statement in script.statements:
        for name, count in _locks(statement):
            if count > locks.get(name, 0):
                total += count - locks.get(name, 0)
                locks[name] = count
        if total > LOCK_TABLE:
            every = estimate(script.statements)
            yield found(
                "too-many-locks",
                f"about {every} locks in one transaction; here it passes {LOCK_TABLE}",
                script.location(statement),
                end_line=script.end_line(statement),
            )
            return


def estimate(statements: tuple[ScriptStatement, ...]) -> int:
    """How many locks the statements hold together when the last one ran."""
    locks: dict[Name, int] = {}
    for statement in statements:
        for name, count in _locks(statement):
            locks[name] = max(count, locks.get(name, 0))
    return sum(locks.values())


def _locks(statement: ScriptStatement) -> Iterator[tuple[Name, int]]:
    """The relations that a statement locks, each with what it brings along."""
    kind, node = statement.kind, statement.node
    if kind == "CreateStmt":
        yield relation_name(node["relation"]), _of_table(node)
    elif kind == "IndexStmt":
        schema = node["relation"].get("schemaname")
        yield (schema, node.get("idxname") or f"index at {statement.start}"), 1
    elif kind == "DropStmt":
        count = DROPPED if node.get("removeType") == "OBJECT_TABLE" else 1
        if node.get("removeType") in {"OBJECT_TABLE", "OBJECT_VIEW", "OBJECT_MATVIEW", "OBJECT_INDEX"}:
            for parts in dropped(node):
                yield (parts[-2] if len(parts) >= _SCHEMA_PARTS else None, parts[-1]), count
    elif kind == "AlterTableStmt" and node.get("objtype") == "OBJECT_TABLE":
        added = sum(_index_of(command) for command in commands(node))
        yield relation_name(node["relation"]), 1 + added
    for relation in relations(node):
        yield relation_name(relation), 1


def _of_table(node: Node) -> int:
    columns = [item["ColumnDef"] for item in node.get("tableElts", ()) if "ColumnDef" in item]
    constraints = [item["Constraint"] for item in node.get("tableElts", ()) if "Constraint" in item]
    constraints += [
        item["Constraint"]
        for column in columns
        for item in column.get("constraints", ())
        if "Constraint" in item
    ]
    keys = sum(one["contype"] in _KEYS for one in constraints)
    counters = sum(one["contype"] == "CONSTR_IDENTITY" for one in constraints)
    counters += sum(_type(column) in _SERIAL for column in columns)
    is_long = any(_type(column) not in _SHORT for column in columns)
    toast = TOAST if is_long and "partspec" not in node else 0
    return int(1 + keys + counters + toast)


def _index_of(command: Node) -> int:
    constraint = command.get("def", {}).get("Constraint", {})
    return int(constraint.get("contype") in _KEYS and "indexname" not in constraint)


def _type(column: Node) -> str:
    named = column.get("typeName", {})
    return "" if named.get("arrayBounds") else (words(named.get("names")) or ("",))[-1]
