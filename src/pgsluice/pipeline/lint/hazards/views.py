"""Views that read with their caller's rights, and stop doing so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import (
    Name,
    commands,
    dropped,
    has_option,
    option,
    relation_name,
    shown,
    split_words,
)
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import ScriptStatement

INVOKER: Final = "security_invoker"

_CHANGES: Final = frozenset({"AlterObjectSchemaStmt", "AlterTableStmt", "RenameStmt", "ViewStmt"})


class Views:
    """Which views read with their caller's rights; a dropped one's name keeps what it had."""

    def __init__(self) -> None:
        self.invokers: dict[Name, bool] = {}
        self.gone: set[Name] = set()

    def follow(self, statement: ScriptStatement) -> Iterator[tuple[Name, bool]]:
        """Apply a statement; yields each view whose rights it sets."""
        node = statement.node
        if statement.kind == "ViewStmt":
            yield self._set(relation_name(node["view"]), bool(option(node.get("options"), INVOKER)))
        elif statement.kind == "AlterTableStmt":
            name = relation_name(node["relation"])
            for command in commands(node):
                options = command.get("def", {}).get("List", {}).get("items")
                if command["subtype"] == "AT_SetRelOptions" and has_option(options, INVOKER):
                    yield self._set(name, bool(option(options, INVOKER)))
                elif command["subtype"] == "AT_ResetRelOptions" and has_option(options, INVOKER):
                    yield self._set(name, False)
        elif statement.kind == "DropStmt" and node.get("removeType") == "OBJECT_VIEW":
            self.gone |= {split_words(parts) for parts in dropped(node)}
        elif statement.kind == "RenameStmt" and node.get("renameType") in {"OBJECT_VIEW", "OBJECT_TABLE"}:
            old = relation_name(node["relation"])
            yield from self._move(old, (old[0], node["newname"]))
        elif statement.kind == "AlterObjectSchemaStmt" and "relation" in node:
            old = relation_name(node["relation"])
            yield from self._move(old, (node["newschema"], old[1]))
        elif statement.kind == "RenameStmt" and node.get("renameType") == "OBJECT_SCHEMA":
            for name in [one for one in self.invokers if one[0] == node["subname"]]:
                yield from self._move(name, (node["newname"], name[1]))

    def _set(self, name: Name, value: bool) -> tuple[Name, bool]:
        self.invokers[name] = value
        self.gone.discard(name)
        return name, value

    def _move(self, old: Name, new: Name) -> Iterator[tuple[Name, bool]]:
        if old in self.invokers and old not in self.gone:
            yield self._set(new, self.invokers.pop(old))


def check_views(context: Context) -> Iterator[LintFinding]:
    """Views that had `security_invoker` before this file and are there without it after."""
    script = context.script
    views = Views()
    started = False
    had: dict[Name, bool] = {}
    lost: dict[Name, ScriptStatement] = {}
    for statement in script.statements:
        if not started and statement.kind in _CHANGES:
            started = True
            views = _earlier(context)
            had = dict(views.invokers)
        for name, value in views.follow(statement):
            if value:
                had[name] = True
                lost.pop(name, None)
            elif had.get(name):
                lost[name] = statement
    for name, statement in lost.items():
        if name not in views.gone:
            yield found(
                "security-invoker-lost",
                f"view {shown(name)} had security_invoker and loses it",
                script.location(statement),
                end_line=script.end_line(statement),
            )


def _earlier(context: Context) -> Views:
    views = Views()
    if not context.mentions(INVOKER):
        return views
    for script in context.before(
        INVOKER, "drop view", "create view", "replace view", "rename to", "set schema"
    ):
        for statement in script.statements:
            for _ in views.follow(statement):
                pass
    return views
