"""What a database must have before anything runs: server, rights, roles, and what `requires` names."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from psycopg import sql

from pgsluice.errors import RefusedError, UnreachableError
from pgsluice.pipeline.live.database import shown, words
from pgsluice.pipeline.live.ledger import LEDGER, ledger_exists
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.names import Space
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import psycopg

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.live.script import Script
    from pgsluice.pipeline.sources.parse import Parsed

    Connection = psycopg.Connection[Any]

ROLE_SETTINGS: Final = frozenset({"role", "session_authorization"})
CREATES_ROLE: Final = re.compile(r"\b(?:create\s+(?:role|user|group)|rename\s+to)\b", re.IGNORECASE)
"""What a `do` block says that makes a role where it is missing."""
PGMQ: Final = "pgmq"
PGMQ_SQL: Final = "pgmq/sql/pgmq.sql"

MISSING_ROLES: Final = """
select r.name
from pg_catalog.unnest(%(roles)s::text[]) as r (name)
where not exists (select from pg_catalog.pg_roles as p where p.rolname = r.name)
order by r.name
"""
CURRENT_ROLE: Final = "select current_user"
MAY_RECORD: Final = """
select case
  when pg_catalog.to_regclass('pgsluice.migrations') is not null
    then pg_catalog.has_table_privilege('pgsluice.migrations', 'select')
      and pg_catalog.has_table_privilege('pgsluice.migrations', 'insert')
      and pg_catalog.has_table_privilege('pgsluice.migrations', 'update')
  when pg_catalog.to_regnamespace('pgsluice') is not null
    then pg_catalog.has_schema_privilege('pgsluice', 'create')
  else pg_catalog.has_database_privilege(current_database(), 'create')
end
"""
MAY_CREATE_SCHEMAS: Final = "select pg_catalog.has_database_privilege(current_database(), 'create')"
CLOSED_SCHEMAS: Final = """
select n.nspname
from pg_catalog.pg_namespace as n
where n.nspname = any(%(schemas)s) and not pg_catalog.has_schema_privilege(n.oid, 'create')
order by 1
"""
EXTENSIONS: Final = """
select a.name, a.installed_version is not null
from pg_catalog.pg_available_extensions as a
where a.name = any(%(names)s)
"""
HAS_PGMQ: Final = """
select exists (
  select from pg_catalog.pg_proc as p
  join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  where n.nspname = 'pgmq' and p.proname = 'send'
)
"""
MISSING_RELATIONS: Final = """
select r.name
from pg_catalog.unnest(%(names)s::text[]) as r (name)
where pg_catalog.to_regclass(r.name) is null
order by r.name
"""


def check_server(conn: Connection, project: Project, url: str) -> str | None:
    """Whether the server's major version is one that the migrations are proved on.

    Returns:
        A note when it is newer than all of them, else None.

    Raises:
        RefusedError: It is older.
    """
    major = conn.info.server_version // 10000
    low, high = project.postgres
    if major < low:
        raise RefusedError(
            f"{shown(url)} runs PostgreSQL {major}; these migrations are made for {low} to {high}",
            hint=f'postgres = ["{major}", "{high}"] in the project\'s configuration, then: pgsluice check',
        )
    if major > high:
        return f"the server is PostgreSQL {major}; these migrations are proved on {low} to {high}"
    return None


def check_rights(conn: Connection, scripts: Sequence[Script]) -> None:
    """What can be told of our role's rights without trying.

    Raises:
        UnreachableError: It may not keep the ledger, or not create what the files create.
    """
    role, database = _current_role(conn), _ident(conn, conn.info.dbname)
    if not _one(conn, MAY_RECORD):
        raise UnreachableError(
            f"role {role} may not keep the ledger pgsluice.migrations in this database",
            hint=f"grant select, insert, update on {LEDGER} to {_ident(conn, role)};"
            if ledger_exists(conn)
            else f"create schema if not exists pgsluice authorization {_ident(conn, role)};"
            f" or: grant create on database {database} to {_ident(conn, role)};",
        )
    created, schemas = _filled_schemas(scripts)
    if created and not _one(conn, MAY_CREATE_SCHEMAS):
        name, script = next(iter(created.items()))
        raise UnreachableError(
            f"role {role} may not create schema {name}, which {script.file.name} does",
            hint=f"grant create on database {database} to {_ident(conn, role)};",
        )
    closed = [row[0] for row in conn.execute(CLOSED_SCHEMAS, {"schemas": list(schemas)}).fetchall()]
    if closed:
        raise UnreachableError(
            f"role {role} may create nothing in schema {closed[0]}, as {schemas[closed[0]].file.name} does",
            details=tuple(f"nor in schema {name}, as {schemas[name].file.name} does" for name in closed[1:]),
            hint=" ".join(
                f"grant create on schema {_ident(conn, name)} to {_ident(conn, role)};" for name in closed
            ),
        )


def _filled_schemas(scripts: Sequence[Script]) -> tuple[dict[str, Script], dict[str, Script]]:
    """The schemas that files create, and those that they create something in, as far as our role does it.

    What follows a change of role or of rights is left to the server to judge.
    """
    created: dict[str, Script] = {}
    schemas: dict[str, Script] = {}
    for script in scripts:
        for parsed, facts in zip(script.statements, script.facts, strict=True):
            if _changes_rights(parsed):
                return created, schemas
            if parsed.kind == "VariableSetStmt" and parsed.node.get("name") in ROLE_SETTINGS:
                break
            if parsed.kind == "CreateSchemaStmt" and not parsed.node.get("if_not_exists"):
                created.setdefault(parsed.node.get("schemaname", ""), script)
            for definition in facts.definitions:
                if definition.name.schema is not None:
                    schemas.setdefault(definition.name.schema, script)
    return created, schemas


def _changes_rights(parsed: Parsed) -> bool:
    """Whether a statement may give our role rights on a schema."""
    node = parsed.node
    match parsed.kind:
        case "DoStmt" | "CallStmt" | "GrantRoleStmt":
            return True
        case "GrantStmt":
            return node.get("objtype") in ("OBJECT_SCHEMA", "OBJECT_DATABASE")
        case "AlterOwnerStmt":
            return node.get("objectType") in ("OBJECT_SCHEMA", "OBJECT_DATABASE")
        case _:
            return False


def check_roles(conn: Connection, scripts: Sequence[Script]) -> None:
    """Whether the server has every role that the files name and do not create.

    Raises:
        UnreachableError: Some are missing; names all of them.
    """
    named: dict[str, Script] = {}
    created: set[str] = set()
    blocks: list[str] = []
    for script in scripts:
        for parsed, facts in zip(script.statements, script.facts, strict=True):
            if parsed.kind == "CreateRoleStmt":
                created.add(parsed.node["role"])
            elif parsed.kind == "RenameStmt" and parsed.node["renameType"] == "OBJECT_ROLE":
                created.add(parsed.node["newname"])
            elif parsed.kind == "DoStmt" and CREATES_ROLE.search(parsed.text):
                blocks.append(parsed.text)
            for role in facts.roles - created:
                if not any(role in block for block in blocks):
                    named.setdefault(role, script)
    missing = [row[0] for row in conn.execute(MISSING_ROLES, {"roles": sorted(named)}).fetchall()]
    if missing:
        raise UnreachableError(
            f"the server lacks {_roles(missing)} that these migrations name",
            details=tuple(f"{role}, named in {named[role].file.name}" for role in missing),
            hint=" ".join(f"create role {_ident(conn, role)} nologin;" for role in missing),
        )


def check_requires(conn: Connection, project: Project, target: Target, *, url: str) -> None:
    """Whether the database has what the target's `requires` names.

    Raises:
        UnreachableError: Something is missing; names all of it.
    """
    entries = [entry for entry in target.requires if not entry.endswith(".sql")]
    known = dict(conn.execute(EXTENSIONS, {"names": entries}).fetchall())
    missing: list[tuple[str, str]] = []
    for entry in target.requires:
        if entry.endswith(".sql"):
            missing += _missing_of_script(conn, project, entry, url=url)
        elif entry == PGMQ and _one(conn, HAS_PGMQ):
            continue
        elif entry == PGMQ and entry not in known:
            missing.append((f"{PGMQ}, and the server offers no such extension", _pgmq_command(url)))
        elif entry not in known:
            missing.append((f"extension {entry}, and the server does not offer it", f"install {entry} there"))
        elif not known[entry]:
            missing.append((f"extension {entry}", f"create extension {_ident(conn, entry)} cascade;"))
    if missing:
        raise UnreachableError(
            f"the database lacks what target {target.name} requires: {missing[0][0]}",
            details=tuple(f"and {what}: {how}" for what, how in missing[1:]),
            hint=missing[0][1],
        )


def _missing_of_script(
    conn: Connection, project: Project, entry: str, *, url: str
) -> Iterator[tuple[str, str]]:
    """The first relation that a required SQL file makes and the database lacks."""
    path = project.root / entry
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    names = {
        sql.Identifier(definition.name.schema or "public", definition.name.name).as_string(conn)
        for parsed in parse_file(SourceFile(entry, text))
        for definition in find_facts(parsed).definitions
        if definition.name.space is Space.RELATION and definition.table is None
    }
    for (name,) in conn.execute(MISSING_RELATIONS, {"names": sorted(names)}).fetchall()[:1]:
        yield f"{name} of {entry}", f"psql {_words(url)} --file {shlex.quote(entry)}"


def _pgmq_command(url: str) -> str:
    """How to load PGMQ from its Python package."""
    try:
        package = importlib.metadata.distribution(PGMQ)
    except importlib.metadata.PackageNotFoundError:
        return "pip install pgmq, and run apply again: the package carries its SQL"
    path = str(package.locate_file(PGMQ_SQL))
    return f"psql {_words(url)} --command 'create schema pgmq' --file {shlex.quote(path)}"


def _words(url: str) -> str:
    """The database for `psql`, without its password."""
    return shlex.quote(words(url))


def _current_role(conn: Connection) -> str:
    """The role whose rights count, which is not the one that logged in where a setting says so."""
    row = conn.execute(CURRENT_ROLE).fetchone()
    assert row is not None
    return str(row[0])


def _roles(names: Iterable[str]) -> str:
    found = list(names)
    return f"role {found[0]}" if len(found) == 1 else f"{len(found)} roles"


def _ident(conn: Connection, name: str) -> str:
    return sql.Identifier(name).as_string(conn)


def _one(conn: Connection, query: str) -> bool:
    row = conn.execute(query).fetchone()
    return row is not None and bool(row[0])
