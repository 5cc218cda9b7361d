"""From marked pieces to a file that reads well: headings, one statement a paragraph, comments kept."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pglast.parser import ParseError

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.written import forbidden, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgsluice.pipeline.marks import Origin, Piece
    from pgsluice.pipeline.statement import Plan, Statement
    from pgsluice.pipeline.template_source import TemplateLoader

PLAIN_SQL: Final = "a migration is plain SQL: commands of psql do not work in it"


@dataclass(frozen=True, slots=True)
class RenderedStatement:
    """A statement of a migration's text.

    `sql` has no semicolon and starts in line `line` of the text. `claim` says what a generated statement is
    for; `template` is where a hand-written one comes from.
    """

    sql: str
    line: int
    block: str
    claim: str | None
    template: Location | None


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """One statement with its comments; `sql` is empty when there are comments alone."""

    sql: str
    block: str
    before: tuple[str, ...] = ()
    after: str = ""
    claim: str | None = None
    template: Location | None = None
    is_written: bool = False


def assemble(
    pieces: Sequence[Piece],
    plan: Plan,
    *,
    loader: TemplateLoader,
    header: tuple[str, ...],
    transactional: bool,
) -> tuple[str, tuple[RenderedStatement, ...]]:
    """The file's text and its statements.

    Raises:
        InputError: Hand-written SQL does not parse, or holds what no migration may.
    """
    lines = list(header)
    statements: list[RenderedStatement] = []
    paragraphs = _paragraphs(pieces, plan, loader=loader, transactional=transactional)
    heading: tuple[str, bool] | None = None
    for paragraph in paragraphs:
        lines.append("")
        if heading != (paragraph.block, paragraph.is_written):
            heading = (paragraph.block, paragraph.is_written)
            lines += [f"-- {paragraph.block}{' (hand-written)' if paragraph.is_written else ''}", ""]
        lines += [line for comment in paragraph.before for line in comment.split("\n")]
        if paragraph.sql:
            statements.append(
                RenderedStatement(
                    sql=paragraph.sql,
                    line=len(lines) + 1,
                    block=paragraph.block,
                    claim=paragraph.claim,
                    template=paragraph.template,
                )
            )
            text = paragraph.sql + ";" + (f" {paragraph.after}" if paragraph.after else "")
            lines += text.split("\n")
    return "\n".join(lines) + "\n", tuple(statements)


def _paragraphs(
    pieces: Sequence[Piece], plan: Plan, *, loader: TemplateLoader, transactional: bool
) -> Iterator[_Paragraph]:
    def kind(piece: Piece) -> tuple[str | None, bool, int | None]:
        return piece.block, piece.origin is not None, piece.generated

    for (block, is_written, generated), group in groupby(pieces, kind):
        run = _Run(tuple(group), loader)
        if generated is not None:
            yield _generated(plan.statements[generated], block or "")
        elif block is not None:
            yield from run.paragraphs(block, is_written=is_written, transactional=transactional)
        elif run.text.strip():
            raise InputError("text outside of blocks would be left out", location=run.place(0))


def _generated(statement: Statement, block: str) -> _Paragraph:
    hazards = tuple(
        f"-- hazard {hazard.code}: {' '.join(hazard.text.split())}" for hazard in statement.hazards
    )
    return _Paragraph(sql=statement.sql, block=block, before=hazards, claim=statement.claim)


class _Run:
    """Text that templates print between two generated statements."""

    def __init__(self, pieces: tuple[Piece, ...], loader: TemplateLoader) -> None:
        self.loader = loader
        self.text = "".join(piece.text for piece in pieces)
        self.starts: list[int] = []
        self.origins: list[Origin | None] = []
        offset = 0
        for piece in pieces:
            self.starts.append(offset)
            self.origins.append(piece.origin)
            offset += len(piece.text)

    def paragraphs(self, block: str, *, is_written: bool, transactional: bool) -> Iterator[_Paragraph]:
        """The statements, checked."""
        try:
            found = split_text(self.text)
        except ParseError as exc:
            offset = int(exc.args[1]) if len(exc.args) > 1 else 0
            hint = PLAIN_SQL if self.text[offset : offset + 1] == "\\" else None
            raise InputError(
                f"{exc.args[0]} in block {block}", location=self.place(offset), hint=hint
            ) from exc
        for statement in found:
            place = self.place(statement.offset) if is_written else None
            if statement.sql and (wrong := forbidden(statement.sql, transactional=transactional)):
                raise InputError(wrong[0], location=place, hint=wrong[1])
            yield _Paragraph(
                sql=statement.sql,
                block=block,
                before=statement.before,
                after=statement.after,
                template=place,
                is_written=is_written,
            )

    def place(self, offset: int) -> Location | None:
        """The template's line that printed the text at `offset`; the column where it is the same there."""
        origin = self.origins[bisect_right(self.starts, offset) - 1]
        if origin is None:
            return None
        location = self.loader.location(origin.file, origin.line)
        start = self.text.rfind("\n", 0, offset) + 1
        line = self.text[start:].split("\n", 1)[0]
        if line != location.source:
            return location
        return Location(location.file, location.line, offset - start + 1, location.source)
