"""Runs an upgrade fixture: data, migrations, and what must hold, or that a refusal leaves no trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql

from pgsluice.errors import FindingError, InputError, Location, PipelineError, UnreachableError
from pgsluice.pipeline.fixtures import Expectation, Fixture, Query
from pgsluice.pipeline.history import is_transactional
from pgsluice.pipeline.proof import connected, failed_lines, server_lines, shown_sql
from pgsluice.pipeline.written import split_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Connection

ROW_LENGTH: Final = 200

TABLES: Final = """
select n.nspname, c.relname
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relkind in ('r', 'm') and c.relispopulated and c.relpersistence <> 't'
  and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
order by n.nspname, c.relname
"""
ROWS: Final = """
select (pgsluice_row.*)::text from only {} as pgsluice_row order by (pgsluice_row.*)::text collate "C"
"""
SEQUENCES: Final = """
select n.nspname, c.relname
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relkind = 'S' and c.relpersistence <> 't'
  and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
order by n.nspname, c.relname
"""


class MigrationText(NamedTuple):
    """A migration as a fixture runs it; `name` is what messages show."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class FixtureResult:
    """What came of a fixture: no `problem` means that it passed."""

    fixture: Fixture
    problem: PipelineError | None

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return self.problem is None


@dataclass(frozen=True, slots=True)
class _State:
    """All that a refusal must leave as it was."""

    catalog: object
    rows: Mapping[str, tuple[str, ...]]
    sequences: Mapping[str, tuple[object, ...]]


class _Refused(NamedTuple):
    migration: MigrationText
    error: psycopg.Error


def run_fixture(
    conninfo: str,
    fixture: Fixture,
    migrations: Sequence[MigrationText],
    *,
    snapshot: Callable[[Connection[Any]], object] | None = None,
) -> FixtureResult:
    """Run a fixture in a database that stands at its from-version; the database is spent afterwards.

    Args:
        migrations: Those after the from-version, in order, up to where the fixture goes.
        snapshot: Reads the catalog into a value to compare; without it only rows and sequences count.

    Raises:
        UnreachableError: There is no connection.
    """
    try:
        _run(conninfo, fixture, migrations, snapshot=snapshot)
    except UnreachableError:
        raise
    except PipelineError as exc:
        return FixtureResult(fixture, exc)
    return FixtureResult(fixture, None)


def _run(
    conninfo: str,
    fixture: Fixture,
    migrations: Sequence[MigrationText],
    *,
    snapshot: Callable[[Connection[Any]], object] | None,
) -> None:
    _load(conninfo, fixture)
    with connected(conninfo) as watcher:
        refused: _Refused | None = None
        before: _State | None = None
        for migration in migrations:
            if fixture.expectation is Expectation.REFUSED:
                before = _read_state(watcher, snapshot)
            refused = _apply(conninfo, migration)
            if refused is not None:
                break
        if fixture.expectation is Expectation.REFUSED and before is not None:
            _judge_refusal(fixture, refused, migrations)
            _refuse_traces(fixture, before, _read_state(watcher, snapshot))
        elif refused is not None:
            raise FindingError(
                f"{refused.migration.name} refused data that it should accept",
                location=fixture.location(),
                details=_told(refused),
            )
        for query in fixture.queries:
            _check(watcher, fixture, query)


def _load(conninfo: str, fixture: Fixture) -> None:
    """Insert the data in one transaction, in a session of its own."""
    with connected(conninfo) as conn:
        try:
            with conn.transaction():
                conn.execute(fixture.data.encode(), prepare=False)
        except psycopg.Error as exc:
            position = exc.diag.statement_position
            line = fixture.data[: int(position) - 1].count("\n") + 1 if position else None
            raise InputError(
                "the fixture's data cannot be loaded",
                location=fixture.location(line),
                details=server_lines(exc),
            ) from exc


def _apply(conninfo: str, migration: MigrationText) -> _Refused | None:
    """Run a migration in a session of its own; None when it went through."""
    transactional = is_transactional(migration.text)
    steps = (migration.text,) if transactional else tuple(part.sql for part in split_text(migration.text))
    with connected(conninfo) as conn:
        try:
            if transactional:
                with conn.transaction():
                    conn.execute(migration.text.encode(), prepare=False)
            else:
                for step in filter(None, steps):
                    conn.execute(step.encode(), prepare=False)
        except psycopg.Error as exc:
            return _Refused(migration, exc)
    return None


def _judge_refusal(fixture: Fixture, refused: _Refused | None, migrations: Sequence[MigrationText]) -> None:
    if refused is None:
        raise FindingError(
            f"{migrations[-1].name} accepted data that it should refuse", location=fixture.location()
        )
    diag = refused.error.diag
    if diag.sqlstate != fixture.sqlstate:
        raise FindingError(
            f"{refused.migration.name} refused with SQLSTATE {diag.sqlstate}, not {fixture.sqlstate}",
            location=fixture.location(),
            details=_told(refused),
        )
    if not fixture.accepts_message(diag.message_primary or ""):
        raise FindingError(
            f"{refused.migration.name} refused with another message than {fixture.message}",
            location=fixture.location(),
            details=_told(refused),
        )


def _refuse_traces(fixture: Fixture, before: _State, after: _State) -> None:
    traces = ["the catalog differs"] if before.catalog != after.catalog else []
    traces += [
        line
        for name in sorted({*before.rows, *after.rows})
        for line in _row_lines(name, before.rows.get(name), after.rows.get(name))
    ]
    traces += [
        f"sequence {name} moved from {before.sequences.get(name)} to {after.sequences.get(name)}"
        for name in sorted({*before.sequences, *after.sequences})
        if before.sequences.get(name) != after.sequences.get(name)
    ]
    if traces:
        raise FindingError(
            "the refusal left traces",
            location=fixture.location(),
            details=tuple(traces),
            hint="refuse in block preflight, before anything is changed",
        )


def _row_lines(name: str, before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> tuple[str, ...]:
    if before == after:
        return ()
    if before is None or after is None:
        return (f"table {name} {'appeared' if before is None else 'is gone'}",)
    gone = [f"  - {row[:ROW_LENGTH]}" for row in before if row not in after][:3]
    new = [f"  + {row[:ROW_LENGTH]}" for row in after if row not in before][:3]
    return (f"table {name} has {len(after)} rows instead of {len(before)}, or others", *gone, *new)


def _read_state(conn: Connection[Any], snapshot: Callable[[Connection[Any]], object] | None) -> _State:
    """Rows are kept as text in order, which shows any change without knowing the keys."""
    tables: list[tuple[str, str]] = conn.execute(TABLES).fetchall()
    sequences: list[tuple[str, str]] = conn.execute(SEQUENCES).fetchall()
    return _State(
        catalog=snapshot(conn) if snapshot else None,
        rows={".".join(table): _read_rows(conn, table) for table in tables},
        sequences={".".join(name): _read_sequence(conn, name) for name in sequences},
    )


def _read_rows(conn: Connection[Any], table: tuple[str, str]) -> tuple[str, ...]:
    return tuple(row[0] for row in conn.execute(sql.SQL(ROWS).format(sql.Identifier(*table))))


def _read_sequence(conn: Connection[Any], name: tuple[str, str]) -> tuple[object, ...]:
    query = sql.SQL("select last_value, is_called from {}").format(sql.Identifier(*name))
    row: tuple[object, ...] | None = conn.execute(query).fetchone()
    return row or ()


def _check(conn: Connection[Any], fixture: Fixture, query: Query) -> None:
    """Refuse unless the query returns one `true`."""
    try:
        cursor = conn.execute(query.sql.encode(), prepare=False)
        rows = cursor.fetchall() if cursor.description else []
    except psycopg.Error as exc:
        raise FindingError(
            "a query after then: failed",
            location=fixture.location(query.line),
            details=failed_lines(exc, query.sql),
        ) from exc
    if len(rows) == 1 and len(rows[0]) == 1 and rows[0][0] is True:
        return
    got = f"{len(rows)} rows" if len(rows) != 1 else str(rows[0][0] if len(rows[0]) == 1 else rows[0])
    raise FindingError(
        f"a query after then: should return one true, and returned {got[:ROW_LENGTH]}",
        location=Location(fixture.file, query.line),
        details=shown_sql(query.sql),
    )


def _told(refused: _Refused) -> tuple[str, ...]:
    return server_lines(refused.error)
