"""Load a schema into a scratch database in one query, and say where it fails."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import generators, sql
from psycopg.pq import ExecStatus
from psycopg.rows import tuple_row

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.sources.advice import load_error, role_error
from pgsluice.pipeline.sources.superusers import make_superusers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg.pq.abc import PGresult

    from pgsluice.pipeline.sources.model import SchemaSource, SourceStatement

_MISSING_ROLES: Final = """
select r.name
from unnest(%(roles)s::text[]) as r(name)
where not exists (select from pg_catalog.pg_roles as p where p.rolname = r.name)
order by r.name
"""
_SEARCH_PATH: Final = "set local search_path = {}"
_SETTINGS: Final = (
    "set local client_encoding = 'UTF8'",
    "set local check_function_bodies = off",
    "set local default_tablespace = ''",
    "set local default_table_access_method = heap",
)
_DEFERRED: Final = "set constraints all immediate"
_BATCH_STATEMENTS: Final = 250
_SEPARATOR: Final = "\n;\n"


@dataclass(frozen=True, slots=True)
class _Script:
    """The statements as one text: each part's first character in it, and its statement, if it is one."""

    text: str
    starts: tuple[int, ...]
    statements: tuple[SourceStatement | None, ...]

    def at(self, part: int, position: int | None) -> tuple[SourceStatement | None, int | None]:
        """The statement of a part, and the place in it of a character of the whole text (both from 0)."""
        if part >= len(self.statements):
            return None, None
        if position is None:
            return self.statements[part], None
        part = bisect.bisect_right(self.starts, position) - 1
        return self.statements[part], position - self.starts[part]


def load_schema(conn: psycopg.Connection[Any], source: SchemaSource, *, search_path: str) -> None:
    """Run a schema's statements, after creating the roles that it names and the server lacks.

    Function bodies are not checked: they may name what comes later, and have a validator of their own.
    A schema of up to 250 statements, or with imperative ones, is one transaction; a larger one is several,
    because the server takes longer over each statement the more there are in one: two to three times as long
    over 8,000 of them, a sixth longer over 1,000 than over 250. After an error the
    database is to be dropped.

    Args:
        conn: A connection to the scratch database; in a transaction of the caller's this is a part of it.
        source: What `read_schema` gave.
        search_path: The schema for names without one, such as `public`.

    Raises:
        InputError: The server refuses a statement; with file:line:column, the line, and the server's words.
        UnreachableError: The server cannot go on, or refuses the rights.
    """
    _create_roles(conn, source)
    settings = _settings(conn, search_path)
    for batch in _batches(source.statements):
        script = _join(batch, settings)
        with conn.transaction():
            results = _run(conn, script.text)
            if results[-1].status == ExecStatus.FATAL_ERROR:
                error = psycopg.errors.error_from_result(results[-1], encoding="utf-8")
                position = error.diag.statement_position
                at = script.at(len(results) - 1, int(position) - 1 if position else None)
                raise load_error(source, error, statement=at[0], position=at[1]) from error


def _create_roles(conn: psycopg.Connection[Any], source: SchemaSource) -> None:
    """Create the roles that a schema names and the server lacks, without login."""
    if not source.roles:
        return
    with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        missing = cursor.execute(_MISSING_ROLES, {"roles": list(source.roles)}).fetchall()
    for (role,) in missing:
        command = sql.SQL("create role {} nologin").format(sql.Identifier(role))
        try:
            with conn.transaction():
                conn.execute(command)
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            continue  # another build made it in the meantime
        except psycopg.Error as exc:
            raise role_error(source, exc, role=role, command=command.as_string(conn)) from exc
    make_superusers(conn, source.superusers)


def _batches(statements: Sequence[SourceStatement]) -> Iterator[Sequence[SourceStatement]]:
    size = len(statements) if any(item.keeps_order for item in statements) else _BATCH_STATEMENTS
    for start in range(0, len(statements), max(size, 1)):
        yield statements[start : start + size]


def _settings(conn: psycopg.Connection[Any], search_path: str) -> tuple[str, ...]:
    path = sql.Identifier(search_path) if search_path else sql.Literal("")
    return (sql.SQL(_SEARCH_PATH).format(path).as_string(conn), *_SETTINGS)


def _join(statements: Sequence[SourceStatement], settings: Sequence[str]) -> _Script:
    """All statements as one text; after a file that may have changed settings, they are set again."""
    parts: list[tuple[str, SourceStatement | None]] = [(text, None) for text in settings]
    before: SourceStatement | None = None
    for statement in statements:
        if before is not None and before.keeps_order and before.file != statement.file:
            parts += [(text, None) for text in settings]
        parts.append((statement.text, statement))
        before = statement
    parts.append((_DEFERRED, None))
    starts: list[int] = []
    position = 0
    for text, _ in parts:
        starts.append(position)
        position += len(text) + len(_SEPARATOR)
    texts, owners = zip(*parts, strict=True)
    return _Script(_SEPARATOR.join(texts), tuple(starts), owners)


def _run(conn: psycopg.Connection[Any], text: str) -> list[PGresult]:
    """Send one query of many statements; a result for each that ran, the last one may be an error.

    psycopg's own `execute` would raise the error without saying how many statements went before it.
    """
    try:
        with conn.lock:
            conn.pgconn.send_query(text.encode())
            return conn.wait(generators.execute(conn.pgconn))
    except psycopg.OperationalError as exc:
        raise UnreachableError(f"the dev server went away while the schema was loading: {exc}") from exc
