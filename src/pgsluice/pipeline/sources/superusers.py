"""Owners that PostgreSQL wants to be superusers: of event triggers, wrappers and publications.

A role that only stands in for a real one has no rights, so on a scratch server it is made a superuser, as
long as nobody can become it: without login and without members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Collection

    from pgsluice.pipeline.sources.tree import Node

OWNED: Final = frozenset(("OBJECT_EVENT_TRIGGER", "OBJECT_FDW", "OBJECT_PUBLICATION"))
STAND_INS: Final = """
select r.rolname::text
from pg_catalog.pg_roles as r
where r.rolname = any(%s) and not r.rolsuper and not r.rolcanlogin
  and not exists (select from pg_catalog.pg_auth_members as m where m.roleid = r.oid)
  and (select u.rolsuper from pg_catalog.pg_roles as u where u.rolname = current_user)
order by 1
"""
PROMOTE: Final = "alter role {} superuser"


def owning_superuser(kind: str, node: Node) -> str | None:
    """The role to which a statement gives what only a superuser may own."""
    if kind != "AlterOwnerStmt" or node.get("objectType") not in OWNED:
        return None
    name: str | None = node["newowner"].get("rolename")
    return name


def make_superusers(conn: psycopg.Connection[Any], roles: Collection[str]) -> None:
    """Make superusers of those of the roles that stand in for real ones; where we are none, of none."""
    if not roles:
        return
    with conn.transaction():
        for row in conn.execute(STAND_INS, [sorted(roles)]).fetchall():
            name = row["rolname"] if isinstance(row, dict) else row[0]
            conn.execute(sql.SQL(PROMOTE).format(sql.Identifier(name)))
