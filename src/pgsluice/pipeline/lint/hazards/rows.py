"""Row security: tables that lose it, and tables that are left with no policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import Name, commands, dropped, relation_name, shown, split_words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, ScriptStatement

ENABLED: Final = "row security"
FORCED: Final = "forced row security"

_SWITCHES: Final = {
    "AT_EnableRowSecurity": (ENABLED, True),
    "AT_DisableRowSecurity": (ENABLED, False),
    "AT_ForceRowSecurity": (FORCED, True),
    "AT_NoForceRowSecurity": (FORCED, False),
}


@dataclass(slots=True)
class Table:
    """What is known of a table's row security; a switch that no text set is absent.

    `had_policy` says that it had one in this file or before it, `is_gone` that the name is free: it was
    dropped, or has another name where `is_moved`.
    """

    switches: dict[str, bool] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)
    had_policy: bool = False
    is_gone: bool = False
    is_moved: bool = False


class Tables:
    """Row security by table, following statements; a dropped table's name keeps what it had."""

    def __init__(self) -> None:
        self.tables: dict[Name, Table] = {}

    def follow(self, statement: ScriptStatement) -> Iterator[tuple[Name, str, bool]]:
        """Apply a statement; yields each switch that it sets."""
        node = statement.node
        if statement.kind == "CreateStmt":
            yield from self._create(relation_name(node["relation"]))
        elif statement.kind == "AlterTableStmt":
            name = relation_name(node["relation"])
            for command in commands(node):
                if command["subtype"] in _SWITCHES:
                    switch, value = _SWITCHES[command["subtype"]]
                    self._table(name).switches[switch] = value
                    yield name, switch, value
        elif statement.kind == "CreatePolicyStmt":
            table = self._table(relation_name(node["table"]))
            table.policies.add(node["policy_name"])
            table.had_policy = True
        elif statement.kind == "RenameStmt":
            yield from self._renamed(node)
        elif statement.kind == "AlterObjectSchemaStmt" and "relation" in node:
            old = relation_name(node["relation"])
            yield from self._rename(old, (node["newschema"], old[1]))
        elif statement.kind == "DropStmt":
            self._drop(statement)

    def _create(self, name: Name) -> Iterator[tuple[Name, str, bool]]:
        """A new table has neither; one that comes back under an old name may have had them."""
        if self._table(name).is_gone:
            yield from self._replace(name, Table())

    def _renamed(self, node: Node) -> Iterator[tuple[Name, str, bool]]:
        """A table, a policy, or the schema of tables gets another name."""
        if node.get("renameType") == "OBJECT_TABLE":
            old = relation_name(node["relation"])
            yield from self._rename(old, (old[0], node["newname"]))
        elif node.get("renameType") == "OBJECT_POLICY":
            policies = self._table(relation_name(node["relation"])).policies
            policies.discard(node["subname"])
            policies.add(node["newname"])
        elif node.get("renameType") == "OBJECT_SCHEMA":
            for name in [one for one in self.tables if one[0] == node["subname"]]:
                self.tables[node["newname"], name[1]] = self.tables.pop(name)

    def _rename(self, old: Name, new: Name) -> Iterator[tuple[Name, str, bool]]:
        """A table that takes another's name may lack what that one had; its own name is free, and had it."""
        if old in self.tables or new in self.tables:
            table = self.tables.pop(old, Table())
            yield from self._replace(new, table)
            self.tables[old] = Table(dict(table.switches), is_gone=True, is_moved=True)

    def begin_file(self) -> None:
        """A name that is free when a file begins may stand for something else."""
        self.tables = {name: table for name, table in self.tables.items() if not table.is_moved}
        for table in self.tables.values():
            table.had_policy = bool(table.policies)

    def _replace(self, name: Name, table: Table) -> Iterator[tuple[Name, str, bool]]:
        before = self.tables.get(name, Table())
        self.tables[name] = replace(table, is_gone=False, is_moved=False)
        for switch, value in before.switches.items():
            if value and not table.switches.get(switch):
                yield name, switch, False

    def _drop(self, statement: ScriptStatement) -> None:
        for parts in dropped(statement.node):
            if statement.node.get("removeType") == "OBJECT_POLICY":
                self._table(split_words(parts[:-1])).policies.discard(parts[-1])
            elif statement.node.get("removeType") == "OBJECT_TABLE":
                self._table(split_words(parts)).is_gone = True

    def _table(self, name: Name) -> Table:
        return self.tables.setdefault(name, Table())


def check_rows(context: Context) -> Iterator[LintFinding]:
    """Row security that this file takes away, and tables that it leaves without a policy."""
    script = context.script
    if not any(_matters(statement) for statement in script.statements):
        return
    tables = _earlier(context)
    lost: dict[tuple[Name, str], ScriptStatement] = {}
    unguarded: dict[Name, ScriptStatement] = {}
    for statement in script.statements:
        for name, switch, value in tables.follow(statement):
            if value:
                lost.pop((name, switch), None)
            else:
                lost[name, switch] = statement
        if _drops_policy(statement):
            for parts in dropped(statement.node):
                unguarded[split_words(parts[:-1])] = statement
    for (name, switch), statement in lost.items():
        if not tables.tables[name].is_gone:
            yield found(
                "row-security-lost",
                f"table {shown(name)} loses {switch}",
                script.location(statement),
                end_line=script.end_line(statement),
            )
    for name, statement in unguarded.items():
        table = tables.tables[name]
        enabled = table.switches.get(ENABLED)
        if enabled and table.had_policy and not table.policies and not table.is_gone:
            yield found(
                "no-policy-left",
                f"table {shown(name)} has row security and no policy any more",
                script.location(statement),
                end_line=script.end_line(statement),
            )


def _matters(statement: ScriptStatement) -> bool:
    if statement.kind == "AlterTableStmt":
        return any(command["subtype"] in _SWITCHES for command in commands(statement.node))
    if statement.kind == "DropStmt":
        return statement.node.get("removeType") in {"OBJECT_POLICY", "OBJECT_TABLE"}
    if statement.kind == "RenameStmt":
        return statement.node.get("renameType") == "OBJECT_TABLE"
    return statement.kind == "AlterObjectSchemaStmt"


def _drops_policy(statement: ScriptStatement) -> bool:
    return statement.kind == "DropStmt" and statement.node.get("removeType") == "OBJECT_POLICY"


def _earlier(context: Context) -> Tables:
    tables = Tables()
    if not context.mentions("row level security"):
        return tables
    for script in context.before("row level security", "policy", "drop table", "rename to", "set schema"):
        for statement in script.statements:
            for _ in tables.follow(statement):
                pass
    tables.begin_file()
    return tables
