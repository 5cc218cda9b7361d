"""From a function that its validator refuses to the place in a schema file where its body is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

from pgsluice.errors import InputError
from pgsluice.pipeline.sources.advice import load_error

if TYPE_CHECKING:
    from psycopg import Connection

    from pgsluice.pipeline.sources.model import SchemaSource

FUNCTION: Final = """
select p.prosrc, p.proconfig, l.lanname, p.oid::pg_catalog.regprocedure::text
from pg_catalog.pg_proc as p
join pg_catalog.pg_language as l on l.oid = p.prolang
where p.oid = %s
"""
VALIDATORS: Final = {
    "sql": "select pg_catalog.fmgr_sql_validator(%s)",
    "plpgsql": "select pg_catalog.plpgsql_validator(%s)",
}
SET: Final = "select pg_catalog.set_config(%s, %s, true)"


def body_error(
    conn: Connection[Any], source: SchemaSource, oid: int, *, search_path: str
) -> InputError | None:
    """The error for one invalid function of a loaded schema; None where its body is in no file as it is.

    Args:
        conn: A connection to the database that the schema was loaded into; nothing is left behind.
        source: The schema.
        oid: The function.
        search_path: For a function that sets none.
    """
    row = conn.execute(FUNCTION, [oid]).fetchone()
    if row is None:
        return None
    body, settings, language, name = row
    statement = next((one for one in source.statements if one.is_verbatim and body in one.text), None)
    if statement is None or not body:
        return None
    path = sql.Identifier(search_path).as_string(conn)
    chosen = [("search_path", path), ("check_function_bodies", "on")]
    chosen += [tuple(setting.split("=", 1)) for setting in settings or ()]
    try:
        with conn.transaction(force_rollback=True):
            for setting, value in chosen:
                conn.execute(SET, [setting, value])
            conn.execute(VALIDATORS[language], [oid])
    except psycopg.Error as exc:
        position = int(exc.diag.internal_position or 1) - 1 if exc.diag.internal_query == body else 0
        place = statement.text.index(body) + position
        found = load_error(source, exc, statement=statement, position=place)
        return InputError(
            found.message,
            location=found.location,
            details=(f"in the body of function {name}",),
            hint=found.hint,
        )
    return None
