r"""A file of SQL, read and parsed: its statements with their places, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.digest import BrokenTextError, TokenKind, is_dump_guard, tokens
from pgsluice.pipeline.lint.model import LintFinding, LintText
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM: Final = b"\xef\xbb\xbf"

# A node of the parser's JSON, whose shape depends on its kind.
Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement; `start` and `end` count characters, `kind` is its node's (`CreateStmt`)."""

    kind: str
    node: Node
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Script:
    """The statements of a file.

    `sql` is the text as the server gets it, of the same length as the file's: without psql's lines.
    `is_valid` says that PostgreSQL's grammar accepts it.
    """

    file: LintText
    sql: str
    statements: tuple[ScriptStatement, ...] = ()
    problems: tuple[LintFinding, ...] = ()
    is_valid: bool = True
    transactional: bool = True

    def location(self, statement: ScriptStatement) -> Location:
        """Where a statement starts."""
        return self.file.location(statement.start)

    def end_line(self, statement: ScriptStatement) -> int:
        """The line in which a statement ends."""
        return self.file.line_of(max(statement.end - 1, statement.start))


def decode(data: bytes, name: str) -> str | LintFinding:
    """The text of a file, or what is wrong with its bytes."""
    if data.startswith(BOM):
        return found("unreadable-file", "the file starts with a byte order mark", Location(name, 1, 1))
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        return found(
            "unreadable-file", f"byte 0x{data[exc.start]:02x} is not valid UTF-8", Location(name, line)
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return found(
            "unreadable-file",
            "the file holds a NUL byte",
            Location(name, line),
            recipe="save the file as UTF-8 if it is UTF-16, or take the byte out",
        )
    return text


def read_script(name: str, text: str, *, transactional: bool = True) -> Script:
    """Parse a file's text with PostgreSQL's grammar; what is wrong with it is in `problems`."""
    file = LintText(name, text)
    sql, problems = _without_psql(file)
    try:
        statements = tuple(_parsed(name, sql))
    except InputError as exc:
        wrong = () if problems else (_syntax_error(exc, name),)
        return Script(file, sql, (), (*problems, *wrong), False, transactional)
    return Script(file, sql, statements, problems, True, transactional)


def _parsed(name: str, sql: str) -> Iterator[ScriptStatement]:
    from pgsluice.pipeline.sources.model import SourceFile
    from pgsluice.pipeline.sources.parse import parse_file

    for parsed in parse_file(SourceFile(name, sql)):
        yield ScriptStatement(parsed.kind, parsed.node, parsed.start, parsed.end)


def _syntax_error(error: InputError, name: str) -> LintFinding:
    place = error.location or Location(name)
    return found("syntax-error", error.message, Location(name, place.line, place.column))


def _without_psql(file: LintText) -> tuple[str, tuple[LintFinding, ...]]:
    r"""The text with psql's lines blanked, and a finding for each but pg_dump's `\restrict` pair."""
    text = file.text
    if "\\" not in text:
        return text, ()
    problems: list[LintFinding] = []
    try:
        for token in tokens(file.text):
            if token.kind is not TokenKind.META:
                continue
            end = token.start + len(token.text)
            text = text[: token.start] + " " * len(token.text) + text[end:]
            if not is_dump_guard(token.text):
                word = token.text.split(maxsplit=1)[0]
                problems.append(
                    found(
                        "psql-command",
                        f"{word} is a command of psql, not SQL",
                        file.location(token.start),
                    )
                )
    except BrokenTextError:
        return text, tuple(problems)  # the parser says what is wrong
    return text, tuple(problems)
