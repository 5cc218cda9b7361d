"""Runs the SQL that a project requires, and says where in it something fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import psycopg
from pglast import ast, parse_sql, split
from pglast.parser import ParseError
from psycopg import sql

from pgsluice.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator

CREATE_EXTENSION: Final = sql.SQL("create extension if not exists {name} cascade")
CREATE_SCHEMA: Final = sql.SQL("create schema if not exists {name}")
# pg_dump writes these around its output; they are for psql alone.
PSQL_GUARD: Final = re.compile(r"^\\(un)?restrict\b[^\n]*", re.MULTILINE)


def create_extension(conn: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Create an extension, and those that it needs.

    Raises:
        InputError: The server cannot create it.
    """
    try:
        conn.execute(CREATE_EXTENSION.format(name=sql.Identifier(name)))
    except psycopg.Error as exc:
        raise InputError(
            f"cannot create extension {name}: {exc.diag.message_primary or exc}",
            details=_server_details(exc),
            hint=exc.diag.message_hint,
        ) from exc


def create_schema(conn: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Create a schema unless it exists."""
    conn.execute(CREATE_SCHEMA.format(name=sql.Identifier(name)))


def run_script(conn: psycopg.Connection[tuple[object, ...]], text: str, *, file: str) -> None:
    """Run a script statement by statement, each in a transaction of its own unless the script begins one.

    A role that exists already is no error: roles belong to the server, which has seen earlier versions of the
    script.

    Raises:
        InputError: A statement fails; tells file, line and column.
    """
    text = PSQL_GUARD.sub(lambda match: " " * len(match[0]), text)
    for statement, offset in _statements(text, file):
        try:
            conn.execute(statement)
        except psycopg.errors.DuplicateObject as exc:
            if not _creates_role(statement):
                raise _failure(exc, text, offset, file=file) from exc
        except psycopg.Error as exc:
            raise _failure(exc, text, offset, file=file) from exc


def _statements(text: str, file: str) -> Iterator[tuple[str, int]]:
    try:
        slices = split(text, only_slices=True)
    except ParseError as exc:
        message, offset = exc.args[0], exc.args[1] if len(exc.args) > 1 else 0
        raise InputError(message, location=_location(text, offset, file=file)) from exc
    for part in slices:
        yield text[part], part.start


def _creates_role(statement: str) -> bool:
    return isinstance(parse_sql(statement)[0].stmt, ast.CreateRoleStmt)


def _failure(exc: psycopg.Error, text: str, offset: int, *, file: str) -> InputError:
    position = exc.diag.statement_position
    if position is not None:
        offset += int(position) - 1
    else:
        offset += _leading_space(text[offset:])
    return InputError(
        exc.diag.message_primary or str(exc).strip(),
        location=_location(text, offset, file=file),
        details=_server_details(exc),
        hint=exc.diag.message_hint,
    )


LEADING: Final = re.compile(r"(\s+|--[^\n]*\n?|/\*.*?\*/)*", re.DOTALL)


def _leading_space(text: str) -> int:
    """The length of white space and comments before the first word."""
    match = LEADING.match(text)
    return match.end() if match else 0


def _location(text: str, offset: int, *, file: str) -> Location:
    before = text[:offset]
    line = before.count("\n") + 1
    start = before.rfind("\n") + 1
    source = text[start:].split("\n", 1)[0].rstrip("\r")
    return Location(file, line, offset - start + 1, source)


def _server_details(exc: psycopg.Error) -> tuple[str, ...]:
    parts = (exc.diag.message_detail, exc.diag.context)
    return tuple(line for part in parts if part for line in part.splitlines())
