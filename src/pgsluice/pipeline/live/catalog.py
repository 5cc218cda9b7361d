"""Read the catalog and the ledger of a real database, changing nothing and waiting for nobody for long."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import psycopg

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.live.database import open_database, shown
from pgsluice.pipeline.live.dump import complete_url
from pgsluice.pipeline.live.ledger import Entry, LedgerState, read_ledger
from pgsluice.pipeline.proof import server_lines
from pgsluice.pipeline.snapshot import Snapshot, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pgsluice.config import Target

LOCK_TIMEOUT_S: Final = 10
STATEMENT_TIMEOUT_S: Final = 120
READ_ONLY: Final = """
select
  pg_catalog.set_config('default_transaction_read_only', 'on', false),
  pg_catalog.set_config('lock_timeout', %(lock_timeout)s, false),
  pg_catalog.set_config('statement_timeout', %(statement_timeout)s, false)
"""
MAY_READ_LEDGER: Final = """
select coalesce(
  pg_catalog.has_schema_privilege(n.oid, 'usage') and pg_catalog.has_table_privilege(c.oid, 'select'), true)
from (select 'migrations'::name as relname, 'pgsluice'::name as nspname) as l
left join pg_catalog.pg_namespace as n on n.nspname = l.nspname
left join pg_catalog.pg_class as c on c.relnamespace = n.oid and c.relname = l.relname
"""
MOST_OWN: Final = """
select pg_catalog.pg_get_userbyid(o.owner)::text
from (
  select c.oid, 'pg_class'::pg_catalog.regclass, c.relowner, c.relnamespace
  from pg_catalog.pg_class as c where c.relkind in ('r', 'p', 'v', 'm', 'f')
  union all
  select p.oid, 'pg_proc'::pg_catalog.regclass, p.proowner, p.pronamespace from pg_catalog.pg_proc as p
  union all
  select t.oid, 'pg_type'::pg_catalog.regclass, t.typowner, t.typnamespace
  from pg_catalog.pg_type as t where t.typtype in ('e', 'd', 'r')
) as o (objid, classid, owner, namespace)
join pg_catalog.pg_namespace as n on n.oid = o.namespace
where o.objid >= 16384
  and (n.nspname = any(%(manages)s)
    or %(whole)s and n.nspname not in ('information_schema', 'pgsluice') and n.nspname !~ '^pg_')
  and not exists (
    select from pg_catalog.pg_depend as d
    where d.classid = o.classid and d.objid = o.objid and d.deptype = 'e')
group by o.owner
order by count(*) desc, 1
limit 1
"""
# Where Atlas keeps what it applied, by default and in a schema of the user's choice.
OF_ATLAS: Final = ("atlas_schema_revisions", "atlas_schema_revisions.*", "*.atlas_schema_revisions")
OUTSIDE: Final = files("pgsluice.pipeline").joinpath("resources", "outside.sql").read_bytes()
IS_SUPERUSER: Final = "select pg_catalog.current_setting('is_superuser') = 'on'"


@dataclass(frozen=True, slots=True)
class Outside:
    """What a target leaves alone, by what holds it.

    `holder` is `schema audit` or `extension pgcrypto`, or empty for what belongs to no schema.
    """

    holder: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveCatalog:
    """What a real database holds of one target, at one moment.

    `url` leads to it from anywhere; `place` is for messages. `snapshot.runner` is the role that runs the
    migrations, `earlier_owners` those that did before; `entries` is None where our role may not read the
    ledger. `sees_secrets` says whether options of user mappings could be read.
    """

    url: str
    place: str
    snapshot: Snapshot
    earlier_owners: frozenset[str]
    entries: tuple[Entry, ...] | None
    outside: tuple[Outside, ...]
    sees_secrets: bool

    @property
    def major(self) -> int:
        """The server's major version."""
        return self.snapshot.version_num // 10000


@contextmanager
def open_reader(url: str, *, progress: Callable[[str], None]) -> Iterator[psycopg.Connection[Any]]:
    """A connection that writes nothing, on a standby too, and gives up behind a lock or a slow server.

    Raises:
        UnreachableError: There is no connection, or the block's queries were refused or took too long.
    """
    with open_database(url, progress=progress) as conn:
        try:
            limits = {"lock_timeout": LOCK_TIMEOUT_S, "statement_timeout": STATEMENT_TIMEOUT_S}
            conn.execute(READ_ONLY, {name: f"{seconds}s" for name, seconds in limits.items()})
            yield conn
        except psycopg.Error as exc:
            raise UnreachableError(
                f"cannot read the catalog of {shown(url)}", details=server_lines(exc), hint=_hint(exc)
            ) from exc


def read_live(conn: psycopg.Connection[Any], url: str, target: Target) -> LiveCatalog:
    """Read what a target manages, all in one transaction.

    Args:
        conn: From `open_reader`.
        url: As it was given, for messages.
        target: Says what is managed and ignored.
    """
    scope = {"manages": list(target.manages), "whole": "*" in target.manages}
    with conn.transaction():
        entries = read_entries(conn, target.name)
        most = conn.execute(MOST_OWN, scope).fetchone()
        majority = str(most[0]) if most is not None else None
        runner, earlier = find_runner(entries or (), majority)
        snapshot = read_snapshot(
            conn, manages=target.manages, ignore=(*target.ignore, *OF_ATLAS), runner=runner
        )
        outside = conn.execute(OUTSIDE, scope).fetchall()
        superuser = conn.execute(IS_SUPERUSER).fetchone()
    return LiveCatalog(
        url=complete_url(conn),
        place=shown(url),
        snapshot=snapshot,
        earlier_owners=earlier,
        entries=entries,
        outside=tuple(Outside(str(holder), tuple(names)) for holder, names in outside),
        sees_secrets=superuser == (True,),
    )


def read_entries(conn: psycopg.Connection[Any], target: str) -> tuple[Entry, ...] | None:
    """The ledger's entries of one target, None where our role may not read the ledger."""
    if conn.execute(MAY_READ_LEDGER).fetchone() == (False,):
        return None
    return read_ledger(conn, target)


def find_runner(entries: Sequence[Entry], majority: str | None) -> tuple[str | None, frozenset[str]]:
    """The role that runs the migrations, and the roles that did so before it.

    It is the one of the last migration that ran. A baseline tells only who wrote the ledger: what was there
    before belongs to the owner of most objects, who is the runner as long as no migration has run.
    """
    applied = [entry.applied_by for entry in entries if entry.kind == LedgerState.APPLIED]
    owners = {*applied, majority} if len(applied) < len(entries) or not applied else set(applied)
    runner = applied[-1] if applied else majority
    return runner, frozenset(owner for owner in owners if owner is not None and owner != runner)


def _hint(exc: psycopg.Error) -> str | None:
    if isinstance(exc, psycopg.errors.LockNotAvailable):
        return "another session holds a stronger lock, such as a running migration; try again when it ends"
    if isinstance(exc, psycopg.errors.InsufficientPrivilege):
        return "grant our role what is denied, or connect as a superuser"
    if isinstance(exc, (psycopg.errors.CharacterNotInRepertoire, psycopg.errors.UntranslatableCharacter)):
        return "a name, comment or definition there is no text of the database's encoding; mend it first"
    return None
