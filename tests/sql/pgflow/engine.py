"""The engine as a worker's SQL drives it: define, start, read, claim, complete, fail; and its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from psycopg.rows import class_row, dict_row
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    Conn = psycopg.Connection[Any]

REALTIME: Final = Path(__file__).parent / "realtime.sql"
READ_VT_S: Final = 5
LIMIT_S: Final = 30.0

ADD_STEP: Final = """
select pgflow.add_step(
  %(flow)s, %(slug)s, %(deps)s, step_type => %(type)s, max_attempts => %(max_attempts)s,
  base_delay => %(base_delay)s, timeout => %(timeout)s, start_delay => %(start_delay)s,
  required_input_pattern => %(required)s, forbidden_input_pattern => %(forbidden)s,
  when_unmet => %(when_unmet)s, when_exhausted => %(when_exhausted)s
)
"""
CREATE_FLOW: Final = "select pgflow.create_flow(%s, max_attempts => %s, base_delay => %s, timeout => %s)"
START: Final = "select run_id from pgflow.start_flow(%s, %s, %s)"
ADD_WORKER: Final = "insert into pgflow.workers (worker_id, queue_name, function_name) values (%s, %s, %s)"
READ: Final = "select msg_id from pgmq.read(%s, %s, %s) order by msg_id"
CLAIM: Final = (
    "select flow_slug, run_id, step_slug, input, msg_id, task_index, flow_input"
    " from pgflow.start_tasks(%s, %s, %s) order by run_id, step_slug, task_index"
)
COMPLETE: Final = "select * from pgflow.complete_task(%s, %s, %s, %s)"
FAIL: Final = "select * from pgflow.fail_task(%s, %s, %s, %s)"
BLOCKED: Final = "select %s = any(pg_catalog.pg_blocking_pids(%s))"


@dataclass(frozen=True, slots=True)
class Step:
    """A step's definition, with the defaults of `pgflow.add_step`."""

    slug: str
    deps: Sequence[str] = ()
    type: str = "single"
    max_attempts: int | None = None
    base_delay: int | None = None
    timeout: int | None = None
    start_delay: int | None = None
    required: Any = field(default=None)
    forbidden: Any = field(default=None)
    when_unmet: str = "skip"
    when_exhausted: str = "fail"


@dataclass(frozen=True, slots=True)
class Task:
    """One row of `pgflow.start_tasks`."""

    flow_slug: str
    run_id: UUID
    step_slug: str
    input: Any
    msg_id: int
    task_index: int
    flow_input: Any

    @property
    def key(self) -> tuple[UUID, str, int]:
        """The task's primary key."""
        return self.run_id, self.step_slug, self.task_index


def define(
    conn: Conn,
    flow: str,
    *steps: Step | str,
    max_attempts: int | None = None,
    base_delay: int | None = None,
    timeout: int | None = None,
) -> None:
    """Create a flow and its steps, in this order; a string is a single step without parents."""
    conn.execute(CREATE_FLOW, [flow, max_attempts, base_delay, timeout])
    for one in steps:
        step = Step(one) if isinstance(one, str) else one
        values = {name: getattr(step, name) for name in Step.__slots__}
        values |= {"flow": flow, "deps": list(step.deps)}
        for name in ("required", "forbidden"):
            values[name] = None if values[name] is None else Jsonb(values[name])
        conn.execute(ADD_STEP, values)


def start(conn: Conn, flow: str, value: Any = None, *, run_id: UUID | None = None) -> UUID:
    """Start a run; the input is JSON, so None is JSON's null."""
    row = conn.execute(START, [flow, Jsonb(value), run_id]).fetchone()
    assert row is not None
    assert isinstance(row[0], UUID)
    return row[0]


def add_worker(conn: Conn, queue: str = "f", *, function: str = "worker") -> UUID:
    """Register a worker."""
    worker = uuid4()
    conn.execute(ADD_WORKER, [worker, queue, function])
    return worker


def read(conn: Conn, queue: str, *, qty: int = 100_000, vt_s: int = READ_VT_S) -> list[int]:
    """Read the queue's visible messages, as a poll does: the ids."""
    return [int(row[0]) for row in conn.execute(READ, [queue, vt_s, qty])]


def claim(
    conn: Conn, flow: str, *, worker: UUID | None = None, ids: Sequence[int] | None = None
) -> list[Task]:
    """Claim the tasks of messages: the given ones, else all that are visible in the flow's queue."""
    worker = worker or add_worker(conn, flow)
    ids = read(conn, flow) if ids is None else list(ids)
    with conn.cursor(row_factory=class_row(Task)) as cursor:
        return cursor.execute(CLAIM, [flow, ids, worker]).fetchall()


def complete(conn: Conn, task: Task | tuple[UUID, str, int], output: Any = None) -> dict[str, Any] | None:
    """Complete a task: its row afterwards. The output is JSON, so None is JSON's null."""
    return _callback(conn, COMPLETE, task, Jsonb(output))


def fail(conn: Conn, task: Task | tuple[UUID, str, int], error: str = "boom") -> dict[str, Any] | None:
    """Fail a task: its row afterwards."""
    return _callback(conn, FAIL, task, error)


def _callback(
    conn: Conn, query: str, task: Task | tuple[UUID, str, int], value: object
) -> dict[str, Any] | None:
    key = task.key if isinstance(task, Task) else task
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, [*key, value]).fetchone()


def run_of(conn: Conn, run_id: UUID) -> dict[str, Any]:
    """The run's row."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("select * from pgflow.runs where run_id = %s", [run_id]).fetchone()
    assert row is not None
    return row


def states(conn: Conn, run_id: UUID) -> dict[str, dict[str, Any]]:
    """The run's step states by slug."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute("select * from pgflow.step_states where run_id = %s", [run_id])
        return {row["step_slug"]: row for row in rows}


def statuses(conn: Conn, run_id: UUID) -> dict[str, str]:
    """The status of each of the run's steps."""
    return {slug: row["status"] for slug, row in states(conn, run_id).items()}


def tasks(conn: Conn, run_id: UUID, step: str | None = None) -> list[dict[str, Any]]:
    """The run's task rows, or those of one step, by step and index."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "select * from pgflow.step_tasks where run_id = %s and step_slug = coalesce(%s, step_slug)"
            " order by step_slug, task_index",
            [run_id, step],
        ).fetchall()


def queued(conn: Conn, queue: str) -> list[int]:
    """Ids of all messages in the live queue, visible or not."""
    return _ids(conn, f"q_{queue.lower()}")


def archived(conn: Conn, queue: str) -> list[int]:
    """Ids of all messages in the queue's archive."""
    return _ids(conn, f"a_{queue.lower()}")


def _ids(conn: Conn, table: str) -> list[int]:
    query = SQL("select msg_id from pgmq.{} order by msg_id").format(Identifier(table))
    return [int(row[0]) for row in conn.execute(query)]


def hidden_s(conn: Conn, queue: str, msg_id: int) -> float:
    """How many seconds from now a message becomes visible."""
    query = SQL("select extract(epoch from vt - clock_timestamp()) from pgmq.{} where msg_id = %s")
    row = conn.execute(query.format(Identifier(f"q_{queue.lower()}")), [msg_id]).fetchone()
    assert row is not None
    return float(row[0])


def install_realtime(conn: Conn) -> None:
    """Give the database a schema `realtime` that keeps what is sent."""
    conn.execute(REALTIME.read_bytes())


def events(conn: Conn, run_id: UUID) -> list[dict[str, Any]]:
    """What `realtime.send` got for a run, in order: payload, event, topic, private."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "select payload, event, topic, private from realtime.messages"
            " where topic = %s order by message_id",
            [f"pgflow:run:{run_id}"],
        ).fetchall()


def wait_until_blocked(watcher: Conn, *, waiter: int, holder: int) -> None:
    """Return when the session `waiter` waits for `holder` (process ids); fail when that does not happen.

    `watcher` has to be in autocommit mode.
    """
    end = monotonic() + LIMIT_S
    while monotonic() < end:
        row = watcher.execute(BLOCKED, [holder, waiter]).fetchone()
        if row is not None and row[0]:
            return
    raise AssertionError(f"{waiter} did not wait for {holder} within {LIMIT_S:g} s")
