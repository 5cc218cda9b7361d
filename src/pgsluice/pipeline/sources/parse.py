"""One schema file: read, checked for what psql alone understands, split into statements and parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pglast.parser import ParseError, parse_sql_json

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.digest import BrokenTextError, TokenKind, is_dump_guard, tokens
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.tree import Node, read_trees

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BOM: Final = b"\xef\xbb\xbf"
_GAP: Final = re.compile(r"(?:\s+|--[^\r\n]*+|/\*(?:[^/*]++|\*(?!/)|/(?!\*))*+\*/)*+")
_COPY: Final = re.compile(r"\bcopy\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement of a file; `start` and `end` count characters, `byte_start` bytes of the whole file."""

    file: SourceFile
    kind: str
    node: Node
    start: int
    end: int
    byte_start: int

    @property
    def text(self) -> str:
        """The statement as written, without its semicolon."""
        return self.file.text[self.start : self.end]

    def position(self, byte: int) -> int:
        """The character in the file that stands at a byte, for a place within this statement."""
        if self.file.text.isascii():
            return byte
        data = self.text.encode()[: byte - self.byte_start]
        return self.start + len(data.decode(errors="ignore"))


def read_file(path: Path, name: str, *, kind: str = "schema") -> SourceFile:
    r"""Read one file as UTF-8, and blank the `\restrict` lines of pg_dump out of it; `kind` is for messages.

    Raises:
        InputError: A byte order mark, invalid UTF-8, a NUL, a psql meta-command, or data for `copy`.
    """
    data = path.read_bytes()
    if data.startswith(_BOM):
        raise InputError(
            "the file starts with a byte order mark",
            location=Location(name, line=1),
            hint=rf"sed -i '1s/^\xef\xbb\xbf//' {name}",
        )
    try:
        file = SourceFile(name, data.decode())
    except UnicodeDecodeError as exc:
        raise InputError(
            f"the file is not valid UTF-8: byte 0x{data[exc.start]:02x} at offset {exc.start}",
            location=SourceFile(name, data[: exc.start].decode()).line_location(exc.start),
            hint="save the file as UTF-8",
        ) from exc
    if "\0" in file.text:
        raise InputError("the file holds a NUL byte", location=file.line_location(file.text.index("\0")))
    if "\\" in file.text or _COPY.search(file.text):
        return _without_psql(file, kind)
    return file


def parse_file(file: SourceFile) -> Iterator[Parsed]:
    """Split a file into statements, each parsed by PostgreSQL's own grammar.

    Raises:
        InputError: A syntax error, with file:line:column and the line.
    """
    try:
        json_text = parse_sql_json(file.text)
    except ParseError as exc:
        raise _syntax_error(file, exc) from exc
    data = None if file.text.isascii() else file.text.encode()
    byte, char = 0, 0
    for tree in read_trees(json_text):
        if data is None:
            begin = tree.start
            end = len(file.text) if tree.size is None else begin + tree.size
        else:
            begin = char + len(data[byte : tree.start].decode())
            stop = len(data) if tree.size is None else tree.start + tree.size
            end = begin + len(data[tree.start : stop].decode())
            byte, char = stop, end
        start = _first_token(file.text, begin, end=end)
        byte_start = tree.start + len(file.text[begin:start].encode())
        end = start + len(file.text[start:end].rstrip())
        yield Parsed(file, tree.kind, tree.node, start, end, byte_start)


def _syntax_error(file: SourceFile, error: ParseError) -> InputError:
    message, index = error.args
    if index is not None:
        return InputError(message, location=file.location(index))
    if message.endswith("end of input"):
        return InputError(message, location=file.location(len(file.text.rstrip())))
    return InputError(message, location=Location(file.name))


def _first_token(text: str, begin: int, *, end: int) -> int:
    """Where a statement's own text starts, after the whitespace and comments in front of it."""
    match = _GAP.match(text, begin)
    assert match is not None
    start = match.end()
    if text.startswith("/*", start):  # a comment that holds comments
        inner = tokens(text[start:end])
        start += next(token.start for token in inner if token.kind is TokenKind.OTHER)
    return start


def _without_psql(file: SourceFile, kind: str) -> SourceFile:
    text = file.text
    copy_at: int | None = None
    words: list[str] = []
    try:
        for token in tokens(text):
            if token.kind is TokenKind.META:
                if not is_dump_guard(token.text):
                    raise _meta_error(file, token.start, token.text, kind=kind)
                end = token.start + len(token.text)
                text = text[: token.start] + " " * len(token.text) + text[end:]
            elif token.kind is TokenKind.OTHER:
                word = token.text.lower()
                if word == ";":
                    copy_at, words = None, []
                elif not words:
                    copy_at = token.start if word == "copy" else None
                    words = [word]
                elif copy_at is not None:
                    words.append(word)
                    if words[-2:] in (["from", "stdin"], ["to", "stdout"]):
                        raise _copy_error(file, copy_at, " ".join(words[-2:]), kind=kind)
    except BrokenTextError:
        return SourceFile(file.name, text)  # the parser says what is wrong
    return SourceFile(file.name, text)


def _meta_error(file: SourceFile, position: int, text: str, *, kind: str) -> InputError:
    return InputError(
        f"{text.split(maxsplit=1)[0]} is a command of psql, not SQL",
        location=file.location(position),
        hint=f"take the line out: {kind} files go to the server as they are",
    )


def _copy_error(file: SourceFile, position: int, direction: str, *, kind: str) -> InputError:
    return InputError(
        f"copy {direction} needs psql; a {kind} file holds no data",
        location=file.line_location(position),
        hint="dump the schema alone: pg_dump --schema-only, or write the rows as insert statements",
    )
