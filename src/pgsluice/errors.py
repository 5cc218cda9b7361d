"""Every error a user can meet: what is wrong, where, what to do next, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class ExitCode(IntEnum):
    """Process exit codes; when several apply the order is 2, 3, 4, 1."""

    OK = 0
    FINDING = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4

    @classmethod
    def of_all(cls, codes: Iterable[ExitCode]) -> ExitCode:
        """The one to end with when several things happened."""
        found = set(codes)
        order = (cls.USAGE, cls.UNREACHABLE, cls.REFUSED, cls.FINDING)
        return next((code for code in order if code in found), cls.OK)


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a text file; `line` and `column` count from 1, `source` is that line's text."""

    file: str
    line: int | None = None
    column: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    def excerpt(self) -> tuple[str, ...]:
        """The source line with a caret under `column`, or nothing when either is unknown."""
        if self.source is None:
            return ()
        if self.column is None:
            return (self.source,)
        head = "".join("\t" if char == "\t" else " " for char in self.source[: self.column - 1])
        return (self.source, f"{head}^")


class PipelineError(Exception):
    """Base of all the pipeline's errors.

    Args:
        message: What is wrong; lower case, no full stop, real names and values.
        location: Where in a file, if anywhere.
        details: Further lines, such as a bounded sample of rows.
        hint: What to do next, as a command or text to paste.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FINDING

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        details: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.details = details
        self.hint = hint

    @property
    def exit_status(self) -> int:
        """What the process ends with."""
        return int(self.exit_code)

    def lines(self) -> tuple[str, ...]:
        """The whole error as plain text lines, without colours and without the `error:` prefix."""
        head = f"{self.location}: {self.message}" if self.location else self.message
        excerpt = self.location.excerpt() if self.location else ()
        return (head, *(f"  {line}" for line in (*excerpt, *self.details)))

    def __str__(self) -> str:
        return "\n".join((*self.lines(), *((f"hint: {self.hint}",) if self.hint else ())))


class FindingError(PipelineError):
    """A check found something, or a proof failed."""


class InputError(PipelineError):
    """Usage, configuration or input files are wrong; nothing was written."""

    exit_code = ExitCode.USAGE


class UnreachableError(PipelineError):
    """A database server cannot be started or reached, or refuses its rights."""

    exit_code = ExitCode.UNREACHABLE


class RefusedError(PipelineError):
    """Refused for safety: data would be lost, a backfill is missing, a kind cannot be migrated."""

    exit_code = ExitCode.REFUSED
