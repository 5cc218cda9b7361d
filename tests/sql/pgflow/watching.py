"""What tests of the callbacks compare: every row that a call may change, a run's events, two sessions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from tests.sql.pgflow.engine import claim, events, wait_until_blocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from uuid import UUID

    from tests.sql.pgflow.engine import Conn, Task

T = TypeVar("T")

ENGINE_ROWS: Final = """
select 'run', pg_catalog.to_jsonb(run)::text from pgflow.runs as run
union all select 'step', pg_catalog.to_jsonb(state)::text from pgflow.step_states as state
union all select 'task', pg_catalog.to_jsonb(task)::text from pgflow.step_tasks as task
"""
QUEUE_ROWS: Final = """
select {queue}, msg_id::text || ' ' || vt::text from pgmq.{live}
union all select {queue} || ' archive', msg_id::text from pgmq.{archive}
"""
EVENT_ROWS: Final = "select topic, event from realtime.messages"


def picture(conn: Conn, *queues: str) -> list[tuple[str, str]]:
    """All rows of runs, steps and tasks, all messages with their visibility, all events."""
    rows = conn.execute(ENGINE_ROWS).fetchall()
    for queue in queues:
        live, archive = Identifier(f"q_{queue.lower()}"), Identifier(f"a_{queue.lower()}")
        rows += conn.execute(SQL(QUEUE_ROWS).format(queue=Literal(queue), live=live, archive=archive))
    if conn.execute("select 1 where to_regclass('realtime.messages') is not null").fetchone():
        rows += conn.execute(EVENT_ROWS)
    return sorted(rows)


def happened(conn: Conn, run_id: UUID) -> list[str]:
    """The names of the run's events, in order."""
    return [event["event"] for event in events(conn, run_id)]


def claimed(conn: Conn, flow: str, *, ids: list[int] | None = None) -> dict[tuple[str, int], Task]:
    """Claim as `claim` does: the tasks by step and index."""
    return {(task.step_slug, task.task_index): task for task in claim(conn, flow, ids=ids)}


@dataclass(frozen=True, slots=True)
class Race:
    """Two sessions on one database, and a thread for the one that waits."""

    a: Conn
    b: Conn
    watcher: Conn
    pool: ThreadPoolExecutor

    def b_waits_for_a(self, call: Callable[[Conn], T]) -> Future[T]:
        """Let B make a call, and return once it waits for A."""
        pending = self.pool.submit(call, self.b)
        wait_until_blocked(self.watcher, waiter=self.b.info.backend_pid, holder=self.a.info.backend_pid)
        return pending


@contextmanager
def race(conninfo: str) -> Iterator[Race]:
    """Open the sessions; what still waits in them at the end is interrupted, so that nothing hangs."""
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(conninfo, autocommit=True) as watcher,
        psycopg.connect(conninfo) as a,
        psycopg.connect(conninfo) as b,
    ):
        try:
            yield Race(a, b, watcher, pool)
        finally:
            a.cancel()
            b.cancel()
