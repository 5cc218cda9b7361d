"""SQL spelling of names and texts: identifiers, literals, dollar quotes, dotted names."""

from __future__ import annotations

import re
from typing import Final

from pglast.keywords import COL_NAME_KEYWORDS, RESERVED_KEYWORDS, TYPE_FUNC_NAME_KEYWORDS

NEEDS_QUOTES: Final = RESERVED_KEYWORDS | COL_NAME_KEYWORDS | TYPE_FUNC_NAME_KEYWORDS
PLAIN: Final = re.compile(r"[a-z_][a-z0-9_$]*")
PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*')


def quote_identifier(name: str) -> str:
    """`name` as SQL spells it: quoted only where it must be."""
    if PLAIN.fullmatch(name) and name not in NEEDS_QUOTES:
        return name
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """`text` as a SQL string that means the same whatever `standard_conforming_strings` says."""
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def dollar_quote(body: str, tag: str) -> str:
    """`body` between `$tag$` marks; the tag gets a number where the body holds it already."""
    mark, number = f"${tag}$", 1
    while mark in body:
        number += 1
        mark = f"${tag}{number}$"
    return f"{mark}{body}{mark}"


def split_name(dotted: str) -> tuple[str, ...] | None:
    """The parts of a dotted name as the catalog holds them, or None when it is not a name.

    Unquoted parts are folded to lower case, as PostgreSQL does for ASCII letters.
    """
    parts: list[str] = []
    position = 0
    while match := PART.match(dotted, position):
        quoted, plain = match.groups()
        parts.append(quoted.replace('""', '"') if quoted else _fold(plain))
        position = match.end()
        if position == len(dotted):
            return tuple(parts)
        if dotted[position] != ".":
            return None
        position += 1
    return None


def join_name(parts: tuple[str, ...]) -> str:
    """The opposite of `split_name`."""
    return ".".join(map(quote_identifier, parts))


def _fold(name: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in name)
