"""Take inline foreign keys out of a `create table`, for tables that refer to each other in a circle.

The key's text becomes an `alter table`; in the table it is overwritten with spaces, so that all else keeps
its place, byte for byte and line for line. A key without a name gets the one that PostgreSQL would have
given it: names are given in the order in which keys are added, so with a nameless key go the nameless ones
after it on the same columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pglast.parser import parse_sql_json

from pgsluice.pipeline.digest import Token, TokenKind, tokens
from pgsluice.pipeline.quoting import quote_identifier
from pgsluice.pipeline.sources.tree import Node, read_trees, strings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_PLAIN: Final = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class SplitKey:
    """A foreign key on its own: its byte and character in the table's statement, and its `alter table`."""

    byte: int
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class _Key:
    byte: int
    start: int
    end: int
    head: str  # what stands between `add` and the constraint's own text
    element: int | None  # its number among the table's elements, None for a column's constraint
    group: tuple[str, ...] | None  # its columns, if it has no name


def with_nameless(text: str, keys: Collection[int]) -> frozenset[int]:
    """The keys to split off if these are: also the later nameless ones on the same columns."""
    found = sorted(_find_keys(text), key=lambda key: key.byte)
    first: dict[tuple[str, ...], int] = {}
    for key in found:
        if key.byte in keys and key.group is not None:
            first.setdefault(key.group, key.byte)
    follow = {key.byte for key in found if key.group in first and key.byte > first[key.group]}
    return frozenset(keys) | follow


def split_keys(text: str, keys: Collection[int]) -> tuple[str, tuple[SplitKey, ...]]:
    """A table's statement without some of its foreign keys, and these as statements of their own.

    Args:
        text: The `create table` statement.
        keys: The byte in it at which each constraint starts.
    """
    table = _parse(text)["relation"]
    prefix = ".".join(quote_identifier(table[part]) for part in ("schemaname", "relname") if part in table)
    chosen = [key for key in _find_keys(text) if key.byte in keys]
    split = tuple(
        SplitKey(key.byte, key.start, f"alter table {prefix} add {key.head}{_own_text(text, key)}")
        for key in chosen
    )
    return _blank(text, chosen), split


def _own_text(text: str, key: _Key) -> str:
    body = text[key.start : key.end]
    if key.element is not None:
        return body
    at = next(token.start for token in tokens(body) if token.text.lower() == "references")
    return body[at:]


def _find_keys(text: str) -> Iterator[_Key]:
    node = _parse(text)
    data = text.encode()
    spans = _element_spans(text)
    for number, element in enumerate(node.get("tableElts", ())):
        end = spans[number][1]
        if "ColumnDef" in element:
            yield from _column_keys(data, element["ColumnDef"], end=end)
        elif element.get("Constraint", {}).get("contype") == "CONSTR_FOREIGN":
            constraint = element["Constraint"]
            start = len(data[: constraint["location"]].decode())
            group = None if "conname" in constraint else tuple(strings(constraint["fk_attrs"]))
            yield _Key(constraint["location"], start, end, "", number, group)


def _column_keys(data: bytes, column: Node, *, end: int) -> Iterator[_Key]:
    constraints = [item["Constraint"] for item in column.get("constraints", ())]
    starts = [item["location"] for item in constraints if not item["contype"].startswith("CONSTR_ATTR_")]
    if "collClause" in column:
        starts.append(column["collClause"]["location"])
    for constraint in constraints:
        if constraint["contype"] != "CONSTR_FOREIGN":
            continue
        byte = constraint["location"]
        following = min((start for start in starts if start > byte), default=None)
        start = len(data[:byte].decode())
        stop = end if following is None else len(data[:following].decode())
        stop = start + _length(data.decode()[start:stop])
        name = f"constraint {quote_identifier(constraint['conname'])} " if "conname" in constraint else ""
        head = f"{name}foreign key ({quote_identifier(column['colname'])}) "
        group = None if name else (column["colname"],)
        yield _Key(byte, start, stop, head, None, group)


def _blank(text: str, keys: Sequence[_Key]) -> str:
    """Overwrite keys, and the commas that would be left over."""
    spans = _element_spans(text)
    commas = _commas(text)
    gone = sorted(key.element for key in keys if key.element is not None)
    holes = [(key.start, key.end) for key in keys]
    kept = [number for number in range(len(spans)) if number not in gone]
    for number in gone:
        if number:
            holes.append((commas[number - 1], commas[number - 1] + 1))
    if kept and kept[0] > 0:
        holes.append((commas[kept[0] - 1], commas[kept[0] - 1] + 1))
    if gone and not kept:  # `partition of` takes no empty parentheses
        opening, closing = _parentheses(text)
        holes += [(opening, opening + 1), (closing, closing + 1)]
    for start, end in holes:
        text = text[:start] + _PLAIN.sub(" ", text[start:end]) + text[end:]
    return text


def _parse(text: str) -> Node:
    return next(read_trees(parse_sql_json(text))).node


def _code(text: str) -> list[Token]:
    return [token for token in tokens(text) if token.kind is TokenKind.OTHER]


def _parentheses(text: str) -> tuple[int, int]:
    """Where the list of a table's elements opens and closes."""
    depth, opening = 0, -1
    for token in _code(text):
        if token.text == "(":
            if depth == 0:
                opening = token.start
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                return opening, token.start
    raise ValueError("a table with elements has parentheses")


def _commas(text: str) -> list[int]:
    """The commas between a table's elements."""
    opening, closing = _parentheses(text)
    depth = 0
    found = []
    for token in _code(text[opening:closing]):
        if token.text in "([":
            depth += 1
        elif token.text in ")]":
            depth -= 1
        elif token.text == "," and depth == 1:
            found.append(opening + token.start)
    return found


def _element_spans(text: str) -> list[tuple[int, int]]:
    """Where each of a table's elements starts and ends, without the whitespace and comments around it."""
    opening, closing = _parentheses(text)
    edges = [opening, *_commas(text), closing]
    spans = []
    for left, right in pairwise(edges):
        code = _code(text[left + 1 : right])
        start = left + 1 + code[0].start if code else right
        spans.append((start, start + _length(text[start:right])))
    return spans


def _length(text: str) -> int:
    """How far the code in a text goes, without whitespace and comments behind it."""
    code = _code(text)
    return code[-1].start + len(code[-1].text) if code else 0
