"""pg_dump's text as people write it: words in lower case, two spaces; strings, names and bodies untouched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.digest import Token, TokenKind, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 100
# The words that begin a clause, for statements that are one long line.
BREAKS: Final = {
    "AlterTableStmt": frozenset({"add", "references"}),
    "CommentStmt": frozenset({"is"}),
    "CreateTrigStmt": frozenset({"after", "before", "execute", "instead", "when"}),
    "IndexStmt": frozenset({"include", "on", "where"}),
}
WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
INDENT: Final = re.compile(r"(?<=\n)[ \t]+")
# The server lays these out by itself, and aligns lines on each other.
PRINTED_BY_SERVER: Final = frozenset({"ViewStmt", "CreateTableAsStmt", "RuleStmt"})


def spell(text: str, kind: str, *, relay: bool = True) -> str:
    """A statement with unquoted words in lower case, which means the same, and half its indentation.

    Args:
        text: The statement.
        kind: That of its parse tree.
        relay: Whether the indentation is pg_dump's, which is halved where the server has not set it.
    """
    relaid = relay and kind not in PRINTED_BY_SERVER
    pieces: list[str] = []
    position, before = 0, ""
    for token in code(text):
        gap = text[position : token.start]
        if not gap and before == ",":
            gap = " "
        pieces.append(INDENT.sub(_halved, gap) if relaid else gap)
        pieces.append(token.text.lower() if WORD.fullmatch(token.text) else token.text)
        position, before = token.start + len(token.text), token.text
    return _broken("".join(pieces), BREAKS.get(kind, frozenset()))


def _broken(text: str, words: frozenset[str]) -> str:
    """The statement with a line break before each of these words, where a line is too long without."""
    if not words or max(map(len, text.split("\n"))) < WIDTH:
        return text
    pieces: list[str] = []
    position, depth = 0, 0
    for token in code(text):
        gap = text[position : token.start]
        if depth == 0 and token.text in words and gap == " ":
            gap = "\n  "
        depth += (token.text == "(") - (token.text == ")")
        pieces += [gap, token.text]
        position = token.start + len(token.text)
    return "".join(pieces)


def _halved(indent: re.Match[str]) -> str:
    return " " * (len(indent[0].expandtabs(4)) // 2)


def code(text: str) -> Iterator[Token]:
    """The tokens of a statement without its comments."""
    return (token for token in tokens(text) if token.kind is TokenKind.OTHER)


def replace_tokens(text: str, starts: dict[int, str]) -> str:
    """The text with the tokens that start at these characters replaced."""
    pieces: list[str] = []
    position = 0
    for token in code(text):
        if token.start in starts:
            pieces += [text[position : token.start], starts[token.start]]
            position = token.start + len(token.text)
    return "".join((*pieces, text[position:]))
