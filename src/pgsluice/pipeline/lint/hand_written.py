"""Which statements of a migration a person wrote: those below a `(hand-written)` heading, or all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.model import GENERATED
from pgsluice.pipeline.template_source import BLOCKS

if TYPE_CHECKING:
    from pgsluice.pipeline.lint.script import Script

_HEADING: Final = re.compile(rf"^-- (?:{'|'.join(BLOCKS)})(?P<own> \(hand-written\))?$", re.MULTILINE)


def hand_written(script: Script) -> str:
    """The text with every generated statement blanked, so that each place stays where it is; may be blank."""
    if GENERATED not in script.sql:
        return script.sql
    headings = [(match.start(), match["own"] is not None) for match in _HEADING.finditer(script.sql)]
    text, end = [], 0
    for statement in script.statements:
        is_own = next((own for start, own in reversed(headings) if start < statement.start), False)
        text.append(re.sub(r"[^\n]", " ", script.sql[end : statement.start]))
        stop = script.sql.find(";", statement.end) + 1 or len(script.sql)
        piece = script.sql[statement.start : stop]
        text.append(piece if is_own else re.sub(r"[^\n]", " ", piece))
        end = stop
    return "".join(text).rstrip() + "\n" if any(part.strip() for part in text) else ""
