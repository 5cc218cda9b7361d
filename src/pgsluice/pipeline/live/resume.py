"""What became of a statement that was begun outside of a transaction, by the catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from psycopg import sql

from pgsluice.pipeline.live.script import detached_partition, is_concurrent

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.sources.tree import Node

    Connection: TypeAlias = psycopg.Connection[Any]

FIND_INDEX: Final = """
select i.indisvalid and i.indisready, pg_catalog.format('%%I.%%I', n.nspname, c.relname)
from pg_catalog.pg_class as t
join pg_catalog.pg_class as c on c.relnamespace = t.relnamespace
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
join pg_catalog.pg_index as i on i.indexrelid = c.oid
where t.oid = pg_catalog.to_regclass(%(table)s) and c.relname = %(index)s
"""
FIND_LEFTOVERS: Final = """
select pg_catalog.format('%%I.%%I', n.nspname, c.relname)
from pg_catalog.pg_index as i
join pg_catalog.pg_class as c on c.oid = i.indexrelid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where
  not i.indisvalid
  and c.relname ~ '_cc(new|old)[0-9]*$'
  and i.indrelid in (
    select coalesce(x.indrelid, r.oid)
    from pg_catalog.pg_class as r
    left join pg_catalog.pg_index as x on x.indexrelid = r.oid
    where r.oid = pg_catalog.to_regclass(%(relation)s)
  )
order by 1
"""
EXISTS: Final = "select pg_catalog.to_regclass(%(name)s) is not null"
DETACH_PENDING: Final = """
select i.inhdetachpending
from pg_catalog.pg_inherits as i
where
  i.inhparent = pg_catalog.to_regclass(%(parent)s) and i.inhrelid = pg_catalog.to_regclass(%(partition)s)
"""
DATABASE_EXISTS: Final = "select exists (select from pg_catalog.pg_database as d where d.datname = %(name)s)"
DROP_INDEX: Final = "drop index concurrently if exists {}"
FINALIZE: Final = "alter table {} detach partition {} finalize"
# What templates' backfill macro writes: it passes over the rows that are done.
BATCHED_BACKFILL: Final = re.compile(r"\$backfill\$.*<<pgsluice>>.*\bcommit;", re.DOTALL)


class Fate(StrEnum):
    """What became of a statement that was begun."""

    DONE = "done"
    AGAIN = "again"
    """It is to be run again, after `Verdict.first`."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fate, and the statements that clear away what was left."""

    fate: Fate
    first: tuple[str, ...] = ()


class Judge(Protocol):
    """Judges statements of one kind."""

    def __call__(self, conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
        """What became of the statement."""


AGAIN: Final = Verdict(Fate.AGAIN)
DONE: Final = Verdict(Fate.DONE)
UNKNOWN: Final = Verdict(Fate.UNKNOWN)


def judge(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    """What became of a statement that was begun outside of a transaction, by the catalog.

    Args:
        conn: With the session settings that the statement ran under.
        statement: Begun, and not recorded as done.
        failed: Whether it is known to have failed; if not, it may have come to its end.
    """
    judge_kind = _JUDGES.get(statement.kind)
    return UNKNOWN if judge_kind is None else judge_kind(conn, statement, failed=failed)


def is_judged(statement: Parsed) -> bool:
    """Whether the catalog can say what became of such a statement, so that it may be tried again."""
    if statement.kind == "DoStmt":
        return BATCHED_BACKFILL.search(statement.text) is not None
    return statement.kind in _JUDGES


def _judge_index(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    node = statement.node
    if "idxname" not in node:  # the server made up a name; it makes up another one next time
        return UNKNOWN
    values = {"table": _name(conn, node["relation"]), "index": node["idxname"]}
    row = conn.execute(FIND_INDEX, values).fetchone()
    if row is None:
        return AGAIN
    is_valid, name = row
    if is_valid:
        # a failed build leaves no valid index: this one is somebody else's, and the server shall say so
        return AGAIN if failed else DONE
    return Verdict(Fate.AGAIN, (DROP_INDEX.format(name),))


def _judge_drop(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    names = [item["List"]["items"] for item in statement.node["objects"]]
    (items,) = names  # the server takes one index at a time
    name = sql.Identifier(*(item["String"]["sval"] for item in items)).as_string(conn)
    return AGAIN if failed or _exists(conn, name) else DONE


def _judge_reindex(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    if not is_concurrent(statement):
        return AGAIN
    if "relation" not in statement.node:  # a whole schema: what is left there may be somebody else's work
        return AGAIN
    values = {"relation": _name(conn, statement.node["relation"])}
    left = [str(name) for (name,) in conn.execute(FIND_LEFTOVERS, values).fetchall()]
    return Verdict(Fate.AGAIN, tuple(DROP_INDEX.format(name) for name in left))


def _judge_alter_table(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    detached = detached_partition(statement.node)
    if detached is None:
        return UNKNOWN
    parent, partition = _name(conn, statement.node["relation"]), _name(conn, detached)
    row = conn.execute(DETACH_PENDING, {"parent": parent, "partition": partition}).fetchone()
    if row is None:
        # what failed before it began is not done for that: the server shall say again why it cannot be
        return AGAIN if failed or not (_exists(conn, parent) and _exists(conn, partition)) else DONE
    if row[0]:
        return Verdict(Fate.DONE, (FINALIZE.format(parent, partition),))
    return AGAIN


def _judge_do(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    return AGAIN if is_judged(statement) else UNKNOWN


def _judge_create_database(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    return DONE if not failed and _database_exists(conn, statement.node) else AGAIN


def _judge_drop_database(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    return AGAIN if failed or _database_exists(conn, statement.node) else DONE


def _judge_repeatable(conn: Connection, statement: Parsed, *, failed: bool) -> Verdict:
    return AGAIN


def _database_exists(conn: Connection, node: Node) -> bool:
    row = conn.execute(DATABASE_EXISTS, {"name": node["dbname"]}).fetchone()
    return row is not None and bool(row[0])


def _exists(conn: Connection, name: str) -> bool:
    row = conn.execute(EXISTS, {"name": name}).fetchone()
    return row is not None and bool(row[0])


def _name(conn: Connection, relation: Node) -> str:
    """A relation as the statement names it."""
    parts = [relation["schemaname"]] if "schemaname" in relation else []
    return sql.Identifier(*parts, relation["relname"]).as_string(conn)


_JUDGES: Final[Mapping[str, Judge]] = {
    "AlterSystemStmt": _judge_repeatable,
    "AlterTableStmt": _judge_alter_table,
    "ClusterStmt": _judge_repeatable,
    "CreatedbStmt": _judge_create_database,
    "DoStmt": _judge_do,
    "DropStmt": _judge_drop,
    "DropdbStmt": _judge_drop_database,
    "IndexStmt": _judge_index,
    "ReindexStmt": _judge_reindex,
    "VacuumStmt": _judge_repeatable,
}
