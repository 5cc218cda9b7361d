"""Find a plan whose measured effect is the wanted catalog: propose, run on a clone, settle, run again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pgsluice.errors import RefusedError
from pgsluice.pipeline.generate.naming import ident
from pgsluice.pipeline.plan import make_plan
from pgsluice.pipeline.plan.hints import Hint, hinted_renames
from pgsluice.pipeline.plan.renames import equal_but_for_name, not_null_follow_ups
from pgsluice.pipeline.snapshot import Snapshot, compare
from pgsluice.pipeline.statement import PHASE_ORDER, Plan, Statement

if TYPE_CHECKING:
    import psycopg

ROUNDS: Final = 3

# Runs statements on a fresh clone of *from* and reads the catalog that they leave.
Measure = Callable[[Sequence[Statement]], Snapshot]


class StatementError(Exception):
    """A proposed statement that the server refused; `error` is the server's own."""

    def __init__(self, statement: Statement, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.statement = statement
        self.error = error


def find_plan(before: Snapshot, after: Snapshot, measure: Measure, *, hints: Sequence[Hint] = ()) -> Plan:
    """Plan, measure on a clone, and settle what is left until nothing is.

    Args:
        before: The catalog that the history gives.
        after: The catalog that the schema files give.
        measure: Runs statements on a new clone of *from* and reads the result.
        hints: Renames that the schema files tell; they are applied to *from* first.

    Raises:
        RefusedError: A difference that the plan cannot bring home, each named with facet and both values.
    """
    if not compare(after, before):
        return Plan()
    renames, start = _renamed(before, after, measure, hints)
    plan = _led_by(renames, make_plan(start, after), hints)
    for _ in range(ROUNDS):
        reached = _measured(plan.statements, measure)
        left = compare(after, reached)
        if not left:
            return replace(plan, notes=plan.notes + column_order(after, reached, plan.touched))
        # what a tree's keys and indexes brought along to its partitions has names of the server's choice
        names = equal_but_for_name(reached, after)
        if names:
            plan = _joined(plan, Plan(names))
            reached = _measured(plan.statements, measure)
        more = make_plan(reached, after, settling=True)
        if not more.statements and not names:
            break
        plan = _joined(plan, more)
    raise RefusedError(
        f"{len(left)} difference(s) cannot be migrated yet",
        details=tuple(str(difference) for difference in left[:20]),
        hint="write their statements in block prepare of the migration's template: the plan starts from "
        "what they leave; docs/reference/coverage.md lists the kinds",
    )


def _renamed(
    before: Snapshot, after: Snapshot, measure: Measure, hints: Sequence[Hint]
) -> tuple[tuple[Statement, ...], Snapshot]:
    """The renames, and the catalog that they lead to: the plan starts from there."""
    told = hinted_renames(hints, before, after)
    start = _measured(told, measure) if told else before
    follow = not_null_follow_ups(told, before, after, start) + equal_but_for_name(start, after)
    renames = told + follow
    return renames, _measured(renames, measure) if follow else start


def _led_by(renames: tuple[Statement, ...], plan: Plan, hints: Sequence[Hint]) -> Plan:
    """The plan behind its renames, less the checks of rows by names that exist only after them."""
    told = "|".join(re.escape(ident(hint.new)) for hint in hints) if renames else ""
    later = re.compile(rf"(?<![\w$])(?:{told})(?![\w$])") if told else None
    checks = tuple(check for check in plan.checks if later is None or not later.search(check.rows))
    order = _shifted(plan.order, by=len(renames))
    return replace(plan, statements=renames + plan.statements, checks=checks, order=order)


def _shifted(order: Iterable[tuple[int, int]], *, by: int) -> frozenset[tuple[int, int]]:
    return frozenset((first + by, second + by) for first, second in order)


def _measured(statements: Sequence[Statement], measure: Measure) -> Snapshot:
    try:
        return measure(statements)
    except StatementError as exc:
        diag = exc.error.diag
        details = [
            *exc.statement.sql.splitlines()[:12],
            f"the server says: {diag.message_primary or exc.error}",
        ]
        details += [f"detail: {diag.message_detail}"] if diag.message_detail else []
        raise RefusedError(
            f"cannot migrate: {exc.statement.claim} is not accepted by the server",
            details=tuple(details),
            hint="write this change in block prepare of the migration's template: the plan starts from "
            "what it leaves",
        ) from exc.error


def _joined(plan: Plan, more: Plan) -> Plan:
    """Both plans as one: what settles follows in the same phases, after all that made it necessary."""
    last = max((PHASE_ORDER.index(one.phase) for one in plan.statements), default=0)
    late = tuple(
        replace(one, phase=PHASE_ORDER[max(last, PHASE_ORDER.index(one.phase))]) for one in more.statements
    )
    here = len(plan.statements)
    at_work = [number for number, one in enumerate(plan.statements) if one.work is not None]
    order = frozenset((number, here + place) for number in at_work for place in range(len(late)))
    return replace(
        plan,
        statements=plan.statements + late,
        backfills=plan.backfills + more.backfills,
        losses=plan.losses + more.losses,
        touched=tuple(sorted({*plan.touched, *more.touched})),
        order=plan.order | order | _shifted(more.order, by=here),
    )


def column_order(expected: Snapshot, actual: Snapshot, tables: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Those of `tables` whose columns stand in another order: a difference in kind, told and left."""
    return tuple(
        f"column order of {'.'.join(table)} stays {', '.join(found)}; the schema has {', '.join(wanted)}"
        for table, (wanted, found) in misordered(expected, actual).items()
        if table in tables
    )


def misordered(
    expected: Snapshot, actual: Snapshot
) -> dict[tuple[str, ...], tuple[Sequence[str], Sequence[str]]]:
    """The tables whose columns stand in another order than expected: the expected one, and the actual.

    Columns that one side lacks are left out.
    """
    wanted, found = _columns(expected), _columns(actual)
    both = {
        table: (
            [name for name in wanted[table] if name in found[table]],
            [name for name in found[table] if name in wanted[table]],
        )
        for table in sorted(wanted.keys() & found.keys())
        if wanted[table] != found[table]
    }
    return {table: (want, have) for table, (want, have) in both.items() if want != have}


def _columns(snapshot: Snapshot) -> dict[tuple[str, ...], list[str]]:
    tables: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for address, obj in snapshot.objects.items():
        if address.kind == "column":
            tables.setdefault(address.path[:2], []).append((int(obj.get("position")), address.path[2]))
    return {table: [name for _, name in sorted(columns)] for table, columns in tables.items()}
