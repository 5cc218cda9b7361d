"""Findings of squawk's that the rest of the file, or an earlier one, shows to be no problem.

squawk reads each file alone and, outside of a transaction, each statement alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.model import Engine
from pgsluice.pipeline.lint.nodes import (
    Name,
    commands,
    dropped,
    relation_name,
    relations,
    split_words,
    walk,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pgsluice.pipeline.lint.hazards import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, Script, ScriptStatement

NOT_NULL: Final = "adding-not-nullable-field"
DROP: Final = "ban-drop-"
DEFAULT: Final = "adding-field-with-default"
TEMPORARY: Final = "pg_temp"
DOMAIN: Final = "ban-alter-domain-with-add-constraint"

_MADE_RELATIONS: Final = {
    "CompositeTypeStmt": "typevar",
    "CreateSeqStmt": "sequence",
    "CreateStmt": "relation",
    "ViewStmt": "view",
}
_MADE_NAMES: Final = {
    "CreateDomainStmt": "domainname",
    "CreateEnumStmt": "typeName",
    "CreateFunctionStmt": "funcname",
    "CreateRangeStmt": "typeName",
}

# They speak of a column's type, whoever uses the table.
_OF_TYPES: Final = frozenset({"ban-char-field", "prefer-timestamp-tz", "identifier-too-long"})


def without_false_alarms(findings: Iterable[LintFinding], context: Context) -> Iterator[LintFinding]:
    """The findings that stand."""
    script = context.script
    created = _created(context)
    for finding in findings:
        statement = _statement(script, finding)
        if finding.engine is Engine.SQUAWK and statement is not None:
            if finding.rule not in _OF_TYPES and _target(statement) in _before(created, statement):
                continue
            if finding.rule.startswith(DROP) and _is_passing(statement, script, _before(created, statement)):
                continue
            if finding.rule == DOMAIN and statement.node.get("def", {}).get("Constraint", {}).get(
                "skip_validation"
            ):
                continue
            if finding.rule == DEFAULT and _is_virtual(statement, finding, script):
                continue
            if finding.rule == NOT_NULL and _is_checked(statement, context):
                continue
        yield finding


def _statement(script: Script, finding: LintFinding) -> ScriptStatement | None:
    place = finding.location
    offset = script.file.offset(place.line or 1, place.column or 1)
    return next((one for one in script.statements if one.start <= offset < one.end), None)


def _created(context: Context) -> list[tuple[Name, int]]:
    """The tables that the file makes, and where: nobody uses them yet."""
    found: list[tuple[Name, int]] = []
    for statement in context.script.statements:
        node = statement.node
        if statement.kind == "CreateStmt":
            name = relation_name(node["relation"])
            if not (node.get("if_not_exists") and context.mentions(name[1].lower())):
                found.append((name, statement.start))
        elif statement.kind == "RenameStmt" and node.get("renameType") == "OBJECT_TABLE":
            old = relation_name(node["relation"])
            if any(name == old for name, _ in found):
                found.append(((old[0], node["newname"]), statement.start))
        elif statement.kind in {"CreateTableAsStmt", "SelectStmt"}:
            into = (node.get("into") or node.get("intoClause") or {}).get("rel")
            if into is not None:
                found.append((relation_name(into), statement.start))
    return found


def _before(created: list[tuple[Name, int]], statement: ScriptStatement) -> set[Name]:
    return {name for name, start in created if start < statement.start}


def _target(statement: ScriptStatement) -> Name | None:
    """The table that a statement changes."""
    if "relation" in statement.node and statement.kind in {"AlterTableStmt", "IndexStmt", "RenameStmt"}:
        return relation_name(statement.node["relation"])
    if statement.kind == "TruncateStmt":
        return next(map(relation_name, relations(statement.node)), None)
    return None


def _is_passing(statement: ScriptStatement, script: Script, created: set[Name]) -> bool:
    """Whether all that a statement drops is of this file, or made again below: rebuilt over a change.

    A table that is made again is another one, without its rows.
    """
    if statement.kind != "DropStmt":
        return False
    gone = {split_words(parts) for parts in dropped(statement.node)} - created
    if statement.node.get("removeType") == "OBJECT_TABLE":
        return all(schema == TEMPORARY for schema, _ in gone)
    return gone <= {_made(one) for one in script.statements if one is not statement}


def _made(statement: ScriptStatement) -> Name | None:
    """The name of what a statement creates."""
    kind, node = statement.kind, statement.node
    if kind in _MADE_RELATIONS:
        return relation_name(node[_MADE_RELATIONS[kind]])
    if kind in _MADE_NAMES:
        return split_words(words(node[_MADE_NAMES[kind]]))
    if kind == "CreateTableAsStmt":
        return relation_name(node["into"]["rel"])
    return None


def _is_virtual(statement: ScriptStatement, finding: LintFinding, script: Script) -> bool:
    """Whether the generated column at a place is computed when it is read, so that nothing is rewritten."""
    offset = script.file.offset(finding.location.line or 1, finding.location.column or 1)
    end = script.sql.find(",\n", offset)
    piece = script.sql[offset : statement.end if end < 0 else min(end, statement.end)].lower()
    return "virtual" in piece.split()


def _is_checked(statement: ScriptStatement, context: Context) -> bool:
    """Whether every column that becomes not null has a validated check that says so: nothing is scanned."""
    columns = {
        command["name"]
        for command in commands(statement.node)
        if command["subtype"] == "AT_SetNotNull" and "name" in command
    }
    if statement.kind != "AlterTableStmt" or not columns:
        return False
    table = relation_name(statement.node["relation"])
    checks: dict[str, tuple[str, bool]] = {}
    for script in (*context.before("is not null", "validate constraint", "drop constraint"), context.script):
        for one in script.statements:
            if script is context.script and one.start >= statement.start:
                break
            if one.kind == "AlterTableStmt" and relation_name(one.node["relation"]) == table:
                _follow(one.node, checks)
    return columns <= {column for column, is_valid in checks.values() if is_valid}


def _follow(node: Node, checks: dict[str, tuple[str, bool]]) -> None:
    """Apply an `alter table` to the `column is not null` checks by constraint's name."""
    for command in commands(node):
        constraint = command.get("def", {}).get("Constraint", {})
        name = constraint.get("conname") or command.get("name", "")
        if command["subtype"] == "AT_AddConstraint" and constraint.get("contype") == "CONSTR_CHECK":
            column = _tested(constraint)
            if column is not None:
                checks[name] = (column, not constraint.get("skip_validation"))
        elif command["subtype"] == "AT_ValidateConstraint" and name in checks:
            checks[name] = (checks[name][0], True)
        elif command["subtype"] == "AT_DropConstraint":
            checks.pop(name, None)


def _tested(constraint: Node) -> str | None:
    """The column of a check that says no more than `column is not null`."""
    test = constraint.get("raw_expr", {}).get("NullTest", {})
    if test.get("nulltesttype") != "IS_NOT_NULL":
        return None
    for kind, content in walk(test.get("arg")):
        if kind == "ColumnRef":
            return words(content.get("fields"))[-1]
    return None
