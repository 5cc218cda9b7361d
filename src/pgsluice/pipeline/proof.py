"""Running a rendered migration as its user would, and checking what runs but does not show in the catalog."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.errors import FindingError, Location, PipelineError, UnreachableError
from pgsluice.pipeline.seed import SeedResult, Skipped, seed_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgsluice.pipeline.assembly import RenderedStatement
    from pgsluice.pipeline.render import Rendered

__all__ = [
    "InvalidFunctionsError",
    "SeedResult",
    "Skipped",
    "connected",
    "failed_lines",
    "run_rendered",
    "seed_rows",
    "server_lines",
    "shown_sql",
    "validate_functions",
]

SQL_LINES: Final = 12
CONTEXT_LINES: Final = 4
TEXT_LENGTH: Final = 2000
# What the macro `refuse_if` makes, and where it fails when it has found rows.
CHECK: Final = re.compile(r"(?:\s|--[^\n]*\n)*(do \$refuse\w*\$)", re.IGNORECASE)
RAISED: Final = "RAISE"

SESSION_STATE: Final = """
select 'setting ' || s.name from pg_catalog.pg_settings as s where s.source = 'session'
union all
select 'temporary ' || case c.relkind when 'v' then 'view ' when 'S' then 'sequence ' else 'table ' end
  || c.relname
from pg_catalog.pg_class as c
where c.relnamespace = pg_catalog.pg_my_temp_schema() and c.relkind in ('r', 'p', 'v', 'S')
union all
select 'prepared statement ' || p.name from pg_catalog.pg_prepared_statements as p
union all
select 'cursor ' || c.name from pg_catalog.pg_cursors as c where c.name <> ''
union all
select 'listening on ' || l.channel from pg_catalog.pg_listening_channels() as l (channel)
union all
select 'advisory lock' from pg_catalog.pg_locks as l
where l.locktype = 'advisory' and l.pid = pg_catalog.pg_backend_pid()
"""

BEGIN_VALIDATION: Final = "select pg_catalog.set_config('pgsluice.invalid', '[]', true)"
READ_VALIDATION: Final = """
select f ->> 'name', f ->> 'message', f ->> 'detail', (f ->> 'oid')::bigint
from pg_catalog.jsonb_array_elements(pg_catalog.current_setting('pgsluice.invalid')::jsonb) as f
order by 1
"""
CHOOSE_SCHEMAS: Final = "select pg_catalog.set_config('pgsluice.schemas', %s, true)"
CHOOSE_PATH: Final = "select pg_catalog.set_config('search_path', pg_catalog.quote_ident(%s), true)"
VALIDATE: Final = files("pgsluice.pipeline").joinpath("resources", "validate_functions.sql").read_bytes()


class InvalidFunctionsError(FindingError):
    """Functions that would fail when called; `oids` are theirs, in the order of `details`."""

    def __init__(self, message: str, *, oids: tuple[int, ...], details: tuple[str, ...]) -> None:
        hint = "change them with what they use: they would fail when called"
        super().__init__(message, details=details, hint=hint)
        self.oids = oids


@dataclass(frozen=True, slots=True)
class _Step:
    """Which statement of a migration runs: `number` is None for the commit."""

    rendered: Rendered
    number: int | None

    @property
    def statement(self) -> RenderedStatement | None:
        return None if self.number is None else self.rendered.statements[self.number]


def run_rendered(conninfo: str, rendered: Rendered) -> None:
    """Run a migration as `psql -v ON_ERROR_STOP=1 -f` does, with `-1` when it is transactional.

    Raises:
        FindingError: A statement failed, with its place, or the migration left session state behind.
        UnreachableError: There is no connection.
    """
    with connected(conninfo) as conn:
        before = _session_state(conn)
        if rendered.transactional:
            conn.execute("begin")
        for number, statement in enumerate(rendered.statements):
            _run(conn, statement.sql, _Step(rendered, number))
        if rendered.transactional:
            _run(conn, "commit", _Step(rendered, None))
        if left := sorted(_session_state(conn) - before):
            raise FindingError(
                f"proof of {rendered.name} failed: the migration leaves session state behind",
                details=tuple(left),
                hint="use set local, and drop or close what the migration opens",
            )


def validate_functions(
    conn: psycopg.Connection[tuple[object, ...]], schemas: Sequence[str], *, search_path: str | None = None
) -> None:
    """Run every SQL and PL/pgSQL function of `schemas` through its language's validator.

    The catalog may hold functions that fail when they are called, such as one that returns a row type which
    has gained a column. Extension members are left out; `*` stands for all schemas but the system's.

    Args:
        conn: Joins its transaction if one is open; leaves nothing behind.
        search_path: For functions that set none; the connection's own when it is None.

    Raises:
        InvalidFunctionsError: Some functions are invalid; it names all of them.
    """
    with conn.transaction(force_rollback=True):
        conn.execute(BEGIN_VALIDATION)
        conn.execute(CHOOSE_SCHEMAS, ["*" if "*" in schemas else "\x1f".join(schemas)])
        if search_path is not None:
            conn.execute(CHOOSE_PATH, [search_path])
        conn.execute(VALIDATE)
        invalid = conn.execute(READ_VALIDATION).fetchall()
    if invalid:
        names = [str(row[0]) for row in invalid]
        count = f"function {names[0]} is" if len(names) == 1 else f"{len(names)} functions are"
        raise InvalidFunctionsError(
            f"{count} invalid",
            oids=tuple(int(str(row[3])) for row in invalid),
            details=tuple(line for row in invalid for line in _invalid_lines(*row[:3])),
        )


@contextmanager
def connected(conninfo: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection in autocommit mode.

    Raises:
        UnreachableError: There is none.
    """
    try:
        conn = psycopg.connect(conninfo, autocommit=True, client_encoding="utf8", prepare_threshold=None)
    except psycopg.OperationalError as exc:
        raise UnreachableError(f"cannot connect: {' '.join(str(exc).split())}") from exc
    with conn:
        yield conn


def server_lines(exc: psycopg.Error) -> tuple[str, ...]:
    """What the server said: message with its SQLSTATE, detail, hint, context."""
    diag = exc.diag
    if diag.message_primary is None:
        return tuple(str(exc).strip().splitlines())
    lines = [f"{diag.message_primary} (SQLSTATE {diag.sqlstate})"]
    lines += diag.message_detail.splitlines() if diag.message_detail else []
    lines += [f"the server's hint: {diag.message_hint}"] if diag.message_hint else []
    lines += diag.context.splitlines()[:CONTEXT_LINES] if diag.context else []
    return tuple(line[:TEXT_LENGTH] for line in lines)


def failed_lines(exc: psycopg.Error, sql: str) -> tuple[str, ...]:
    """What the server said, then the statement: of a check that has found rows only how it begins."""
    words = server_lines(exc)
    context = exc.diag.context or ""
    check = CHECK.match(sql)
    if check is not None and RAISED in context:
        return (*(line for line in words if line not in context.splitlines()), f"{check[1]} ...")
    position = exc.diag.statement_position
    return (*words, *shown_sql(sql, int(position) if position else None))


def shown_sql(sql: str, position: int | None = None) -> tuple[str, ...]:
    """The SQL around `position` (from 1) with a caret below it, or its first lines."""
    lines = sql.split("\n")
    if position is None:
        rest = len(lines) - SQL_LINES
        return (*lines[:SQL_LINES], *([f"... {rest} more lines"] if rest > 0 else []))
    row = sql[: position - 1].count("\n")
    column = position - 1 - (sql.rfind("\n", 0, position - 1) + 1)
    first = max(0, row - SQL_LINES // 2)
    head = "".join("\t" if char == "\t" else " " for char in lines[row][:column])
    shown = [*lines[first : row + 1], f"{head}^", *lines[row + 1 : first + SQL_LINES]]
    above = ["..."] if first else []
    below = ["..."] if first + SQL_LINES < len(lines) else []
    return (*above, *shown, *below)


def _session_state(conn: psycopg.Connection[tuple[object, ...]]) -> frozenset[str]:
    return frozenset(str(row[0]) for row in conn.execute(SESSION_STATE))


def _run(conn: psycopg.Connection[tuple[object, ...]], sql: str, step: _Step) -> None:
    try:
        conn.execute(sql.encode(), prepare=False)
    except psycopg.Error as exc:
        raise _failure(exc, sql, step) from exc


def _failure(exc: psycopg.Error, sql: str, step: _Step) -> PipelineError:
    rendered, statement, total = step.rendered, step.statement, len(step.rendered.statements)
    if statement is None or step.number is None:
        return FindingError(
            f"proof of {rendered.name} failed at commit (after statement {total} of {total})",
            details=server_lines(exc),
            hint=f"a deferred constraint failed: mend the rows in block backfill of {rendered.template}",
        )
    place = f"in block {statement.block} (statement {step.number + 1} of {total})"
    return FindingError(
        f"proof of {rendered.name} failed {place}",
        location=_without_source(statement.template),
        details=failed_lines(exc, sql),
        hint=_where_to_mend(exc, statement, rendered),
    )


def _where_to_mend(exc: psycopg.Error, statement: RenderedStatement, rendered: Rendered) -> str:
    if statement.template is not None:
        return f"change block {statement.block} of {statement.template.file}"
    template = rendered.template or "the migration's template"
    if isinstance(exc, psycopg.errors.NotNullViolation):
        return f"fill them in block backfill of {template}"
    if isinstance(exc, psycopg.IntegrityError | psycopg.errors.RaiseException) or exc.sqlstate == "SL100":
        return f"mend the rows in block backfill of {template}"
    return (
        f"the statement is generated, for {statement.claim or statement.block}; see pgsluice diff --explain"
    )


def _without_source(location: Location | None) -> Location | None:
    return None if location is None else Location(location.file, location.line)


def _invalid_lines(name: object, message: object, detail: object) -> tuple[str, ...]:
    return (f"{name}: {message}", *(f"  {line}" for line in str(detail or "").splitlines()))
