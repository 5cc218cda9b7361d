"""The parser's JSON as Python values, one statement at a time and however deep it is nested.

`pglast.parse_sql` builds Python objects for everything: 290 ms for 500 tables. Its JSON takes 20 ms, and
decoding one statement at a time, each dropped before the next, 20 ms more: no garbage collection to pay.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# The library's trees are JSON objects whose shape depends on the node's kind.
Node = dict[str, Any]

_DECODE: Final = json.JSONDecoder().raw_decode
_PIECE: Final = re.compile(r'[{}\[\],:]|"(?:[^"\\]|\\.)*"|[^{}\[\],:"\s]+')


class Tree(NamedTuple):
    """One statement: its node's kind (`CreateStmt`), the node, and where it stands in bytes."""

    kind: str
    node: Node
    start: int
    size: int | None


def read_trees(text: str) -> Iterator[Tree]:
    """The statements of a parser's JSON, in order; `size` is None for one that ends with the text."""
    position = text.index('"stmts":[') + len('"stmts":[')
    while text[position] != "]":
        if text[position] == ",":
            position += 1
        value, position = _decode(text, position)
        ((kind, node),) = value["stmt"].items()
        yield Tree(kind, node, value.get("stmt_location", 0), value.get("stmt_len") or None)


def strings(items: list[Node]) -> list[str]:
    """The values of a list of String nodes; other nodes are left out."""
    return [item["String"].get("sval", "") for item in items if "String" in item]


def _decode(text: str, position: int) -> tuple[Node, int]:
    try:
        return _DECODE(text, position)
    except RecursionError:
        return _decode_deep(text, position)


def _decode_deep(text: str, start: int) -> tuple[Node, int]:
    """Decode one object without recursion; ten times slower, for statements nested some hundred deep."""
    stack: list[Any] = []
    keys: list[str] = []
    key: str | None = None
    for match in _PIECE.finditer(text, start):
        piece = match[0]
        if piece in {",", ":"}:
            continue
        if piece in {"}", "]"}:
            value = stack.pop()
            if not stack:
                return value, match.end()
            key = keys.pop() or None
        elif piece in {"{", "["}:
            stack.append({} if piece == "{" else [])
            keys.append(key or "")
            key = None
            continue
        elif key is None and isinstance(stack[-1], dict):
            key = json.loads(piece)
            continue
        else:
            value = json.loads(piece)
        _put(stack[-1], key, value=value)
        key = None
    raise ValueError("the parser's output ends too early")


def _put(container: Any, key: str | None, *, value: Any) -> None:
    if key is None:
        container.append(value)
    else:
        container[key] = value
