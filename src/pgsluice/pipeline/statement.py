"""The vocabulary that the plan, the renderer and the proof share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot.model import Address


class Phase(StrEnum):
    """Where in a migration a statement stands, in file order."""

    PREPARE = "prepare"
    EXPAND = "expand"
    BACKFILL = "backfill"
    ENFORCE = "enforce"
    INSTALL = "install"
    RETIRE = "retire"


PHASE_ORDER: tuple[Phase, ...] = tuple(Phase)


class Work(StrEnum):
    """What a statement does with the rows of a table that is there, where others could work meanwhile."""

    CHECK_ROWS = "add a check or a foreign key"
    VALIDATE = "validate a constraint"
    FILL_COLUMN = "set a column not null"
    BUILD_INDEX = "build an index"
    BUILD_KEY = "build a unique or primary key"
    DROP_INDEX = "drop an index"


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something a reviewer must know about one statement; docs/reference/hazards.md has every `code`."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement of a plan.

    `sql` has no trailing semicolon or line feed. `claim` says which object it pays for, such as
    `create table public.users`; `address` is that object's. `work` is set where rows are in the way, and
    `checks` are what would make it fail on them.
    """

    sql: str
    claim: str
    phase: Phase
    hazards: tuple[Hazard, ...] = ()
    address: Address | None = None
    work: Work | None = None
    checks: tuple[RowCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Rows that would make the migration fail on existing data: refused in `preflight`.

    `rows` is a query whose rows are the offenders (bounded by the macro that renders it).
    """

    rows: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Backfill:
    """A `not null` column without default, added to a table that the history already has."""

    schema: str
    table: str
    column: str
    type: str


@dataclass(frozen=True, slots=True)
class Loss:
    """Data that a statement of the plan destroys: needs `--allow-destructive` or a template's word.

    `rename` is set where a new object of the same shape stands beside: it looks like a rename, so the flag
    does not suffice; it names the new object and the hint that would keep the data.
    """

    what: str
    sql: str
    rename: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """An ordered migration: statements are sorted by phase, and within a phase by dependency.

    `touched` are the (schema, table) pairs of tables that exist before and are altered or read by it.
    `notes` are differences in kind that stay, such as column order. `order` are the places of two statements
    of which the first must stay before the second, wherever both are put.
    """

    statements: tuple[Statement, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    backfills: tuple[Backfill, ...] = ()
    losses: tuple[Loss, ...] = ()
    touched: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    order: frozenset[tuple[int, int]] = frozenset()

    def of(self, phase: Phase) -> tuple[Statement, ...]:
        """The statements of one phase, in order."""
        return tuple(statement for statement in self.statements if statement.phase is phase)
