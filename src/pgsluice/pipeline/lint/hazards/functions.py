"""`security definer` without a pinned search_path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.lint.hazards.routines import PATH, Routine, Routines, pins
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Script, ScriptStatement


def check_functions(context: Context) -> Iterator[LintFinding]:
    """Functions that this file leaves with their owner's rights and their caller's path."""
    script = context.script
    routines = _earlier(context) if _alters(script) else Routines()
    routines.last.clear()
    for statement in script.statements:
        routines.follow(statement)
    for key, statement in routines.last.items():
        if _is_unsafe(routines.known.get(key, Routine(False)), statement):
            yield found(
                "security-definer-path",
                f"{routines.called(key)} runs with its owner's rights and {_fault(statement)}",
                script.location(statement),
                end_line=script.end_line(statement),
            )


def known_routines(context: Context) -> Routines:
    """The functions that this file and those before it leave."""
    routines = _earlier(context) if context.mentions("security definer") else Routines()
    for statement in context.script.statements:
        routines.follow(statement)
    return routines


def _earlier(context: Context) -> Routines:
    routines = Routines()
    for script in context.before("function", "procedure", "routine", "schema"):
        for statement in script.statements:
            routines.follow(statement)
    return routines


def _alters(script: Script) -> bool:
    return any(statement.kind == "AlterFunctionStmt" for statement in script.statements)


def _is_unsafe(routine: Routine, statement: ScriptStatement) -> bool:
    """Whether the rights are, or may be, the owner's, and the path is not pinned as far as is known."""
    if routine.is_definer is None:
        return routine.is_pinned is False and statement.kind == "AlterFunctionStmt"
    return routine.is_definer and not routine.is_pinned


def _fault(statement: ScriptStatement) -> str:
    settings = [
        item["DefElem"]["arg"]["VariableSetStmt"]
        for item in statement.node.get("options") or statement.node.get("actions") or ()
        if item.get("DefElem", {}).get("defname") == "set"
    ]
    for setting in settings:
        if str(setting["kind"]).startswith("VAR_RESET"):
            return "loses its search_path here"
        if setting.get("name") == PATH and not pins(setting):
            return "its search_path holds a schema of the caller's"
    return "pins no search_path"
