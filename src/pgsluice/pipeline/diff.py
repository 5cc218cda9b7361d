"""Find a plan whose measured effect is the wanted catalog: propose, run on a clone, settle, run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import psycopg

from pgsluice.errors import RefusedError
from pgsluice.pipeline.plan import make_plan
from pgsluice.pipeline.snapshot import Address, Snapshot, compare
from pgsluice.pipeline.statement import PHASE_ORDER, Plan, Statement

ROUNDS: Final = 3

# Runs statements on a fresh clone of *from* and reads the catalog that they leave.
Measure = Callable[[Sequence[Statement]], Snapshot]


class StatementError(Exception):
    """A proposed statement that the server refused; `error` is the server's own."""

    def __init__(self, statement: Statement, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.statement = statement
        self.error = error


def find_plan(before: Snapshot, after: Snapshot, measure: Measure) -> Plan:
    """Plan, measure on a clone, and settle what is left until nothing is.

    Args:
        before: The catalog that the history gives.
        after: The catalog that the schema files give.
        measure: Runs statements on a new clone of *from* and reads the result.

    Raises:
        RefusedError: A difference that the plan cannot bring home, each named with facet and both values.
    """
    if not compare(after, before):
        return Plan(notes=column_order(after, before))
    plan = make_plan(before, after)
    for _ in range(ROUNDS):
        reached = _measured(plan, measure)
        left = compare(after, reached)
        if not left:
            return _with_notes(plan, column_order(after, reached))
        more = make_plan(reached, after, settling=True)
        if not more.statements:
            break
        plan = _joined(plan, more)
    raise RefusedError(
        f"{len(left)} difference(s) cannot be migrated yet",
        details=tuple(str(difference) for difference in left[:20]),
        hint="write their statements in a block of the migration's template; docs/reference/coverage.md lists the kinds",
    )


def _measured(plan: Plan, measure: Measure) -> Snapshot:
    try:
        return measure(plan.statements)
    except StatementError as exc:
        diag = exc.error.diag
        details = [*exc.statement.sql.splitlines()[:12], f"the server says: {diag.message_primary or exc.error}"]
        details += [f"detail: {diag.message_detail}"] if diag.message_detail else []
        raise RefusedError(
            f"cannot migrate: {exc.statement.claim} is not accepted by the server",
            details=tuple(details),
            hint="split the change over two migrations, or write the statement in a block of the migration's template",
        ) from exc.error


def _joined(plan: Plan, more: Plan) -> Plan:
    """Both plans as one: what settles follows in the same phases, after all that made it necessary."""
    last = max((PHASE_ORDER.index(one.phase) for one in plan.statements), default=0)
    late = tuple(
        Statement(one.sql, one.claim, PHASE_ORDER[max(last, PHASE_ORDER.index(one.phase))], one.hazards)
        for one in more.statements
    )
    return Plan(
        statements=plan.statements + late,
        checks=plan.checks,
        backfills=plan.backfills + more.backfills,
        losses=plan.losses + more.losses,
        touched=tuple(sorted({*plan.touched, *more.touched})),
        notes=plan.notes,
    )


def _with_notes(plan: Plan, notes: tuple[str, ...]) -> Plan:
    return Plan(plan.statements, plan.checks, plan.backfills, plan.losses, plan.touched, plan.notes + notes)


def column_order(expected: Snapshot, actual: Snapshot) -> tuple[str, ...]:
    """Tables whose columns stand in another order: a difference in kind, told and left."""
    wanted, found = _columns(expected), _columns(actual)
    return tuple(
        f"column order of {'.'.join(table)} stays {', '.join(found[table])}; the schema has {', '.join(wanted[table])}"
        for table in sorted(wanted.keys() & found.keys())
        if wanted[table] != found[table]
    )


def _columns(snapshot: Snapshot) -> dict[tuple[str, ...], list[str]]:
    tables: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for address, obj in snapshot.objects.items():
        if address.kind == "column":
            tables.setdefault(address.path[:2], []).append((int(obj.get("position")), address.path[2]))
    return {table: [name for _, name in sorted(columns)] for table, columns in tables.items()}


def changed_addresses(before: Snapshot, after: Snapshot) -> tuple[Address, ...]:
    """Every object that differs."""
    return tuple(dict.fromkeys(difference.address for difference in compare(before, after)))
