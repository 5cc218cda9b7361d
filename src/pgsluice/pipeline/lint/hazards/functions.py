"""`security definer` without a pinned search_path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import Name, dropped, shown, split_words, words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, Script, ScriptStatement

PATH: Final = "search_path"
CALLERS_OWN: Final = "$user"

_ROUTINES: Final = frozenset({"OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE"})


@dataclass(frozen=True, slots=True)
class Routine:
    """What is known of a function; None is unknown: the text that made it is not at hand."""

    is_definer: bool | None = None
    is_pinned: bool | None = None


def check_functions(context: Context) -> Iterator[LintFinding]:
    """Functions that this file leaves with their owner's rights and their caller's path."""
    script = context.script
    touched: dict[Name, ScriptStatement] = {}
    routines: dict[Name, Routine] | None = None
    for statement in script.statements:
        if statement.kind not in {"CreateFunctionStmt", "AlterFunctionStmt", "DropStmt"}:
            continue
        if routines is None:
            routines = _known(context) if _alters(script) else {}
        name = change_routines(routines, statement)
        if name is not None:
            touched[name] = statement
    for name, statement in touched.items():
        routine = (routines or {}).get(name, Routine(False))
        if _is_unsafe(routine, statement):
            yield found(
                "security-definer-path",
                f"{shown(name)} runs with its owner's rights and {_fault(statement)}",
                script.location(statement),
                end_line=script.end_line(statement),
            )


def definers(context: Context) -> frozenset[Name]:
    """The functions with their owner's rights that this file and those before it know."""
    routines: dict[Name, Routine] = {}
    for script in (*context.before("security definer"), context.script):
        for statement in script.statements:
            change_routines(routines, statement)
    return frozenset(name for name, routine in routines.items() if routine.is_definer)


def change_routines(routines: dict[Name, Routine], statement: ScriptStatement) -> Name | None:
    """Follow one statement; returns the function that it makes or alters."""
    node = statement.node
    if statement.kind == "CreateFunctionStmt":
        name = split_words(words(node["funcname"]))
        # the names of a body that SQL's own syntax gives (`begin atomic`) are bound when it is created
        routines[name] = _with(Routine(False, "sql_body" in node), node.get("options", ()))
        return name
    if statement.kind == "AlterFunctionStmt":
        name = split_words(words(node["func"].get("objname")))
        routines[name] = _with(routines.get(name, Routine()), node.get("actions", ()))
        return name
    if statement.kind == "DropStmt" and node.get("removeType") in _ROUTINES:
        for parts in dropped(node):
            routines.pop(split_words(parts), None)
    return None


def _known(context: Context) -> dict[Name, Routine]:
    routines: dict[Name, Routine] = {}
    for script in context.before("function", "procedure"):
        for statement in script.statements:
            change_routines(routines, statement)
    return routines


def _alters(script: Script) -> bool:
    return any(statement.kind == "AlterFunctionStmt" for statement in script.statements)


def _with(routine: Routine, options: list[Node]) -> Routine:
    for item in options:
        element = item.get("DefElem", {})
        if element.get("defname") == "security":
            routine = replace(routine, is_definer=bool(element["arg"]["Boolean"].get("boolval")))
        elif element.get("defname") == "set":
            setting = element["arg"]["VariableSetStmt"]
            if setting["kind"] == "VAR_RESET_ALL" or setting.get("name") == PATH:
                routine = replace(routine, is_pinned=_pins(setting))
    return routine


def _pins(setting: Node) -> bool:
    if setting["kind"] == "VAR_SET_CURRENT":
        return True
    if setting["kind"] != "VAR_SET_VALUE":
        return False
    values = [item.get("A_Const", {}).get("sval", {}).get("sval", "") for item in setting.get("args", ())]
    return not any(CALLERS_OWN in value for value in values)


def _is_unsafe(routine: Routine, statement: ScriptStatement) -> bool:
    """Whether the rights are, or may be, the owner's, and the path is not pinned as far as is known."""
    if routine.is_definer is None:
        return routine.is_pinned is False and _resets(statement)
    return routine.is_definer and not routine.is_pinned


def _resets(statement: ScriptStatement) -> bool:
    return statement.kind == "AlterFunctionStmt"


def _fault(statement: ScriptStatement) -> str:
    settings = [
        item["DefElem"]["arg"]["VariableSetStmt"]
        for item in statement.node.get("options") or statement.node.get("actions") or ()
        if item.get("DefElem", {}).get("defname") == "set"
    ]
    for setting in settings:
        if str(setting["kind"]).startswith("VAR_RESET"):
            return "loses its search_path here"
        if setting.get("name") == PATH and not _pins(setting):
            return "its search_path holds a schema of the caller's"
    return "pins no search_path"
