"""Spell printed expressions so that PostgreSQL reads back what it printed.

A cast of a whole `ARRAY[…]` is read as a cast of each element, and is then printed in another way. That
happens to each `in` list over a `varchar` column. A cast of the array to its own type, which leaves no trace,
keeps both apart.
"""

from __future__ import annotations

import re
from typing import Final

OPENS: Final = "(ARRAY["
CAST: Final = re.compile(r'\)::[\w ".]+(?:\([\d, ]+\))?\[\]')
ELEMENT_TYPE: Final = re.compile(r'::((?:"(?:[^"]|"")+"|[\w .])+?)(?:\([\d, ]+\))?$')
# What may hold brackets that do not count: strings, quoted names, dollar-quoted bodies.
OPAQUE: Final = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | \$(\w*)\$.*?\$\1\$""", re.VERBOSE | re.DOTALL
)


def keep_array_casts(sql: str) -> str:
    """The statement with each cast of a whole array kept apart from casts of its elements."""
    if OPENS not in sql:
        return sql
    covered = bytearray(len(sql))
    for match in OPAQUE.finditer(sql):
        covered[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    inserts: list[tuple[int, str]] = []
    start = sql.find(OPENS)
    while start >= 0:
        end = _closing(sql, start + len(OPENS), covered) if not covered[start] else None
        if end is not None and CAST.match(sql, end + 1):
            element = ELEMENT_TYPE.search(sql[start + len(OPENS) : end])
            if element is not None:
                inserts.append((end + 1, f"::{element[1].strip()}[]"))
        start = sql.find(OPENS, start + 1)
    for position, text in sorted(inserts, reverse=True):
        sql = sql[:position] + text + sql[position:]
    return sql


def _closing(sql: str, position: int, covered: bytearray) -> int | None:
    """Where the bracket closes that was opened just before `position`."""
    depth = 1
    while position < len(sql):
        if not covered[position]:
            depth += {"[": 1, "]": -1}.get(sql[position], 0)
            if depth == 0:
                return position
        position += 1
    return None
