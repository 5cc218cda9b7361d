"""The vocabulary that the plan, the renderer and the proof share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where in a migration a statement stands, in file order."""

    PREPARE = "prepare"
    EXPAND = "expand"
    BACKFILL = "backfill"
    ENFORCE = "enforce"
    INSTALL = "install"
    RETIRE = "retire"


PHASE_ORDER: tuple[Phase, ...] = tuple(Phase)


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something a reviewer must know about one statement: `code` is documented in docs/reference/hazards.md."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement of a plan.

    `sql` has no trailing semicolon or line feed. `claim` says which object it pays for, such as
    `create table public.users`.
    """

    sql: str
    claim: str
    phase: Phase
    hazards: tuple[Hazard, ...] = ()


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
    `notes` are differences in kind that stay, such as column order.
    """

    statements: tuple[Statement, ...] = ()
    checks: tuple[RowCheck, ...] = ()
    backfills: tuple[Backfill, ...] = ()
    losses: tuple[Loss, ...] = ()
    touched: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, phase: Phase) -> tuple[Statement, ...]:
        """The statements of one phase, in order."""
        return tuple(statement for statement in self.statements if statement.phase is phase)
