"""Both states of a target as databases on the dev server: what the history gives, what the schema says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

from pgsluice.errors import InputError
from pgsluice.pipeline.devdb import bootstrap
from pgsluice.pipeline.diff import StatementError
from pgsluice.pipeline.proof import InvalidFunctionsError, connected, validate_functions
from pgsluice.pipeline.replay import FRESH_SESSION, history_digest, replay
from pgsluice.pipeline.snapshot import Snapshot, read_snapshot
from pgsluice.pipeline.sources import SchemaSource, load_schema, read_schema
from pgsluice.pipeline.sources.bodies import body_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection

    from pgsluice.config import Target
    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.statement import Statement

AS_A_MIGRATION: Final = "set local check_function_bodies = off"
OUTSIDERS: Final = """
select pg_catalog.pg_describe_object(d.classid, d.objid, 0)
from pg_catalog.pg_depend as d
join pg_catalog.pg_namespace as n on n.oid = d.refobjid
where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
  and d.deptype = 'n' and d.objid >= 16384
  and n.nspname <> 'pg_toast' and n.nspname !~ '^pg_temp' and not n.nspname = any(%(manages)s)
union
select pg_catalog.pg_describe_object(wide.classid::pg_catalog.oid, wide.objid, 0)
from (
  select 'pg_extension'::regclass, oid from pg_extension
  union all select 'pg_event_trigger'::regclass, oid from pg_event_trigger
  union all select 'pg_publication'::regclass, oid from pg_publication
  union all select 'pg_foreign_data_wrapper'::regclass, oid from pg_foreign_data_wrapper
  union all select 'pg_foreign_server'::regclass, oid from pg_foreign_server
  union all select 'pg_user_mapping'::regclass, oid from pg_user_mapping
  union all select 'pg_language'::regclass, oid from pg_language
  union all select 'pg_transform'::regclass, oid from pg_transform
  union all select 'pg_am'::regclass, oid from pg_am
  union all select 'pg_default_acl'::regclass, oid from pg_default_acl where defaclnamespace = 0
) as wide (classid, objid)
where wide.objid >= 16384
"""

TABLE_EXISTS: Final = "select pg_catalog.to_regclass(%s) is not null"
HAS_ROWS: Final = "select exists (select from only {})"


@dataclass(frozen=True, slots=True)
class States:
    """The templates of both states, with their catalogs.

    `base` holds the bootstrap and the history, `source` is the schema as it was read. `notes` name what the
    schema files do and no comparison of catalogs shows.
    """

    server: DevServer
    target: Target
    base: str
    goal: str
    source: SchemaSource
    before: Snapshot
    after: Snapshot
    notes: tuple[str, ...] = ()

    @contextmanager
    def clone_of_base(self) -> Iterator[str]:
        """A scratch database that stands where the history ends, as a connection string."""
        with self.server.clone(self.base) as conninfo:
            yield conninfo

    def measure(self, statements: Sequence[Statement]) -> Snapshot:
        """The catalog that statements leave on a clone of *from*.

        Raises:
            StatementError: The server refuses one of them.
        """
        with self.clone_of_base() as conninfo, connected(conninfo) as conn:
            run_planned(conn, statements)
            return snapshot_of(conn, self.target, like=self.after)


def run_planned(conn: Connection[Any], statements: Sequence[Statement]) -> None:
    """Run the statements of a plan in one transaction, under the settings of a migration's file.

    Raises:
        StatementError: The server refuses one of them.
    """
    with conn.transaction():
        conn.execute(AS_A_MIGRATION)
        for statement in statements:
            try:
                conn.execute(statement.sql.encode(), prepare=False)
            except psycopg.Error as exc:
                raise StatementError(statement, exc) from exc


def snapshot_of(conn: Connection[Any], target: Target, *, like: Snapshot | None = None) -> Snapshot:
    """The catalog of what a target manages; `like` is what is likely to come out."""
    return read_snapshot(conn, manages=target.manages, ignore=target.ignore, like=like)


def search_path(target: Target) -> str:
    """The schema for names without one: the target's first, `public` for a target that manages all."""
    return "public" if target.manages[0] == "*" else target.manages[0]


def read_states(
    server: DevServer,
    target: Target,
    history: Sequence[Migration],
    *,
    root: Path,
    progress: Callable[[str], None],
) -> States:
    """Bring both states up, from the cache where it has them, and read their catalogs side by side.

    Raises:
        InputError: The schema or a migration cannot be loaded, or the schema makes objects elsewhere.
        FindingError: A function of the schema is invalid.
    """
    progress("loading what the target requires")
    start = bootstrap(server, target.requires, root=root)
    progress("replaying the migrations and loading the schema")
    with ThreadPoolExecutor(2) as pool:
        base = pool.submit(_base, server, target, history, start, root)
        source = read_schema(target.schema_dir, root=root)
        goal = pool.submit(_goal, server, target, source, start)
        (base_name, before), (goal_name, after) = base.result(), goal.result()
    notes = _rows_left_out(server, base_name, goal_name, after) if _is_imperative(source) else ()
    return States(server, target, base_name, goal_name, source, before, after, notes)


def _is_imperative(source: SchemaSource) -> bool:
    return any(statement.keeps_order for statement in source.statements)


def _rows_left_out(server: DevServer, base: str, goal: str, after: Snapshot) -> tuple[str, ...]:
    """Tables that the schema files fill and the migrations do not: rows are no part of a catalog."""
    tables = [address.path for address in after.objects if address.kind == "table"]
    missing = sorted(set(_filled(server, goal, tables)) - set(_filled(server, base, tables)))
    return tuple(
        f"the schema files put rows into {schema}.{table}, which a comparison of schemas leaves out: "
        "write them in block backfill of a migration's template"
        for schema, table in missing
    )


def _filled(server: DevServer, template: str, tables: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    with server.clone(template) as conninfo, connected(conninfo) as conn:
        for schema, table in tables:
            name = sql.Identifier(schema, table)
            if conn.execute(TABLE_EXISTS, [name.as_string(conn)]).fetchone() == (True,):
                row = conn.execute(sql.SQL(HAS_ROWS).format(name)).fetchone()
                if row == (True,):
                    yield schema, table


def _base(
    server: DevServer, target: Target, history: Sequence[Migration], start: str, root: Path
) -> tuple[str, Snapshot]:
    if not history:
        return start, _read(server, start, target)
    replayed: list[Snapshot] = []

    def fill(conninfo: str) -> None:
        replay(conninfo, history, root=root)
        with connected(conninfo) as conn:
            replayed.append(snapshot_of(conn, target))

    name = server.template(f"history {history_digest(history)}", parent=start, fill=fill)
    return name, replayed[0] if replayed else _read(server, name, target)


def _goal(server: DevServer, target: Target, source: SchemaSource, start: str) -> tuple[str, Snapshot]:
    digest = f"schema {source.digest} {search_path(target)} {','.join(target.manages)}"
    loaded: list[Snapshot] = []
    name = server.template(
        digest, parent=start, fill=lambda conninfo: loaded.append(_load(conninfo, target, source))
    )
    return name, loaded[0] if loaded else _read(server, name, target)


def _read(server: DevServer, template: str, target: Target) -> Snapshot:
    with server.clone(template) as conninfo, connected(conninfo) as conn:
        return snapshot_of(conn, target)


def _load(conninfo: str, target: Target, source: SchemaSource) -> Snapshot:
    with connected(conninfo) as conn:
        known = _outsiders(conn, target)
        load_schema(conn, source, search_path=search_path(target))
        strangers = sorted(_outsiders(conn, target) - known)
        if strangers:
            raise InputError(
                f"the schema makes {len(strangers)} object(s) outside of what target {target.name} manages: "
                + ", ".join(target.manages),
                details=tuple(strangers[:20]),
                hint=f"add their schemas to manages of target {target.name}, or move them; what belongs to "
                "no schema, such as an extension, goes into requires",
            )
        path = search_path(target)
        try:
            validate_functions(conn, target.manages, search_path=path)
        except InvalidFunctionsError as exc:
            located = (body_error(conn, source, oid, search_path=path) for oid in exc.oids)
            raise next((one for one in located if one is not None), exc) from exc
        conn.execute(FRESH_SESSION)
        return snapshot_of(conn, target)


def _outsiders(conn: Connection[Any], target: Target) -> set[str]:
    if "*" in target.manages:
        return set()
    return {str(row[0]) for row in conn.execute(OUTSIDERS, {"manages": list(target.manages)})}
