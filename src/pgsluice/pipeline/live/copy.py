"""A copy of a real database's schema on the dev server, where one server prints both sides alike."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from pglast.parser import parse_sql_json
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgsluice.errors import InputError
from pgsluice.pipeline.devdb import bootstrap
from pgsluice.pipeline.generate.spelling import keep_array_casts
from pgsluice.pipeline.live.database import shown
from pgsluice.pipeline.live.dump import dump_schema
from pgsluice.pipeline.live.values import as_values
from pgsluice.pipeline.proof import connected, server_lines, shown_sql
from pgsluice.pipeline.replay import CREATE_ROLE, FRESH_SESSION, MISSING_ROLES
from pgsluice.pipeline.sources.superusers import make_superusers, owning_superuser
from pgsluice.pipeline.sources.tree import Node, Tree, read_trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection

    from pgsluice.pipeline.devdb import DevServer

NAMES_ROLES: Final = frozenset(
    {
        "AlterDefaultPrivilegesStmt",
        "AlterOwnerStmt",
        "AlterTableStmt",
        "CreatePolicyStmt",
        "CreateSchemaStmt",
        "CreateUserMappingStmt",
        "GrantStmt",
    }
)
RUNNER: Final = "pgsluice_runner"
CREATE_RUNNER: Final = sql.SQL("create role pgsluice_runner superuser nologin")
IS_SUPERUSER: Final = "select rolsuper from pg_catalog.pg_roles where rolname = current_user"
CREATE_SCHEMA: Final = b"CREATE SCHEMA"


class CopyError(InputError):
    """The schema of a database cannot be loaded on the dev server."""


@dataclass(frozen=True, slots=True)
class Script:
    """A dump made ready for another server.

    `statements` are its own, with the owner's name replaced; `roles` those that it names, `extensions` those
    that it creates, by the number of their statement; `superusers` those of the roles that must be ones.
    """

    statements: tuple[str, ...]
    roles: frozenset[str]
    superusers: frozenset[str]
    extensions: dict[str, int]

    def without(self, extensions: Sequence[str]) -> str:
        """All statements as one text, less the ones that create these extensions."""
        left_out = {self.extensions[name] for name in extensions}
        kept = [one for number, one in enumerate(self.statements) if number not in left_out]
        return ";\n".join((*kept, ""))


@contextmanager
def schema_copy(
    server: DevServer,
    url: str,
    *,
    manages: Sequence[str] = ("*",),
    requires: Sequence[str] = (),
    root: Path,
    runner: str | None = None,
) -> Iterator[str]:
    """A scratch database with the schema of a real one, for the `with` block, as a connection string.

    Roles that the dump names and the dev server lacks are made there, without login. Where we are superuser
    there, the connection string takes a role that no dump names: our own, such as `postgres`, may well be
    another than the runner. Nothing is left out for being ignored: other objects may need it.

    Args:
        server: The dev server; a newer dump than it understands is an error.
        url: The real database, complete: PG* variables are not read while a dev server is open.
        manages: The PostgreSQL schemas that are copied, onto what `requires` loads; `["*"]` copies all,
            extensions included, and takes from `requires` only what stands for an extension.
        requires: The target's.
        root: The project's root folder.
        runner: Objects of this role belong to the dev server's own role in the copy.

    Raises:
        CopyError: The dev server refuses a statement.
        InputError: An extension is not available there.
        UnreachableError: pg_dump cannot read the database.
    """
    script = read_script(dump_schema(url, manages=manages), runner=runner)
    stand_ins = _stand_ins(server, script, requires)
    loaded = stand_ins if "*" in manages else tuple(requires)
    template = bootstrap(server, loaded, root=root) if loaded else None
    with server.clone(template) as own:
        conninfo = as_runner(own, script.roles, origin=shown(url), where=server.description)
        with connected(conninfo) as conn:
            _load(
                conn,
                script.without(stand_ins),
                where=server.description,
                origin=shown(url),
                script=script,
            )
        yield conninfo


def as_runner(own: str, named: frozenset[str], *, origin: str, where: str) -> str:
    """How to connect as a superuser who is nobody else, or as ourselves where nobody can mistake us.

    Raises:
        CopyError: We are not superuser, and `named` has a role of our name.
    """
    with connected(own) as conn:
        if conn.execute(IS_SUPERUSER).fetchone() == (True,):
            _make_role(conn, CREATE_RUNNER)
            options = conninfo_to_dict(own).get("options") or ""
            return make_conninfo(own, options=f"{options} -c role={RUNNER}".strip())
        if conn.info.user in named:
            raise CopyError(
                f"the schema of {origin} cannot be copied to {where}",
                details=(f"it names role {conn.info.user}, which is our own on the dev server",),
                hint='choose a dev server on which we are superuser, such as: dev = "embedded"',
            )
    return own


def _make_role(conn: Connection[Any], statement: sql.SQL | sql.Composed) -> None:
    # it may be there from an earlier copy, or by another command that made it in the meantime
    with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        conn.execute(statement)


def read_script(dump: str, *, runner: str | None) -> Script:
    """Split what `pg_dump` printed into statements in which `runner` is whoever runs them."""
    data = dump.encode()
    statements: list[str] = []
    roles: set[str] = set()
    superusers: set[str] = set()
    extensions: dict[str, int] = {}
    for tree in read_trees(parse_sql_json(dump)):
        end = len(data) if tree.size is None else tree.start + tree.size
        if tree.kind == "CreateExtensionStmt":
            extensions[tree.node["extname"]] = len(statements)
        named = sorted(_roles(tree.node), reverse=True) if tree.kind in NAMES_ROLES else []
        roles.update(name for _, name in named if name != runner)
        if (owner := owning_superuser(tree.kind, tree.node)) is not None:
            superusers.add(owner)
        text = data[tree.start : end]
        for place, name in named:
            if name == runner:
                text = _with_runner(text, place - tree.start)
        printed = _if_needed(tree, text).decode()
        statements.append(keep_array_casts(as_values(printed, tree.kind, node=tree.node)))
    return Script(tuple(statements), frozenset(roles), frozenset(superusers & roles), extensions)


def _stand_ins(server: DevServer, script: Script, requires: Sequence[str]) -> tuple[str, ...]:
    """The extensions that the server lacks and that a recipe of the target brings."""
    names = list(script.extensions)
    offered = server.extensions.versions(names)
    missing = [name for name in names if name not in offered]
    for name in missing:
        if name not in requires:
            raise server.extensions.missing(name)
    return tuple(missing)


def _roles(node: Any) -> Iterator[tuple[int, str]]:
    """The byte and the name of each role that a statement names."""
    if isinstance(node, list):
        for item in node:
            yield from _roles(item)
    elif isinstance(node, dict):
        if node.get("roletype") == "ROLESPEC_CSTRING":
            yield node.get("location", 0), node["rolename"]
        for item in node.values():
            yield from _roles(item)


def _with_runner(text: bytes, place: int) -> bytes:
    """The text with the role's name at `place` replaced by whoever runs it."""
    end = place
    if text[place : place + 1] == b'"':
        end = text.index(b'"', place + 1) + 1
        while text[end : end + 1] == b'"':
            end = text.index(b'"', end + 1) + 1
    else:
        while (
            text[end : end + 1].isalnum()
            or text[end : end + 1] in {b"_", b"$"}
            or text[end : end + 1] >= b"\x80"
        ):
            end += 1
    return text[:place] + b"CURRENT_USER" + text[end:]


def _if_needed(tree: Tree, text: bytes) -> bytes:
    """A schema may be there already: `public`, or one that a requirement made."""
    node: Node = tree.node
    if tree.kind != "CreateSchemaStmt" or node.get("if_not_exists"):
        return text
    return text.replace(CREATE_SCHEMA, CREATE_SCHEMA + b" IF NOT EXISTS", 1)


def _load(conn: Connection[Any], text: str, *, where: str, origin: str, script: Script) -> None:
    try:
        for (role,) in conn.execute(MISSING_ROLES, {"roles": sorted(script.roles)}).fetchall():
            _make_role(conn, sql.SQL(CREATE_ROLE).format(sql.Identifier(role)))
        make_superusers(conn, script.superusers)
        with conn.transaction():
            conn.execute(text.encode(), prepare=False)
    except psycopg.Error as exc:
        raise _refused(exc, text, where=where, origin=origin) from exc
    conn.execute(FRESH_SESSION)


def _refused(exc: psycopg.Error, text: str, *, where: str, origin: str) -> CopyError:
    position = exc.diag.statement_position
    lines = server_lines(exc)
    if position is not None:
        begin = text.rfind(";\n", 0, int(position)) + 1
        end = text.find(";\n", int(position))
        lines = (*lines, *shown_sql(text[begin : end if end > 0 else len(text)].strip()))
    return CopyError(
        f"the schema of {origin} cannot be copied to {where}",
        details=lines,
        hint='choose a dev server of its kind and major: dev = "local:…", "docker://…" or a URL',
    )
