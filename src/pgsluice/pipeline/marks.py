"""Where each piece of a rendered text comes from, by marks that the templates print and the renderer removes.

A mark is a kind and a payload between two NUL characters, which neither a template nor SQL may hold.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from jinja2 import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK: Final = re.compile("\x00([a-z])([^\x00]*)\x00")

CAPTURING: Final = (nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock)


class Mark(StrEnum):
    """The kinds of marks."""

    BLOCK = "b"
    END = "e"
    ORIGIN = "o"
    GENERATED = "g"
    WORD = "w"


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of a hand-written template; `file` is the name that the loader gave it."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Text from one place, or (when `generated` is set) the place of that statement of the plan."""

    text: str
    block: str | None
    origin: Origin | None
    generated: int | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """What a template says by a macro: that a table is empty, or that a loss is meant."""

    kind: str
    values: tuple[str, ...]
    origin: Origin | None


def mark_generated(index: int) -> str:
    """Stands for statement `index` of the plan."""
    return _mark(Mark.GENERATED, str(index))


def mark_word(kind: str, *values: str) -> str:
    """Stands for something that the template says to the renderer."""
    return _mark(Mark.WORD, json.dumps([kind, *values]))


def mark_template(tree: nodes.Template, *, file: str | None) -> None:
    """Make every block of `tree` print where it begins and ends, and with `file` also its lines.

    Text that is captured (macros, `set` blocks, filters) stays as it is: the line that prints it counts.
    """
    for block in tree.find_all(nodes.Block):
        start = _data(_mark(Mark.BLOCK, block.name), block.lineno)
        end = _data(_mark(Mark.END), block.lineno)
        block.body = [start, *block.body, end]
    if file is not None:
        for output in _printed(tree):
            output.nodes = [node for part in output.nodes for node in _with_lines(part, file)]


def leave_out_blocks(tree: nodes.Template, names: frozenset[str]) -> None:
    """Take blocks out of a template that extends another, so that the other one's are used."""
    for holder in (tree, *tree.find_all(nodes.Node)):
        for name in holder.fields:
            held = getattr(holder, name)
            if isinstance(held, list):
                setattr(
                    holder,
                    name,
                    [one for one in held if not (isinstance(one, nodes.Block) and one.name in names)],
                )


def read_marks(text: str) -> tuple[tuple[Piece, ...], tuple[Word, ...]]:
    """The pieces and the words of a marked text, without the marks."""
    pieces: list[Piece] = []
    words: list[Word] = []
    blocks: list[str] = []
    origins: list[Origin | None] = [None]
    position = 0
    for match in MARK.finditer(text):
        block = blocks[-1] if blocks else None
        if match.start() > position:
            pieces.append(Piece(text[position : match.start()], block, origins[-1]))
        position = match.end()
        kind, payload = Mark(match[1]), match[2]
        if kind is Mark.BLOCK:
            blocks.append(payload)
            origins.append(None)
        elif kind is Mark.END:
            blocks.pop()
            origins.pop()
        elif kind is Mark.ORIGIN:
            line, _, file = payload.partition(":")
            origins[-1] = Origin(file, int(line))
        elif kind is Mark.GENERATED:
            pieces.append(Piece("", block, origins[-1], generated=int(payload)))
        else:
            word, *values = json.loads(payload)
            words.append(Word(word, tuple(values), origins[-1]))
    if position < len(text):
        pieces.append(Piece(text[position:], None, origins[-1]))
    return tuple(pieces), tuple(words)


def _mark(kind: Mark, payload: str = "") -> str:
    return f"\x00{kind}{payload}\x00"


def _data(text: str, line: int) -> nodes.Output:
    return nodes.Output([nodes.TemplateData(text, lineno=line)], lineno=line)


def _printed(node: nodes.Node) -> Iterator[nodes.Output]:
    """The outputs below `node` whose text goes to the file directly."""
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Output):
            yield child
        elif not isinstance(child, CAPTURING):
            yield from _printed(child)


def _with_lines(node: nodes.Expr, file: str) -> Iterator[nodes.Expr]:
    """`node` with a mark before it, and one after each of its line feeds."""
    if not isinstance(node, nodes.TemplateData):
        yield nodes.TemplateData(_mark(Mark.ORIGIN, f"{node.lineno}:{file}"), lineno=node.lineno)
        yield node
    elif "\x00" in node.data:
        yield node
    else:
        lines = re.findall(r"[^\n]*\n|[^\n]+", node.data)
        text = "".join(
            _mark(Mark.ORIGIN, f"{line}:{file}") + part for line, part in enumerate(lines, start=node.lineno)
        )
        yield nodes.TemplateData(text, lineno=node.lineno)
