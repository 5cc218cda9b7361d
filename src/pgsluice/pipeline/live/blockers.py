"""Looks, through a connection of its own, at what a running statement waits for and how far it is."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import class_row

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.live.database import connect
from pgsluice.pipeline.live.script import shortened
from pgsluice.pipeline.quoting import quote_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APPLICATION: Final = "pgsluice watcher"
CONNECT_S: Final = 5.0
FIRST_LOOK_S: Final = 0.1
LOOK_S: Final = 1.0
JOIN_S: Final = 10.0
QUERY_CHARS: Final = 80

FIND_BLOCKERS: Final = """
select
  a.pid,
  a.usename::text as username,
  a.application_name,
  a.state,
  extract(epoch from pg_catalog.clock_timestamp() - a.xact_start)::float8 as age_s,
  a.query,
  a.backend_type,
  null as prepared
from pg_catalog.pg_stat_activity as me
cross join lateral pg_catalog.unnest(pg_catalog.pg_blocking_pids(me.pid)) as b (pid)
join pg_catalog.pg_stat_activity as a on a.pid = b.pid
where me.pid = %(pid)s and me.wait_event_type = 'Lock' and b.pid <> me.pid
order by a.xact_start nulls last, a.pid
"""
# A prepared transaction has no process: pg_blocking_pids says 0 for it.
HAS_PREPARED: Final = "select 0 = any(pg_catalog.pg_blocking_pids(%(pid)s))"
FIND_PREPARED: Final = """
select distinct
  0 as pid,
  p.owner::text as username,
  null as application_name,
  'prepared' as state,
  extract(epoch from pg_catalog.clock_timestamp() - p.prepared)::float8 as age_s,
  null as query,
  null as backend_type,
  p.gid as prepared
from pg_catalog.pg_locks as w
join pg_catalog.pg_locks as h on
  h.granted
  and h.pid is null
  and h.locktype = w.locktype
  and (h.database, h.relation, h.page, h.tuple, h.transactionid, h.classid, h.objid, h.objsubid)
    is not distinct from
    (w.database, w.relation, w.page, w.tuple, w.transactionid, w.classid, w.objid, w.objsubid)
join pg_catalog.pg_locks as x on
  x.pid is null and x.locktype = 'transactionid' and x.virtualtransaction = h.virtualtransaction
join pg_catalog.pg_prepared_xacts as p on p.transaction = x.transactionid
where w.pid = %(pid)s and not w.granted
order by age_s desc, prepared
"""
INDEX_PROGRESS: Final = """
select
  p.phase,
  case
    when p.blocks_total > 0 then 100 * p.blocks_done / p.blocks_total
    when p.tuples_total > 0 then 100 * p.tuples_done / p.tuples_total
    when p.lockers_total > 0 then 100 * p.lockers_done / p.lockers_total
  end
from pg_catalog.pg_stat_progress_create_index as p
where p.pid = %(pid)s
"""


@dataclass(frozen=True, slots=True)
class Blocker:
    """Who another session waits for; what the server does not show to our role is None.

    `prepared` names a transaction of two phases that waits for its second one; it has no process.
    """

    pid: int
    username: str | None
    application_name: str | None
    state: str | None
    age_s: float | None
    query: str | None
    backend_type: str | None
    prepared: str | None = None

    @property
    def ending(self) -> str:
        """The SQL that ends it."""
        if self.prepared is None:
            return f"select pg_terminate_backend({self.pid});"
        return f"rollback prepared {quote_literal(self.prepared)};"

    def __str__(self) -> str:
        state = self.state or self.backend_type
        age = f" for {self.age_s:.0f} s" if self.age_s is not None else ""
        known = [self.username, self.application_name, f"{state}{age}" if state else None]
        words = ", ".join(word for word in known if word)
        about = f" ({words})" if words else ""
        query = f": {shortened(self.query, QUERY_CHARS)}" if self.query else ""
        who = f"pid {self.pid}" if self.prepared is None else f"transaction {quote_literal(self.prepared)}"
        return f"{who}{about}{query}"


class Watcher:
    """A thread that looks while a statement runs; it connects when the first one takes its time.

    A server without a connection to spare makes it blind, not the run fail: `blindness` says why.
    """

    def __init__(self, url: str, pid: int, *, progress: Callable[[str], None]) -> None:
        self._url = url
        self._pid = pid
        self._progress = progress
        self._changed = threading.Condition()
        self._label: str | None = None
        self._number = 0
        self._closed = False
        self._blockers: tuple[Blocker, ...] = ()
        self._thread = threading.Thread(target=self._run, name="pgsluice-watcher", daemon=True)
        self.blindness: str | None = None

    @contextmanager
    def running(self) -> Iterator[Watcher]:
        """Have the thread for the length of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify()
            self._thread.join(JOIN_S)

    @contextmanager
    def watches(self, label: str) -> Iterator[None]:
        """Look while the block runs one statement; forgets who blocked an earlier one."""
        with self._changed:
            self._label, self._number, self._blockers = label, self._number + 1, ()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._label = None
                self._changed.notify()

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """The sessions that the last statement was seen to wait for."""
        with self._changed:
            return self._blockers

    def blocked_by(self) -> tuple[str, ...]:
        """The blockers as lines, or why they are not known."""
        if found := self.blockers:
            return tuple(f"blocked by {one}" for one in found)
        return (f"blocked by a session that was not seen: {self.blindness or 'it came and went'}",)

    def _run(self) -> None:
        conn: psycopg.Connection[Any] | None = None
        seen, pause_s = 0, FIRST_LOOK_S
        try:
            while (number := self._next_look(seen, pause_s)) is not None:
                pause_s = FIRST_LOOK_S if number != seen else min(2 * pause_s, LOOK_S)
                seen = number
                conn = self._look(conn, number)
        finally:
            if conn is not None:
                conn.close()

    def _next_look(self, seen: int, pause_s: float) -> int | None:
        """Wait until a statement has run long enough for a look, and give its number; None at the end."""
        with self._changed:
            while not self._closed:
                if self._label is None:
                    self._changed.wait()
                    continue
                number = self._number
                self._changed.wait(pause_s if number == seen else FIRST_LOOK_S)
                if self._label is not None and self._number == number and not self._closed:
                    return number
        return None

    def _look(self, conn: psycopg.Connection[Any] | None, number: int) -> psycopg.Connection[Any] | None:
        try:
            if conn is None or conn.closed:
                conn = connect(self._url, application_name=APPLICATION, within_s=CONNECT_S)
            found = self._read_blockers(conn)
            row = conn.execute(INDEX_PROGRESS, {"pid": self._pid}).fetchone()
        except UnreachableError as exc:
            self.blindness = exc.details[0] if exc.details else exc.message
            return None
        except psycopg.Error as exc:
            self.blindness = " ".join(str(exc).split())
            return None
        self.blindness = None
        with self._changed:
            label = self._label
            if label is None or self._number != number:
                return conn
            self._blockers = found or self._blockers
        if found:
            self._progress(f"{label}, waiting for {found[0]}")
        elif row is not None:
            done = f", {row[1]} %" if row[1] is not None else ""
            self._progress(f"{label}: {row[0]}{done}")
        return conn

    def _read_blockers(self, conn: psycopg.Connection[Any]) -> tuple[Blocker, ...]:
        with conn.cursor(row_factory=class_row(Blocker)) as cursor:
            found = cursor.execute(FIND_BLOCKERS, {"pid": self._pid}).fetchall()
            row = conn.execute(HAS_PREPARED, {"pid": self._pid}).fetchone()
            if row is not None and row[0]:
                found += cursor.execute(FIND_PREPARED, {"pid": self._pid}).fetchall()
        return tuple(found)
