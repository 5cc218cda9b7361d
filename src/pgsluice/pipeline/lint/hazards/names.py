"""Names without a schema, and drops that take more than they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import commands, dropped, relations, walk, words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, ScriptStatement

SHOWN: Final = 3

_IN_SCHEMAS: Final = frozenset(
    {
        "OBJECT_AGGREGATE",
        "OBJECT_COLLATION",
        "OBJECT_DOMAIN",
        "OBJECT_FUNCTION",
        "OBJECT_INDEX",
        "OBJECT_MATVIEW",
        "OBJECT_PROCEDURE",
        "OBJECT_ROUTINE",
        "OBJECT_SEQUENCE",
        "OBJECT_STATISTIC_EXT",
        "OBJECT_TABLE",
        "OBJECT_TYPE",
        "OBJECT_VIEW",
    }
)
_NAMED_BY: Final = {
    "CreateFunctionStmt": "funcname",
    "CreateEnumStmt": "typeName",
    "CreateRangeStmt": "typeName",
    "CreateDomainStmt": "domainname",
    "AlterEnumStmt": "typeName",
}


_TYPES_OF: Final = {
    "AlterObjectSchemaStmt": "objectType",
    "AlterOwnerStmt": "objectType",
    "CommentStmt": "objtype",
    "RenameStmt": "renameType",
}


def check_names(context: Context) -> Iterator[LintFinding]:
    """Names that depend on the session's path."""
    script = context.script
    temporary: set[str] = set()
    for statement in script.statements:
        temporary |= _temporary(statement.node)
        names = sorted(_unqualified(statement) - temporary)
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            verb = "has" if len(names) == 1 else "have"
            yield found(
                "unqualified-name",
                f"{', '.join(names[:SHOWN])}{more} {verb} no schema",
                script.location(statement),
                end_line=script.end_line(statement),
            )


def check_cascades(context: Context) -> Iterator[LintFinding]:
    """`cascade` in drops and truncates."""
    script = context.script
    for statement in script.statements:
        words_ = _cascade(statement)
        if words_ is not None:
            yield found(
                "drop-cascade",
                f"{words_} with cascade",
                script.location(statement),
                end_line=script.end_line(statement),
            )


def _unqualified(statement: ScriptStatement) -> set[str]:
    """The names of relations, types and functions that a statement gives without a schema."""
    kind, node = statement.kind, statement.node
    if kind == "CreateSchemaStmt":
        return set()
    own = {content.get("ctename", "") for name, content in walk(node) if name == "CommonTableExpr"}
    locked = [
        relation for name, content in walk(node) if name == "LockingClause" for relation in relations(content)
    ]
    found_ = {
        one["relname"]
        for one in relations(node)
        if "schemaname" not in one
        and one["relpersistence"] != "t"
        and not one["relname"].startswith("pg_")
        and one not in locked  # `for update of` takes the names that `from` gives
    } - own
    if kind == "DropStmt" and node.get("removeType") in _IN_SCHEMAS:
        found_ |= {parts[0] for parts in dropped(node) if len(parts) == 1}
    if node.get(_TYPES_OF.get(kind, "")) in _IN_SCHEMAS and "object" in node:
        found_ |= {parts[0] for parts in dropped({"objects": [node["object"]]}) if len(parts) == 1}
    if kind == "AlterFunctionStmt":
        found_ |= {
            parts[0] for parts in dropped({"objects": [{"ObjectWithArgs": node["func"]}]}) if len(parts) == 1
        }
    if kind in _NAMED_BY:
        parts = words(node.get(_NAMED_BY[kind]))
        if len(parts) == 1:
            found_.add(parts[0])
    return found_


def _temporary(node: Node) -> set[str]:
    return {one["relname"] for one in relations(node) if one["relpersistence"] == "t"}


def _cascade(statement: ScriptStatement) -> str | None:
    kind, node = statement.kind, statement.node
    if node.get("behavior") == "DROP_CASCADE":
        if kind == "DropStmt":
            what = str(node["removeType"]).removeprefix("OBJECT_").lower().replace("_", " ")
            return f"drop {what}"
        if kind == "TruncateStmt":
            return "truncate"
        if kind == "DropOwnedStmt":
            return "drop owned"
    if kind == "AlterTableStmt":
        for command in commands(node):
            if command.get("behavior") == "DROP_CASCADE" and str(command["subtype"]).startswith("AT_Drop"):
                return f"drop {str(command['subtype']).removeprefix('AT_Drop').lower()}"
    return None
