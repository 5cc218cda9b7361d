"""Row security: tables that lose it, and tables that are left with no policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import Name, commands, dropped, relation_name, shown, split_words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import ScriptStatement

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
    """What is known of a table's row security; a switch that no text set is absent."""

    switches: dict[str, bool] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)
    is_gone: bool = False


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
            self._table(relation_name(node["table"])).policies.add(node["policy_name"])
        elif statement.kind == "RenameStmt" and node.get("renameType") == "OBJECT_TABLE":
            old = relation_name(node["relation"])
            yield from self._rename(old, (old[0], node["newname"]))
        elif statement.kind == "DropStmt":
            self._drop(statement)

    def _create(self, name: Name) -> Iterator[tuple[Name, str, bool]]:
        """A new table has neither; one that comes back under an old name may have had them."""
        if self._table(name).is_gone:
            yield from self._replace(name, Table())

    def _rename(self, old: Name, new: Name) -> Iterator[tuple[Name, str, bool]]:
        """A table that takes another's name may lack what that one had."""
        if old in self.tables or new in self.tables:
            yield from self._replace(new, self.tables.pop(old, Table()))

    def _replace(self, name: Name, table: Table) -> Iterator[tuple[Name, str, bool]]:
        before = self.tables.get(name, Table())
        self.tables[name] = table
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
    had_policies = {name for name, table in tables.tables.items() if table.policies}
    lost: dict[tuple[Name, str], ScriptStatement] = {}
    unguarded: dict[Name, ScriptStatement] = {}
    for statement in script.statements:
        for name, switch, value in tables.follow(statement):
            if value:
                lost.pop((name, switch), None)
            else:
                lost[name, switch] = statement
        if statement.kind == "CreatePolicyStmt":
            had_policies.add(relation_name(statement.node["table"]))
        elif _drops_policy(statement):
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
        if enabled and name in had_policies and not table.policies and not table.is_gone:
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
    return False


def _drops_policy(statement: ScriptStatement) -> bool:
    return statement.kind == "DropStmt" and statement.node.get("removeType") == "OBJECT_POLICY"


def _earlier(context: Context) -> Tables:
    tables = Tables()
    if not context.mentions("row level security"):
        return tables
    for script in context.before("row level security", "policy", "drop table", "rename to"):
        for statement in script.statements:
            for _ in tables.follow(statement):
                pass
    return tables
