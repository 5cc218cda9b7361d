"""Reading the database that is adopted: catalog and dump of one moment, and nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg

from pgsluice.config import Target
from pgsluice.errors import InputError
from pgsluice.pipeline.adopt.files import split_dump, without_usual_comments
from pgsluice.pipeline.adopt.requirements import Extension, read_extensions
from pgsluice.pipeline.adopt.secrets import LeftOut, refuse_secrets, secret_mappings
from pgsluice.pipeline.adopt.unread import read_unread
from pgsluice.pipeline.live.catalog import LiveCatalog, open_reader, read_live
from pgsluice.pipeline.live.dump import complete_url, dump_schema

if TYPE_CHECKING:
    from pgsluice.pipeline.adopt.wish import Progress, Wish
    from pgsluice.pipeline.sources.parse import Parsed

EXPORT_SNAPSHOT: Final = "select pg_catalog.pg_export_snapshot()"
LACKS_PUBLIC: Final = "select pg_catalog.to_regnamespace('public') is null"
UNKNOWN_SCHEMAS: Final = """
select s.name from pg_catalog.unnest(%s::text[]) as s (name)
where not exists (select from pg_catalog.pg_namespace as n where n.nspname = s.name)
order by 1
"""
USER_SCHEMAS: Final = """
select n.nspname::text from pg_catalog.pg_namespace as n
where n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'pgsluice') order by 1
"""


@dataclass(frozen=True, slots=True)
class Live:
    """What was read of the database, at one moment; `ignore` are patterns of what stays out."""

    catalog: LiveCatalog
    statements: tuple[Parsed, ...]
    extensions: tuple[Extension, ...]
    ignore: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def read_database(wish: Wish, progress: Progress) -> Live:
    """Catalog, dump and extensions of one moment, through a connection that writes nothing.

    Raises:
        InputError: A chosen schema does not exist.
        RefusedError: A server or a foreign table holds a secret.
        UnreachableError: The database cannot be read.
    """
    progress("reading the database")
    with open_reader(wish.url, progress=progress) as conn:
        _refuse_unknown_schemas(conn, wish)
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with conn.transaction():
            moment = conn.execute(EXPORT_SNAPSHOT).fetchone()
            assert moment is not None
            dump = dump_schema(complete_url(conn), manages=wish.schemas, snapshot=str(moment[0]))
            statements = split_dump(dump)
            refuse_secrets(statements, wish.ignore)
            secrets = tuple(secret_mappings(statements))
            row = conn.execute(LACKS_PUBLIC).fetchone()
            # every scratch database has a schema public: a database that lacks it does not look at it
            public = ("public",) if row == (True,) and "*" in wish.schemas else ()
            ignore = (*wish.ignore, *(mapping.pattern for mapping in secrets), *public)
            catalog = read_live(conn, wish.url, _target(wish, ignore))
            extensions = read_extensions(conn)
            unread = read_unread(conn, wish.schemas)
    left_out = (*(mapping.left_out for mapping in secrets), *unread)
    told = without_usual_comments(statements, catalog.snapshot)
    return Live(catalog, told, extensions, ignore, left_out)


def _refuse_unknown_schemas(conn: psycopg.Connection[Any], wish: Wish) -> None:
    asked = [schema for schema in wish.schemas if schema != "*"]
    unknown = [str(name) for (name,) in conn.execute(UNKNOWN_SCHEMAS, [asked]).fetchall()]
    if unknown:
        there = [str(name) for (name,) in conn.execute(USER_SCHEMAS).fetchall()]
        raise InputError(
            f"the database has no schema {unknown[0]}; it has {', '.join(there) or 'none of its own'}",
            hint=f"--schema {there[0]}" if there else None,
        )


def _target(wish: Wish, ignore: tuple[str, ...]) -> Target:
    """What is read of the database; its folders do not matter."""
    nowhere = Path("/")
    return Target(
        name=wish.target,
        schema_dir=nowhere,
        migrations_dir=nowhere,
        templates_dir=nowhere,
        manages=wish.schemas,
        ignore=ignore,
    )
