"""What the tests say in their strings and data, line by line, to look for messages in it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLE: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands where a test puts a value into a string."""
DATA: Final = ("*.toml", "*.txt", "*.json", "*.md")
LEFT_OUT: Final = ("tests/test_errors.py", "tests/errors/messages.py")
SHORTEST_LINE: Final = 8


def asserted_lines(tests: Path, *, root: Path) -> frozenset[str]:
    """Every line of every string of the tests, docstrings aside, and of their data."""
    found: set[str] = set()
    for path in tests.rglob("*.py"):
        if path.relative_to(root).as_posix() not in LEFT_OUT:
            for text in _strings(ast.parse(path.read_text(encoding="utf-8"))):
                found.update(text.split("\n"))
                found.update(re.sub(r"\\(\W)", r"\1", text).split("\n"))
    for pattern in DATA:
        for path in tests.rglob(pattern):
            found.update(path.read_text(encoding="utf-8").replace('\\"', '"').split("\n"))
    return frozenset(line for line in found if len(line) >= SHORTEST_LINE)


def _strings(node: ast.AST) -> Iterator[str]:
    """The outermost strings below a node; what is joined with `+` is one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.expr) and (text := _text(child)) is not None:
            yield text
        else:
            yield from _strings(child)


def _text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(one) or HOLE for one in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = _text(left), _text(right)
            return None if both == (None, None) else "".join(HOLE if one is None else one for one in both)
    return None
