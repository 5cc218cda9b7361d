"""What a database says about the migrations that ran on it: one table, and one lock around all changes."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import class_row
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_random_exponential

from pgsluice import __version__
from pgsluice.errors import RefusedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from pgsluice.pipeline.history import Migration

LEDGER: Final = "pgsluice.migrations"
LOCK_KEY: Final = int.from_bytes(b"pgsluice")
"""The advisory lock's key: the letters of `pgsluice` as a bigint."""
LOCK_WAIT_S: Final = 60.0
LOCK_PAUSE_S: Final = 1.0
TOOL: Final = f"pgsluice {__version__}"

LEDGER_EXISTS: Final = "select pg_catalog.to_regclass('pgsluice.migrations') is not null"
SCHEMA_EXISTS: Final = "select pg_catalog.to_regnamespace('pgsluice') is not null"
CREATE_SCHEMA: Final = "create schema pgsluice"
COMMENT_SCHEMA: Final = "comment on schema pgsluice is 'What pgsluice knows about this database.'"
CREATE_LEDGER: Final = """
create table pgsluice.migrations (
  target text not null,
  filename text not null,
  version text not null,
  digest text not null,
  kind text not null,
  applied_by text not null,
  tool text not null,
  started_at timestamptz not null,
  finished_at timestamptz,
  statements_total integer not null,
  statements_done integer not null,
  running text,
  error text,
  statement_digests text[] not null,
  constraint migrations_pkey primary key (target, filename),
  constraint migrations_kind_known check (kind in ('applied', 'baseline')),
  constraint migrations_done_within_total check (statements_done between 0 and statements_total)
)
"""
COMMENT_LEDGER: Final = (
    "comment on table pgsluice.migrations is"
    " 'One row a migration that ran here; written by pgsluice apply and pgsluice baseline.'"
)
READ_LEDGER: Final = """
select
  m.target, m.filename, m.version, m.digest, m.kind, m.applied_by, m.tool, m.started_at, m.finished_at,
  m.statements_total, m.statements_done, m.running, m.error, m.statement_digests
from pgsluice.migrations as m
where m.target = %(target)s
order by m.filename collate "C"
"""
INSERT_BASELINE: Final = """
insert into pgsluice.migrations (
  target, filename, version, digest, kind, applied_by, tool, started_at, finished_at,
  statements_total, statements_done, statement_digests
)
values (
  %(target)s, %(filename)s, %(version)s, %(digest)s, 'baseline', current_user, %(tool)s,
  pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp(), 0, 0, '{}'
)
"""
COLUMNS: Final = (
    "target, filename, version, digest, kind, applied_by, tool, started_at, finished_at,"
    " statements_total, statements_done, running, error, statement_digests"
)
KINDS: Final = frozenset({"applied", "baseline"})
LIMIT_WAITS: Final = "select pg_catalog.set_config('lock_timeout', '10s', false)"
LOCKERS: Final = """
select distinct pg_catalog.format(
  'pid %s (%s): %s', l.pid, coalesce(a.usename, '?'), pg_catalog.left(coalesce(a.query, '?'), 80)
)
from pg_catalog.pg_locks as l
left join pg_catalog.pg_stat_activity as a on a.pid = l.pid
where
  l.relation = pg_catalog.to_regclass('pgsluice.migrations')
  and l.granted
  and l.mode <> 'AccessShareLock'
  and l.pid <> pg_catalog.pg_backend_pid()
"""
TRY_LOCK: Final = "select pg_catalog.pg_try_advisory_lock(%(key)s)"
UNLOCK: Final = """
select pg_catalog.pg_advisory_unlock(%(key)s)
from pg_catalog.pg_locks as l
where
  l.locktype = 'advisory'
  and l.pid = pg_catalog.pg_backend_pid()
  and (l.classid::bigint << 32 | l.objid::bigint) = %(key)s
  and l.objsubid = 1
limit 1
"""
UNLOCK_ATTEMPTS: Final = 5
"""A pooler may hand us other sessions than the one that has the lock, which then would keep it."""
LOCK_HOLDER: Final = """
select
  l.pid,
  a.usename::text as username,
  a.application_name,
  a.client_addr::text as client,
  a.backend_start as since
from pg_catalog.pg_locks as l
left join pg_catalog.pg_stat_activity as a on a.pid = l.pid
where
  l.locktype = 'advisory'
  and l.granted
  and l.database = (select d.oid from pg_catalog.pg_database as d where d.datname = current_database())
  and (l.classid::bigint << 32 | l.objid::bigint) = %(key)s
  and l.objsubid = 1
"""


class LedgerState(StrEnum):
    """How far a migration got: what the ledger says of it, seen beside the folder."""

    APPLIED = "applied"
    BASELINE = "baseline"
    PENDING = "pending"
    DIRTY = "dirty"
    CHANGED = "changed"
    MISSING = "missing"
    OUT_OF_ORDER = "out-of-order"


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the ledger.

    `digest` is the file's own; `applied_by` the role that ran it; `finished_at` is None while a file that
    runs outside of a transaction has not come to its end; `running` is the statement that was started
    and not seen to end; `statement_digests` belong to the statements of such a file, as it was then.
    """

    target: str
    filename: str
    version: str
    digest: str
    kind: str
    applied_by: str
    tool: str
    started_at: datetime
    finished_at: datetime | None
    statements_total: int
    statements_done: int
    running: str | None
    error: str | None
    statement_digests: list[str]

    @property
    def state(self) -> LedgerState:
        """What the row alone says: applied, baseline or dirty."""
        if self.finished_at is None:
            return LedgerState.DIRTY
        return LedgerState(self.kind)


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The session that holds the ledger's lock; what the server does not show us is None."""

    pid: int
    username: str | None
    application_name: str | None
    client: str | None
    since: datetime | None

    def __str__(self) -> str:
        name = f"{self.application_name}, " if self.application_name else ""
        user = f" of {self.username}" if self.username else ""
        since = f", connected since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        return f"{name}pid {self.pid}{user}{since}"


def file_digest(migration: Migration) -> str:
    """The digest of one file alone: SHA-256 of name and content, unlike the running one of `atlas.sum`."""
    content = migration.path.read_bytes()
    return content_digest(migration.filename, content)


def content_digest(filename: str, content: bytes) -> str:
    """The digest of a file of that name and content."""
    digest = hashlib.sha256(os.fsencode(filename) + content).digest()
    return f"h1:{base64.b64encode(digest).decode()}"


def read_ledger(conn: psycopg.Connection[Any], target: str) -> tuple[Entry, ...]:
    """The rows of one target in byte order of their file names; none when there is no ledger yet.

    Raises:
        UnreachableError: Our role may not read it, or somebody keeps it locked.
        RefusedError: It is not as this version keeps it.
    """
    try:
        if not ledger_exists(conn):
            return ()
        with conn.cursor(row_factory=class_row(Entry)) as cursor:
            found = tuple(cursor.execute(READ_LEDGER, {"target": target}).fetchall())
    except psycopg.errors.InsufficientPrivilege as exc:
        raise UnreachableError(
            f"role {conn.info.user} may not read {LEDGER}",
            hint=f'grant usage on schema pgsluice to "{conn.info.user}";'
            f' grant select on pgsluice.migrations to "{conn.info.user}";',
        ) from exc
    except psycopg.errors.LockNotAvailable as exc:
        raise UnreachableError(
            f"somebody keeps {LEDGER} locked",
            details=_lock_holders(conn),
            hint="wait until that is over, then run the command again",
        ) from exc
    except (psycopg.errors.UndefinedColumn, psycopg.DataError) as exc:
        raise _not_ours(exc.diag.message_primary or str(exc)) from exc
    for entry in found:
        if entry.kind not in KINDS:
            raise _not_ours(f"{entry.filename} is of kind {entry.kind}")
    return found


def limit_waits(conn: psycopg.Connection[Any]) -> None:
    """Wait seconds, not for ever, for what somebody keeps locked."""
    conn.execute(LIMIT_WAITS)


def _not_ours(what: str) -> RefusedError:
    return RefusedError(
        f"{LEDGER} is not as this version of pgsluice keeps it",
        details=(what, f"this is {TOOL}; another version made it, or it was changed by hand"),
        hint=f"use the newest version that worked on this database, or mend the table: it has {COLUMNS}",
    )


def _lock_holders(conn: psycopg.Connection[Any]) -> tuple[str, ...]:
    """The sessions that hold locks on the ledger."""
    return tuple(str(line) for (line,) in conn.execute(LOCKERS).fetchall())


def ledger_exists(conn: psycopg.Connection[Any]) -> bool:
    """Whether the ledger's table is there."""
    row = conn.execute(LEDGER_EXISTS).fetchone()
    return row is not None and bool(row[0])


def ensure_ledger(conn: psycopg.Connection[Any]) -> None:
    """Make the ledger when it is not there; joins a transaction if one is open. The lock is the caller's.

    Raises:
        UnreachableError: Our role may not create it.
    """
    if ledger_exists(conn):
        return
    try:
        with conn.transaction():
            row = conn.execute(SCHEMA_EXISTS).fetchone()
            if row is None or not row[0]:
                conn.execute(CREATE_SCHEMA)
                conn.execute(COMMENT_SCHEMA)
            conn.execute(CREATE_LEDGER)
            conn.execute(COMMENT_LEDGER)
    except psycopg.errors.InsufficientPrivilege as exc:
        raise UnreachableError(
            f"role {conn.info.user} may not create {LEDGER} in database {conn.info.dbname}",
            hint=f'create schema pgsluice authorization "{conn.info.user}";',
        ) from exc


def record_baseline(
    conn: psycopg.Connection[Any], target: str, migrations: Sequence[Migration], *, tool: str = TOOL
) -> None:
    """Say that the database has these migrations already; nothing of them is run. The lock is the caller's.

    Args:
        conn: Joins its transaction if one is open, so that all rows are written or none.
        target: The target's name.
        migrations: Those that count as applied, none of which the ledger has.
        tool: What wrote the rows.

    Raises:
        UnreachableError: Our role may not create the ledger.
    """
    with conn.transaction():
        ensure_ledger(conn)
        for migration in migrations:
            values = {
                "target": target,
                "filename": migration.filename,
                "version": migration.version,
                "digest": file_digest(migration),
                "tool": tool,
            }
            conn.execute(INSERT_BASELINE, values)


def _silent(_message: str) -> None:
    """Drop progress messages."""


@contextmanager
def ledger_lock(
    conn: psycopg.Connection[Any],
    *,
    wait_s: float = LOCK_WAIT_S,
    progress: Callable[[str], None] = _silent,
) -> Iterator[None]:
    """Hold the database's one lock of pgsluice, on the session that will run the statements.

    It is asked for again and again instead of waited for: a session that waits holds a snapshot, and
    `create index concurrently` of whoever has the lock would wait for that.

    Args:
        conn: Holds the lock until the block ends, or until it is closed.
        wait_s: How long others may keep us waiting.
        progress: Called with a line that names the holder.

    Raises:
        UnreachableError: Another session has kept the lock for `wait_s`; says which.
    """
    deadline = time.monotonic() + wait_s

    def attempt() -> bool:
        row = conn.execute(TRY_LOCK, {"key": LOCK_KEY}).fetchone()
        if row is not None and row[0]:
            return True
        if time.monotonic() < deadline:
            progress(f"waiting for another run on this database: {read_lock_holder(conn) or 'it just ended'}")
        return False

    retrying = Retrying(
        retry=retry_if_result(lambda got: not got),
        stop=stop_after_delay(wait_s),
        wait=wait_random_exponential(multiplier=0.05, max=LOCK_PAUSE_S),
        retry_error_callback=lambda _state: False,
    )
    if not retrying(attempt):
        raise _locked(read_lock_holder(conn), wait_s)
    try:
        yield
    finally:
        if not conn.closed:
            _unlock(conn)


def read_lock_holder(conn: psycopg.Connection[Any]) -> LockHolder | None:
    """The session that holds the lock of this database now."""
    with conn.cursor(row_factory=class_row(LockHolder)) as cursor:
        return cursor.execute(LOCK_HOLDER, {"key": LOCK_KEY}).fetchone()


def _unlock(conn: psycopg.Connection[Any]) -> None:
    """Give the lock back; a connection that can no longer say so gives it back by its end."""
    try:
        for _ in range(UNLOCK_ATTEMPTS):
            if conn.execute(UNLOCK, {"key": LOCK_KEY}).fetchone() is not None:
                return
    except psycopg.Error:
        conn.close()


def _locked(holder: LockHolder | None, wait_s: float) -> UnreachableError:
    who = f": {holder}" if holder is not None else ""
    pid = holder.pid if holder is not None else "<pid>"
    return UnreachableError(
        f"another run works on this database, waited {wait_s:g} s{who}",
        hint=f"pgsluice apply --wait 600, or when that run hangs: select pg_terminate_backend({pid});",
    )
