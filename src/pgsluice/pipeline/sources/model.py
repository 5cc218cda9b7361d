"""What reading a schema folder gives: statements in load order, rename hints, the roles that it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgsluice.errors import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

# A longer line than this is left out of messages.
_SHOWN_LINE_CHARS = 300


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One schema file: its name as messages show it, and its text as PostgreSQL gets it."""

    name: str
    text: str = field(repr=False)

    def location(self, position: int) -> Location:
        """The place of a character (counted from 0) in this file."""
        line_start = self.text.rfind("\n", 0, position) + 1
        line_end = self.text.find("\n", position)
        source = self.text[line_start : len(self.text) if line_end < 0 else line_end].rstrip("\r")
        return Location(
            self.name,
            line=self.text.count("\n", 0, position) + 1,
            column=position - line_start + 1,
            source=source if len(source) <= _SHOWN_LINE_CHARS else None,
        )

    def line_location(self, position: int) -> Location:
        """The line of a character, without column or text: for errors about whole statements."""
        return Location(self.name, line=self.text.count("\n", 0, position) + 1)


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """One statement to load, without its semicolon.

    `offset` is where it starts in its file, in characters, and `line` that place's line. `is_verbatim` says
    that the text has the length and line ends of the file's text there, so that a position in one is a
    position in the other. `keeps_order` says that it belongs to a file of imperative statements, which may
    have changed settings such as `search_path`.
    """

    text: str
    file: str
    line: int
    offset: int
    is_verbatim: bool = True
    keeps_order: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """A `-- pgsluice: renamed from` hint.

    `kind` is the word of the statement: `table`, `column`, `view`, `type`, `function`, ...; `schema` is None
    where the object is not qualified, and `table` is set for what lives in a table, type or domain.
    """

    kind: str
    schema: str | None
    table: str | None
    old: str
    new: str
    location: Location


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """A schema folder as it was read.

    `roles` are the roles named in grants, owners, policies and default privileges, `superusers` those of
    them that must be superusers; `files` holds each file's text by its name.
    """

    statements: tuple[SourceStatement, ...]
    digest: str
    renames: tuple[Rename, ...] = ()
    roles: tuple[str, ...] = ()
    superusers: tuple[str, ...] = ()
    files: Mapping[str, SourceFile] = field(default_factory=dict, repr=False)
