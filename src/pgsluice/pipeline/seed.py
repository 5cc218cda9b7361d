"""Makes a row in a table of any shape, so that a proof meets data and not only an empty database."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from pgsluice.pipeline.samples import ColumnType, samples_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Table = tuple[str, str]
Choice = dict[str, sql.Composable]

MOST_ATTEMPTS: Final = 300
MOST_COMBINATIONS: Final = 200
DEFAULT: Final = sql.SQL("default")
NULL: Final = sql.SQL("null")

_RESOURCES: Final = files("pgsluice.pipeline").joinpath("resources")
COLUMNS: Final = _RESOURCES.joinpath("seed_columns.sql").read_bytes()
CONSTRAINTS: Final = _RESOURCES.joinpath("seed_constraints.sql").read_bytes()
KIND: Final = """
select c.relkind from pg_catalog.pg_class as c
where c.oid = pg_catalog.to_regclass(pg_catalog.format('%%I.%%I', %s::text, %s::text))
"""
QUALIFIED_NAMES: Final = "set local search_path = ''"
CHECK_NOW: Final = "set constraints all immediate"
WITHOUT_TRIGGERS: Final = "set local session_replication_role = replica"
WITH_TRIGGERS: Final = "set local session_replication_role = origin"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A table that got no row, and why."""

    schema: str
    table: str
    reason: str


@dataclass(frozen=True, slots=True)
class SeedResult:
    """`seeded` have at least one row now, whether it was there or made."""

    seeded: tuple[Table, ...]
    skipped: tuple[Skipped, ...]


def seed_rows(conn: psycopg.Connection[Any], tables: Iterable[Table]) -> SeedResult:
    """Make at least one row in each table where one can be made, and in the tables that it refers to.

    The same tables get the same rows. Triggers and rules fire; where one refuses the row or takes it away,
    the row is stored without them. Joins a transaction if one is open, and leaves its constraints immediate.
    """
    seeder = _Seeder(conn)
    wanted = tuple(dict.fromkeys(tables))
    with conn.transaction():
        reasons = {table: seeder.seed(table) for table in wanted}
    return SeedResult(
        seeded=tuple(table for table, reason in reasons.items() if reason is None),
        skipped=tuple(Skipped(*table, reason) for table, reason in reasons.items() if reason is not None),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str
    is_required: bool
    has_default: bool
    is_always_identity: bool
    base: str
    kind: str
    category: str
    length: int
    size: int
    labels: list[str]
    checks: list[str]

    def shape(self) -> ColumnType:
        return ColumnType(self.base, self.kind, self.category, self.length, self.size, tuple(self.labels))

    def literal(self, text: str) -> sql.Composable:
        return sql.SQL("{}::{}").format(sql.Literal(text), _raw(self.type))


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    name: str
    columns: list[str]
    definition: str | None
    schema: str | None
    table: str | None
    keys: list[str] | None


class _UnseedableError(Exception):
    """A row cannot be made; the text says why."""


class _CycleError(_UnseedableError):
    """A row cannot be made while one that refers to it is being made."""


@dataclass(slots=True)
class _Seeder:
    conn: psycopg.Connection[Any]
    done: dict[Table, str | None] = field(default_factory=dict)
    open: list[Table] = field(default_factory=list)

    def seed(self, table: Table) -> str | None:
        """None when the table has a row now, else the reason; one that may be gone later is not kept."""
        if table not in self.done:
            self.open.append(table)
            try:
                self._make(table)
                self.done[table] = None
            except _CycleError as exc:
                return str(exc)
            except _UnseedableError as exc:
                self.done[table] = str(exc)
            finally:
                self.open.pop()
        return self.done[table]

    def _make(self, table: Table) -> None:
        kind = self.conn.execute(KIND, table).fetchone()
        if kind is None or kind[0] not in ("r", "p"):
            raise _UnseedableError("there is no such table")
        has_row = sql.SQL("select exists (select from {})").format(sql.Identifier(*table))
        found = self.conn.execute(has_row).fetchone()
        if found is not None and found[0]:
            return
        columns, rules = self._read(table)
        values = {column.name: self._candidates(column, rules) for column in columns}
        self._refer(table, columns=columns, rules=rules, values=values)
        self._insert(table, columns=columns, rules=rules, values=values)

    def _read(self, table: Table) -> tuple[list[_Column], list[_Rule]]:
        names = {"schema": table[0], "table": table[1]}
        with self.conn.transaction(force_rollback=True):
            self.conn.execute(QUALIFIED_NAMES)
            with self.conn.cursor(row_factory=class_row(_Column)) as cursor:
                columns = cursor.execute(COLUMNS, names).fetchall()
            with self.conn.cursor(row_factory=class_row(_Rule)) as cursor:
                rules = cursor.execute(CONSTRAINTS, names).fetchall()
        return columns, rules

    def _candidates(self, column: _Column, rules: Sequence[_Rule]) -> list[sql.Composable]:
        """What the column may hold, the likeliest first."""
        if column.is_always_identity:
            return [DEFAULT]
        definitions = [
            *column.checks,
            *(rule.definition for rule in rules if rule.definition and column.name in rule.columns),
        ]
        found = [column.literal(text) for text in samples_for(column.shape(), definitions)]
        before = [DEFAULT] if column.has_default else []
        after = [] if column.is_required else [NULL]
        return [*before, *found, *after]

    def _refer(
        self,
        table: Table,
        *,
        columns: Sequence[_Column],
        rules: Sequence[_Rule],
        values: dict[str, list[sql.Composable]],
    ) -> None:
        """Narrow the columns of foreign keys to keys that exist."""
        known = {column.name: column for column in columns}
        for rule in rules:
            if rule.kind != "foreign key" or rule.schema is None or rule.table is None:
                continue
            optional = [name for name in rule.columns if name in known and not known[name].is_required]
            parent = (rule.schema, rule.table)
            if parent in self.open and optional:
                values[optional[0]] = [NULL]
            elif parent == table:
                self._refer_to_itself(rule, known=known, values=values)
            elif parent in self.open:
                raise _CycleError(f"foreign key {rule.name} is part of a cycle")
            elif (reason := self.seed(parent)) is None:
                self._refer_to_row(rule, parent, known=known, values=values)
            elif optional:
                values[optional[0]] = [NULL]
            else:
                fault = _UnseedableError if parent in self.done else _CycleError
                raise fault(f"foreign key {rule.name}: {parent[0]}.{parent[1]} has no row: {reason}")

    def _refer_to_itself(
        self, rule: _Rule, *, known: dict[str, _Column], values: dict[str, list[sql.Composable]]
    ) -> None:
        for name, key in zip(rule.columns, rule.keys or (), strict=True):
            written = [value for value in values[key] if value not in (DEFAULT, NULL)]
            if not written or known[key].is_always_identity:
                raise _UnseedableError(f"foreign key {rule.name} needs a row that refers to itself")
            values[name] = values[key] = written[:1]

    def _refer_to_row(
        self,
        rule: _Rule,
        parent: Table,
        *,
        known: dict[str, _Column],
        values: dict[str, list[sql.Composable]],
    ) -> None:
        keys = rule.keys or []
        casts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(key)) for key in keys)
        query = sql.SQL("select {} from {} limit 1").format(casts, sql.Identifier(*parent))
        row = self.conn.execute(query).fetchone()
        for name, key in zip(rule.columns, row or (), strict=True):
            if name in known:
                values[name] = [NULL if key is None else known[name].literal(key)]

    def _insert(
        self,
        table: Table,
        *,
        columns: Sequence[_Column],
        rules: Sequence[_Rule],
        values: dict[str, list[sql.Composable]],
    ) -> None:
        """Store a row with a value in every column; else one with as many nulls as it takes."""
        try:
            self._search(table, columns=columns, rules=rules, values=values)
        except _UnseedableError as full:
            sparse = {name: sorted(found, key=lambda value: value != NULL) for name, found in values.items()}
            try:
                self._search(table, columns=columns, rules=rules, values=sparse)
            except _UnseedableError:
                raise full from None

    def _search(
        self,
        table: Table,
        *,
        columns: Sequence[_Column],
        rules: Sequence[_Rule],
        values: dict[str, list[sql.Composable]],
    ) -> None:
        """Try values until a row is stored; each failure says which columns to change."""
        choice: Choice = {name: candidates[0] for name, candidates in values.items()}
        tries: dict[str, Iterator[Choice]] = {}
        is_filtered = False
        for _ in range(MOST_ATTEMPTS):
            failure = self._try(table, choice)
            if failure is None:
                return
            if failure.sqlstate is not None and failure.sqlstate.startswith("22") and not is_filtered:
                is_filtered = True
                values = {column.name: self._valid(values[column.name], column) for column in columns}
                choice = {name: candidates[0] for name, candidates in values.items()}
                tries = {}
                continue
            names = _columns_at_fault(failure, columns, rules)
            if not names:
                if self._try(table, choice, with_triggers=False) is None:
                    return
                raise _UnseedableError(_reason(failure))
            key = failure.diag.constraint_name or ",".join(names)
            if key not in tries:
                tries[key] = _combinations(names, values)
            following = next(tries[key], None)
            if following is None:
                raise _UnseedableError(_reason(failure))
            choice |= following
        raise _UnseedableError("no values were found that meet all its constraints")

    def _try(self, table: Table, choice: Choice, *, with_triggers: bool = True) -> psycopg.Error | None:
        if choice:
            insert = sql.SQL("insert into {} ({}) values ({})").format(
                sql.Identifier(*table),
                sql.SQL(", ").join(map(sql.Identifier, choice)),
                sql.SQL(", ").join(choice.values()),
            )
        else:
            insert = sql.SQL("insert into {} default values").format(sql.Identifier(*table))
        try:
            with self.conn.transaction():
                if not with_triggers:
                    self.conn.execute(WITHOUT_TRIGGERS)
                stored = self.conn.execute(insert).rowcount
                if not with_triggers:
                    self.conn.execute(WITH_TRIGGERS)
                self.conn.execute(CHECK_NOW)
                if not stored:
                    raise psycopg.errors.TriggeredActionException("the insert stored no row")
        except psycopg.Error as exc:
            if self.conn.closed:
                raise
            return exc
        return None

    def _valid(self, candidates: Sequence[sql.Composable], column: _Column) -> list[sql.Composable]:
        """The candidates that the column's type takes."""
        found: list[sql.Composable] = []
        for candidate in candidates:
            if candidate in (DEFAULT, NULL):
                found.append(candidate)
                continue
            try:
                with self.conn.transaction():
                    self.conn.execute(sql.SQL("select {}").format(candidate))
                found.append(candidate)
            except (psycopg.DataError, psycopg.IntegrityError):
                continue
        if not found:
            raise _UnseedableError(f"no value is known for column {column.name} of type {column.type}")
        return found


def _combinations(names: Sequence[str], values: dict[str, list[sql.Composable]]) -> Iterator[Choice]:
    for combination in islice(product(*(values[name] for name in names)), MOST_COMBINATIONS):
        yield dict(zip(names, combination, strict=True))


def _columns_at_fault(
    failure: psycopg.Error, columns: Sequence[_Column], rules: Sequence[_Rule]
) -> list[str]:
    """Whose values to change, nothing when no value would help."""
    known = [column.name for column in columns]
    if isinstance(failure, psycopg.errors.NotNullViolation):
        return [name for name in known if name == failure.diag.column_name]
    if isinstance(failure, psycopg.errors.CheckViolation):
        broken = failure.diag.constraint_name
        if failure.diag.datatype_name is not None:
            return [column.name for column in columns if column.checks]
        kind = "check" if broken is not None else "partition"
        found = [
            name
            for rule in rules
            if rule.kind == kind and broken in (None, rule.name)
            for name in rule.columns
        ]
        return [name for name in dict.fromkeys(found) if name in known]
    return []


def _reason(failure: psycopg.Error) -> str:
    return failure.diag.message_primary or str(failure)


def _raw(text: str) -> sql.SQL:
    """SQL that the catalog itself has printed."""
    return sql.SQL(text)
