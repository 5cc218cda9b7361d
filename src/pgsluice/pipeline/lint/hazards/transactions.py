"""Transactions and session state: what a file may not do, because its runner does or cannot undo it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import commands, has_option, option, walk, words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, Script, ScriptStatement

NONE: Final = "-- atlas:txmode none"

_DIRECTIVE: Final = re.compile(r"^[ \t]*--[ \t]*atlas:txmode\b[^\n]*", re.MULTILINE | re.IGNORECASE)
_IN_TRANSACTION: Final = frozenset({"-- atlas:txmode file", "-- atlas:txmode all"})
_OUTSIDE: Final = {
    "AlterSystemStmt": "alter system",
    "CreateTableSpaceStmt": "create tablespace",
    "CreatedbStmt": "create database",
    "DropTableSpaceStmt": "drop tablespace",
    "DropdbStmt": "drop database",
}


def check_transactions(context: Context) -> Iterator[LintFinding]:
    """The directive, transaction control, statements that need no transaction, settings."""
    script = context.script
    yield from _directive(script)
    for statement in script.statements:
        yield from _control(script, statement)
        if script.transactional:
            yield from _needs_none(script, statement)
            yield from _lasting_setting(script, statement)
        else:
            yield from _lost_setting(script, statement)


def _directive(script: Script) -> Iterator[LintFinding]:
    for match in _DIRECTIVE.finditer(script.file.text):
        if any(one.start <= match.start() < one.end for one in script.statements):
            continue
        line = script.file.line_of(match.start())
        text = match[0].rstrip("\r")
        if line > 1:
            message = "atlas:txmode stands below line 1, where nobody reads it"
        elif text in _IN_TRANSACTION:
            continue
        elif text != NONE:
            message = f"the directive is spelled {text!r}, not {NONE!r}"
        elif script.file.line(2) not in {"", "\r"}:
            message = "line 2 after atlas:txmode is not empty, so the directive does not count"
        else:
            continue
        yield found("txmode-directive", message, script.file.location(match.start()))


def _control(script: Script, statement: ScriptStatement) -> Iterator[LintFinding]:
    if statement.kind == "TransactionStmt":
        word = str(statement.node["kind"]).removeprefix("TRANS_STMT_").lower().replace("_", " ")
        yield found(
            "transaction-control",
            f"{word} in a migration",
            script.location(statement),
            end_line=script.end_line(statement),
        )


def _needs_none(script: Script, statement: ScriptStatement) -> Iterator[LintFinding]:
    what = _outside_only(statement)
    if what is not None:
        yield found(
            "cannot-run-in-transaction",
            f"{what} in a file that runs in one transaction",
            script.location(statement),
            end_line=script.end_line(statement),
        )


def _outside_only(statement: ScriptStatement) -> str | None:
    """The words of a statement that PostgreSQL refuses in a transaction, None for others."""
    kind, node = statement.kind, statement.node
    if kind in _OUTSIDE:
        return _OUTSIDE[kind]
    if kind == "IndexStmt" and node.get("concurrent"):
        return "create index concurrently"
    if kind == "DropStmt" and node.get("concurrent"):
        return "drop index concurrently"
    if kind == "ReindexStmt":
        if has_option(node.get("params"), "concurrently"):
            return "reindex concurrently"
        if node.get("kind") in {"REINDEX_OBJECT_SCHEMA", "REINDEX_OBJECT_SYSTEM", "REINDEX_OBJECT_DATABASE"}:
            return "reindex of more than one table"
    if kind == "VacuumStmt" and node.get("is_vacuumcmd"):
        return "vacuum"
    if kind == "AlterTableStmt" and any(
        command.get("def", {}).get("PartitionCmd", {}).get("concurrent") for command in commands(node)
    ):
        return "detach partition concurrently"
    if kind == "ClusterStmt" and "relation" not in node:
        return "cluster of all tables"
    return _of_subscription(kind, node)


def _of_subscription(kind: str, node: Node) -> str | None:
    """The words of a statement about a subscription that speaks to the publishing server at once."""
    options = node.get("options")
    if kind == "CreateSubscriptionStmt":
        speaks = option(options, "connect") is not False and option(options, "create_slot") is not False
        return "create subscription with a slot" if speaks else None
    if kind == "AlterSubscriptionStmt" and option(options, "refresh") is not False:
        word = str(node["kind"]).removeprefix("ALTER_SUBSCRIPTION_")
        if word == "REFRESH" or word.endswith("_PUBLICATION"):
            return "alter subscription with a refresh"
    return None


def _lasting_setting(script: Script, statement: ScriptStatement) -> Iterator[LintFinding]:
    if statement.kind == "VariableSetStmt":
        node = statement.node
        name = node.get("name", "all")
        if not node.get("is_local") and name != "TRANSACTION":
            verb = "reset" if str(node["kind"]).startswith("VAR_RESET") else "set"
            yield found(
                "set-without-local",
                f"{verb} {name} outlives the transaction",
                script.location(statement),
                end_line=script.end_line(statement),
            )
    elif statement.kind == "DiscardStmt":
        yield found(
            "set-without-local",
            "discard changes the session",
            script.location(statement),
            recipe="take it out",
        )
    elif statement.kind == "SelectStmt":
        for setting in _set_by_call(statement.node):
            yield found(
                "set-without-local",
                f"set_config of {setting} outlives the transaction",
                script.location(statement),
                recipe="write true for its third argument",
                end_line=script.end_line(statement),
            )


def _set_by_call(node: Node) -> Iterator[str]:
    """The settings that a query sets for the session, as the first lines of a dump do."""
    for kind, content in walk(node):
        if kind == "FuncCall" and words(content["funcname"])[-1] == "set_config":
            name, *_, local = content.get("args", ({}, {}))
            if local.get("A_Const", {}).get("boolval") == {}:
                yield name.get("A_Const", {}).get("sval", {}).get("sval", "a setting")


def _lost_setting(script: Script, statement: ScriptStatement) -> Iterator[LintFinding]:
    if statement.kind == "VariableSetStmt" and statement.node.get("is_local"):
        yield found(
            "set-local-outside-transaction",
            f"set local {statement.node.get('name', '')} does nothing here",
            script.location(statement),
            end_line=script.end_line(statement),
        )
