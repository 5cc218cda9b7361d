"""What `apply` writes into the ledger, each in the transaction that makes it true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.live.ledger import LOCK_KEY, TOOL

if TYPE_CHECKING:
    import psycopg

    from pgsluice.pipeline.live.script import Script

# The file may have changed role; both words end with the transaction, so that it stays as the file wants it.
AS_OURSELVES: Final = "set local session authorization default; set local role to default"
HOLDS_LOCK: Final = """
select exists (
  select from pg_catalog.pg_locks as l
  where
    l.locktype = 'advisory'
    and l.granted
    and l.pid = pg_catalog.pg_backend_pid()
    and (l.classid::bigint << 32 | l.objid::bigint) = %(key)s
    and l.objsubid = 1
)
"""
BEGIN_FILE: Final = """
insert into pgsluice.migrations as m (
  target, filename, version, digest, kind, applied_by, tool, started_at,
  statements_total, statements_done, statement_digests
)
values (
  %(target)s, %(filename)s, %(version)s, %(digest)s, 'applied', current_user, %(tool)s,
  pg_catalog.clock_timestamp(), %(total)s, 0, %(digests)s
)
on conflict (target, filename) do update
set
  digest = excluded.digest,
  applied_by = excluded.applied_by,
  tool = excluded.tool,
  statements_total = excluded.statements_total,
  statement_digests = excluded.statement_digests
"""
BEGIN_STATEMENT: Final = """
update pgsluice.migrations as m
set running = %(running)s, error = null
where m.target = %(target)s and m.filename = %(filename)s
"""
END_STATEMENT: Final = """
update pgsluice.migrations as m
set
  statements_done = %(done)s,
  running = null,
  error = null,
  finished_at = case when %(done)s = m.statements_total then pg_catalog.clock_timestamp() end
where m.target = %(target)s and m.filename = %(filename)s
"""
FAIL_STATEMENT: Final = """
update pgsluice.migrations as m
set error = %(error)s
where m.target = %(target)s and m.filename = %(filename)s
"""


def require_lock(conn: psycopg.Connection[Any]) -> None:
    """Make sure that the session that runs the next statement is the one that holds the lock.

    Raises:
        UnreachableError: It is another: a pooler hands each transaction to whichever session is free.
    """
    row = conn.execute(HOLDS_LOCK, {"key": LOCK_KEY}).fetchone()
    if row is None or not row[0]:
        raise changing_session()


def changing_session() -> UnreachableError:
    """The error for a connection whose session is not its own."""
    return UnreachableError(
        "this connection changes its server session between transactions, so no lock holds",
        details=("a pooler in transaction mode stands between, or a migration gave the lock back",),
        hint="connect to the server directly, or to the pooler's port for sessions",
    )


class Recorder:
    """Writes one file's row; the transaction is the caller's."""

    def __init__(self, conn: psycopg.Connection[Any], target: str, script: Script) -> None:
        self._conn = conn
        self._script = script
        self._key = {"target": target, "filename": script.name}

    def begin(self) -> None:
        """The file is begun, or begun again where it stopped."""
        script = self._script
        values = {
            **self._key,
            "version": script.migration.version,
            "digest": script.digest,
            "tool": TOOL,
            "total": len(script.statements),
            "digests": [] if script.transactional else script.statement_digests,
        }
        self._write(BEGIN_FILE, values)

    def run(self, text: str) -> None:
        """A statement starts whose end will be recorded apart from it."""
        self._write(BEGIN_STATEMENT, {**self._key, "running": text})

    def done(self, count: int) -> None:
        """So many statements are done; with the last one, so is the file."""
        self._write(END_STATEMENT, {**self._key, "done": count})

    def failed(self, error: str) -> None:
        """The next statement failed."""
        self._write(FAIL_STATEMENT, {**self._key, "error": error})

    def _write(self, statement: str, values: dict[str, object]) -> None:
        self._conn.execute(AS_OURSELVES)
        self._conn.execute(statement, values)
