"""Which statements of a migration sqlfluff reads: those that a person wrote and that its rules may speak of.

A person wrote what is below a `(hand-written)` heading, or the whole of a file that is not generated. Of a
migration no style is judged, only what may be a mistake (`sqlfluff-migration.cfg`): in queries with `with`,
or with `distinct` and `group by`. So a file of ten thousand rows costs nothing, and about what sqlfluff
cannot parse it is seldom asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.lint.model import GENERATED
from pgsluice.pipeline.template_source import BLOCKS

if TYPE_CHECKING:
    from pgsluice.pipeline.lint.script import Script, ScriptStatement

_HEADING: Final = re.compile(rf"^-- (?:{'|'.join(BLOCKS)})(?P<own> \(hand-written\))?$", re.MULTILINE)
_DISTINCT_GROUPS: Final = frozenset({"distinctClause", "groupClause"})
_REST: Final = re.compile(r"[ \t]*--[^\n]*")


def hand_written(script: Script) -> str:
    """The text with every other statement blanked, so that each place stays where it is; may be blank."""
    is_generated = GENERATED in script.sql
    headings = [(match.start(), match["own"] is not None) for match in _HEADING.finditer(script.sql)]
    text, end, found = [], 0, False
    for statement in script.statements:
        gap = script.sql[end : statement.start]
        text.append(_blank(gap) if is_generated else gap)
        is_own = not is_generated or next(
            (own for start, own in reversed(headings) if start < statement.start), False
        )
        end = _end(script, statement)
        piece = script.sql[statement.start : end]
        if is_own and _may_be_mistaken(statement):
            text.append(piece)
            found = True
        else:
            text.append(_blank(piece))
    return "".join(text).rstrip() + "\n" if found else ""


def _may_be_mistaken(statement: ScriptStatement) -> bool:
    """Whether a query of the statement names others, or is distinct and grouped."""
    stack: list[Any] = [statement.node]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
        elif isinstance(part, dict):
            if "withClause" in part or part.keys() >= _DISTINCT_GROUPS:
                return True
            stack.extend(part.values())
    return False


def _end(script: Script, statement: ScriptStatement) -> int:
    """Where a statement ends, with its semicolon and what a comment says behind it in the same line."""
    stop = script.sql.find(";", statement.end) + 1 or len(script.sql)
    rest = _REST.match(script.sql, stop)
    return rest.end() if rest is not None else stop


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
