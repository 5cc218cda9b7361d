"""An enum value that is added and used in one transaction, which PostgreSQL refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.lint.nodes import Name, shown, split_words, words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import ScriptStatement

# Their texts are kept and not run, or are no values.
_NO_USE: Final = frozenset(
    {"AlterEnumStmt", "CommentStmt", "CreateEnumStmt", "SecLabelStmt", "VariableSetStmt"}
)


def check_enums(context: Context) -> Iterator[LintFinding]:
    """Values used after `add value` in a file that runs in one transaction."""
    script = context.script
    if not script.transactional:
        return
    created: set[Name] = set()
    added: dict[str, Name] = {}
    for statement in script.statements:
        node = statement.node
        if statement.kind == "CreateEnumStmt":
            created.add(split_words(words(node["typeName"])))
        elif statement.kind == "AlterEnumStmt" and "oldVal" not in node:
            name = split_words(words(node["typeName"]))
            if name not in created:  # the values of a type of the same transaction may be used
                added[node["newVal"]] = name
        elif added:
            for value in sorted(_used(statement, added)):
                yield found(
                    "enum-value-used",
                    f"{value!r} is used in the transaction that adds it to {shown(added[value])}",
                    script.location(statement),
                    end_line=script.end_line(statement),
                )


def _used(statement: ScriptStatement, added: dict[str, Name]) -> set[str]:
    """The added values that a statement holds as constants, or in code that it runs at once."""
    if statement.kind in _NO_USE:
        return set()
    if statement.kind == "DoStmt":
        body = "".join(_strings(statement.node))
        return {value for value in added if "'" + value.replace("'", "''") + "'" in body}
    return {value for value in _constants(statement.node) if value in added}


def _constants(value: Any) -> Iterator[str]:  # Any: JSON
    """The string constants of a tree."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            constant = one.get("A_Const")
            if isinstance(constant, dict) and "sval" in constant:
                yield constant["sval"].get("sval", "")
            stack.extend(one.values())


def _strings(value: Any) -> Iterator[str]:  # Any: JSON
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
