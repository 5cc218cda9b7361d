"""Digests of SQL text and of a schema folder: equal when only comments, whitespace or line ends differ.

The tokenizer is our own: it splits as `pglast.parser.scan` does (a test compares the two), takes half the
time, stays linear on text that is not ASCII, and keeps `verify` free of the import.
"""

from __future__ import annotations

import hashlib
import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from pgsluice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What an identifier does *not* hold; a class with a range up to U+10FFFF would take 30 ms to compile.
_NOT_FIRST: Final = r"\x00-@\[-\^`{-\x7f"
_NOT_NEXT: Final = r"\x00-/:-@\[-\^`{-\x7f"
_NOT_WORD: Final = r"\x00-#%-/:-@\[-\^`{-\x7f"
_TOKEN: Final = re.compile(
    rf"""
    [^{_NOT_FIRST}][^{_NOT_WORD}]*+(?!'|&['"])
  | [(),;\[\]]
  | \.(?![.0-9])
  | '(?:[^']++|'')*+'
  | [0-9][0-9_]*+(?:\.(?!\.)[0-9_]*+)?(?:[eE][+-]?[0-9]++)?[^{_NOT_NEXT}]*+
  | (?P<comment> --[^\r\n]*+ | /\*(?:[^/*]++|\*(?!/)|/(?!\*))*+\*/ )
  | (?P<opening> /\* )
  | (?P<operator> (?:(?!--|/\*)[~!@\#^&|`?+\-*/%<>=])++ )
  | ::|:=|\.\.
  | (?P<dollar> \$(?P<tag>(?:[^{_NOT_FIRST}][^{_NOT_NEXT}]*+)?)\$
      [^$]*+(?:\$(?!(?P=tag)\$)[^$]*+)*+\$(?P=tag)\$ )
  | \$[0-9]++
  | (?:[uU]&)?"(?:[^"]++|"")*+"
  | [eE]'(?:[^'\\]++|\\.|'')*+'(?:[ \t\f\v]*+[\r\n]\s*+'(?:[^'\\]++|\\.|'')*+')*+
  | (?:[uU]&|[bBxXnN])'(?:[^']++|'')*+'
  | (?P<broken> (?:[eE]|[uU]&|[bBxXnN])?['"] | \$(?:[^{_NOT_FIRST}][^{_NOT_NEXT}]*+)?\$ )
  | [^{_NOT_FIRST}][^{_NOT_WORD}]*+
  | \.[0-9][0-9_]*+(?:[eE][+-]?[0-9]++)?[^{_NOT_NEXT}]*+
  | (?P<meta> \\[^\r\n]*+ )
  | \S
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WHOLE: Final = frozenset(("comment", "dollar", "meta"))
_NESTING: Final = re.compile(r"/\*|\*/")
_DIRECTIVE: Final = re.compile(r"--[ \t]*pgsluice:(.*)", re.DOTALL)
_ALLOWANCE: Final = re.compile(r"allow(?:-file)?(?![\w-])")
_DUMP_GUARD: Final = re.compile(r"\\(?:un)?restrict(?:\s|$)")
_RICH_OPERATOR: Final = re.compile(r"[~!@#%^&|`?]")


class TokenKind(StrEnum):
    """What a token is, as far as anybody asks.

    An allowance, `-- pgsluice: allow …`, speaks to `lint` alone: it changes nothing of what a file makes.
    """

    ALLOWANCE = "allowance"
    COMMENT = "comment"
    DIRECTIVE = "directive"
    META = "meta"
    OTHER = "other"


class Token(NamedTuple):
    """A token of SQL text; `start` counts characters, a directive's or allowance's is cut to its words."""

    start: int
    text: str
    kind: TokenKind


class BrokenTextError(ValueError):
    """A literal, quoted identifier or comment that never ends; `position` is where it starts."""

    def __init__(self, position: int) -> None:
        super().__init__(f"unterminated literal or comment at character {position}")
        self.position = position


def tokens(text: str) -> Iterator[Token]:
    """Split SQL text into tokens, comments included, whitespace left out.

    Raises:
        BrokenTextError: A literal, quoted identifier or comment is not closed.
    """
    for start, piece, group in _pieces(text):
        if group == "comment":
            yield _comment(start, piece)
        elif group == "meta":
            yield Token(start, piece, TokenKind.META)
        else:
            yield Token(start, piece, TokenKind.OTHER)


def sql_digest(text: str) -> str:
    """The hexadecimal SHA-256 of SQL text: its tokens with their text, never an error.

    Comments, allowances of `lint` and whitespace do not count, other `-- pgsluice:` directives do, and
    whatever stands inside quotes or `$$` counts byte for byte. Text that cannot be split is taken as it is.
    """
    parts: list[str] = []
    try:
        for start, piece, group in _pieces(text):
            if group == "comment":
                token = _comment(start, piece)
                if token.kind is TokenKind.DIRECTIVE:
                    parts.append(token.text)
            elif group != "meta" or not is_dump_guard(piece):
                parts.append(piece)
    except BrokenTextError:
        parts = ["", text]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def schema_digest(folder: Path, *, root: Path | None = None) -> str:
    """The digest of a schema folder: of each file's name in it and the digest of its text.

    Args:
        folder: The folder.
        root: What paths in messages are relative to.

    Raises:
        InputError: The folder is missing, or a link in it leads nowhere.
    """
    digest = hashlib.sha256()
    for name, path in schema_files(folder, root=root):
        digest.update(os.fsencode(name) + b"\0")
        digest.update(_bytes_digest(path.read_bytes()).encode() + b"\0")
    return digest.hexdigest()


def schema_files(folder: Path, *, root: Path | None = None) -> tuple[tuple[str, Path], ...]:
    """Each `.sql` file below a folder with its POSIX path in it, in byte order of that path.

    Hidden files and folders (`.git`, an editor's `.#name.sql`) are left out; links are followed.

    Args:
        folder: The folder.
        root: What paths in messages are relative to.

    Raises:
        InputError: The folder is missing or no folder, a link leads nowhere or back to a folder above it.
    """
    shown = relative_name(folder, root)
    if not folder.exists():
        raise InputError(f"schema folder {shown} does not exist", hint=f"mkdir -p {shown}")
    if not folder.is_dir():
        raise InputError(f"schema folder {shown} is not a folder", hint=f"mv {shown} {shown}.old")
    found = _walk(folder, "", above=(folder.resolve(),), root=root)
    return tuple(sorted(found, key=lambda item: os.fsencode(item[0])))


def relative_name(path: Path, root: Path | None) -> str:
    """A path as messages show it: relative to the root where it is below it."""
    is_below = root is not None and path.is_relative_to(root)
    return (path.relative_to(root) if root is not None and is_below else path).as_posix()


def is_dump_guard(line: str) -> bool:
    r"""Whether a psql meta-command is the `\restrict` or `\unrestrict` that pg_dump prints."""
    return _DUMP_GUARD.match(line) is not None


def _bytes_digest(data: bytes) -> str:
    try:
        return sql_digest(data.decode())
    except UnicodeDecodeError:
        return hashlib.sha256(b"\0" + data).hexdigest()


def _walk(
    folder: Path, prefix: str, *, above: tuple[Path, ...], root: Path | None
) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
    for entry in visible:
        path = folder / entry.name
        shown = relative_name(path, root)
        if entry.is_dir():
            real = path.resolve()
            if real in above:
                raise InputError(f"{shown} is a link to a folder above it", hint=f"rm {shown}")
            yield from _walk(path, f"{prefix}{entry.name}/", above=(*above, real), root=root)
        elif entry.name.endswith(".sql"):
            if not entry.is_file():
                raise InputError(f"{shown} is not a file, or a link that leads nowhere", hint=f"rm {shown}")
            yield f"{prefix}{entry.name}", path


def _pieces(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Each token's start, its text and what `tokens` must know about it."""
    position: int | None = 0
    while position is not None:
        start, position = position, None
        for match in _TOKEN.finditer(text, start):
            group = match.lastgroup
            if group is None or group in _WHOLE:
                yield match.start(), match[0], group
            elif group == "operator":
                yield from _operator(match.start(), match[0])
            elif group == "opening":
                position = _comment_end(text, match.start())
                yield match.start(), text[match.start() : position], "comment"
                break
            else:
                raise BrokenTextError(match.start())


def _comment(start: int, text: str) -> Token:
    directive = _DIRECTIVE.match(text)
    if directive is None:
        return Token(start, text, TokenKind.COMMENT)
    words = directive[1].strip()
    kind = TokenKind.ALLOWANCE if _ALLOWANCE.match(words) else TokenKind.DIRECTIVE
    return Token(start, f"-- pgsluice: {words}", kind)


def _comment_end(text: str, start: int) -> int:
    """Where a comment that holds comments ends."""
    depth = 0
    for match in _NESTING.finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    raise BrokenTextError(start)


def _operator(start: int, text: str) -> Iterator[tuple[int, str, None]]:
    """An operator; signs at its end are tokens of their own, as in PostgreSQL's scanner."""
    size = len(text)
    if size > 1 and text[-1] in "+-" and not _RICH_OPERATOR.search(text):
        size = len(text.rstrip("+-")) or 1
    yield start, text[:size], None
    for offset in range(size, len(text)):
        yield start + offset, text[offset], None
