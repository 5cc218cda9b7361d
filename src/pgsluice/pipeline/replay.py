"""Run migrations one after the other on a scratch database, each as `psql` would."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

from pgsluice.errors import InputError, Location, UnreachableError
from pgsluice.pipeline.history import is_transactional
from pgsluice.pipeline.proof import connected, server_lines
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.parse import parse_file, read_file
from pgsluice.pipeline.sources.superusers import make_superusers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from psycopg import Connection

    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.sources.model import SourceFile

MISSING_ROLES: Final = """
select r.name
from pg_catalog.unnest(%(roles)s::text[]) as r (name)
where not exists (select from pg_catalog.pg_roles as p where p.rolname = r.name)
order by r.name
"""
CREATE_ROLE: Final = "create role {} nologin"
FRESH_SESSION: Final = "discard all"


def history_digest(history: Sequence[Migration]) -> str:
    """A digest of the names and bytes of a history."""
    running = hashlib.sha256()
    for migration in history:
        content = migration.path.read_bytes()
        running.update(f"{migration.filename}\0{len(content)}\0".encode())
        running.update(content)
    return running.hexdigest()


def replay(conninfo: str, history: Iterable[Migration], *, root: Path) -> None:
    """Run every migration; roles that one names and the server lacks are made first, without login.

    Raises:
        InputError: A file is not valid UTF-8, or the server refuses a statement; with file and line.
    """
    with connected(conninfo) as conn:
        for migration in history:
            file = _read(migration, root)
            _create_roles(conn, file)
            _run(conn, file)
            conn.execute(FRESH_SESSION)


def _create_roles(conn: Connection[Any], file: SourceFile) -> None:
    facts = [find_facts(parsed) for parsed in parse_file(file)]
    roles = {role for one in facts for role in one.roles}
    for (role,) in conn.execute(MISSING_ROLES, {"roles": sorted(roles)}).fetchall() if roles else ():
        try:
            conn.execute(sql.SQL(CREATE_ROLE).format(sql.Identifier(role)))
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            continue  # another build made it in the meantime
        except psycopg.errors.InsufficientPrivilege as exc:
            raise UnreachableError(
                f'the dev server lacks role "{role}", which {file.name} names, and refuses to make it',
                details=server_lines(exc),
            ) from exc
    make_superusers(conn, {one.superuser for one in facts if one.superuser is not None})


def _read(migration: Migration, root: Path) -> SourceFile:
    name = (
        migration.path.relative_to(root).as_posix()
        if migration.path.is_relative_to(root)
        else migration.filename
    )
    return read_file(migration.path, name, kind="migration")


def _run(conn: Connection[Any], file: SourceFile) -> None:
    try:
        if is_transactional(file.text):
            with conn.transaction():
                conn.execute(file.text.encode(), prepare=False)
            return
        for parsed in parse_file(file):
            conn.execute(file.text[parsed.start : parsed.end].encode(), prepare=False)
    except psycopg.Error as exc:
        position = exc.diag.statement_position
        whole = is_transactional(file.text) and position is not None
        location = file.location(int(position) - 1) if whole and position else Location(file.name)
        raise InputError(
            "the migrations of this folder do not run from the start",
            location=location,
            details=server_lines(exc),
            hint="git log -- " + file.name,
        ) from exc
