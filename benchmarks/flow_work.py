"""What `flow_sql.py` measures: batches of tasks through pgflow, and the same messages through PGMQ alone."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import Iterator

MAP: Final = "bench_map"
SINGLE: Final = "bench_single"
FLOOR: Final = "bench_floor"
STEP: Final = "work"
READ_VT_S: Final = 5
OUTPUT: Final = Jsonb({"done": True})

SET_UP: Final = f"""
select pgflow.create_flow('{MAP}');
select pgflow.add_step('{MAP}', '{STEP}', step_type => 'map');
select pgflow.create_flow('{SINGLE}');
select pgflow.add_step('{SINGLE}', '{STEP}');
select pgmq.create('{FLOOR}');
"""
ADD_WORKER: Final = "insert into pgflow.workers (worker_id, queue_name, function_name) values (%s, %s, %s)"
NOTHING: Final = "select"
START: Final = "select run_id from pgflow.start_flow(%s, %s)"
READ: Final = "select msg_id, message from pgmq.read(%s, %s, %s)"
CLAIM: Final = "select run_id, step_slug, task_index, input, flow_input from pgflow.start_tasks(%s, %s, %s)"
COMPLETE: Final = "select status from pgflow.complete_task(%s, %s, %s, %s)"
SEND: Final = "select pgmq.send(%s, %s)"
SEND_ALL: Final = "select pgmq.send_batch(%s, %s::jsonb[])"
ARCHIVE: Final = "select pgmq.archive(%s, %s::bigint)"
ARCHIVE_ALL: Final = "select pgmq.archive(%s, %s::bigint[])"


@dataclass(slots=True)
class Session:
    """A connection in autocommit mode: each call is a transaction of its own, as a worker's are.

    `spent` has what the calls of each part took since it was last taken: seconds of the server's process on a
    processor, and on the wall of this one.
    """

    conn: psycopg.Connection[Any]
    is_prepared: bool
    worker: object = field(default_factory=uuid4)
    spent: dict[str, tuple[float, float]] = field(default_factory=lambda: defaultdict(lambda: (0.0, 0.0)))

    def call(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of one statement."""
        return self.conn.execute(query.encode(), parameters, prepare=self.is_prepared).fetchall()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what is called meanwhile."""
        server_s, wall_s = self._server_s(), time.perf_counter()
        yield
        wall_s = time.perf_counter() - wall_s
        before = self.spent[name]
        self.spent[name] = (before[0] + self._server_s() - server_s, before[1] + wall_s)

    def take(self) -> dict[str, tuple[float, float]]:
        """What was spent, by part, since the last time."""
        spent = dict(self.spent)
        self.spent.clear()
        return spent

    def _server_s(self) -> float:
        """How long the server's process has been on a processor: it sleeps between two calls."""
        path = Path(f"/proc/{self.conn.info.backend_pid}/schedstat")
        return int(path.read_text("ascii").split()[0]) / 1e9


@contextmanager
def open_session(conninfo: str, *, is_prepared: bool, settings: tuple[str, ...] = ()) -> Iterator[Session]:
    """A session of a worker that is registered."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        for setting in settings:
            conn.execute(f"set {setting}".encode())
        session = Session(conn, is_prepared)
        conn.execute(ADD_WORKER, [session.worker, MAP, "benchmark"])
        yield session


def do_nothing(session: Session, size: int) -> None:
    """An empty statement for each task: what a transaction costs by itself."""
    with session.part("select"):
        for _ in range(size):
            session.conn.execute(NOTHING, prepare=session.is_prepared)


def run_map(session: Session, size: int) -> None:
    """One run of a root map of `size` elements: one start, one read, one claim, `size` completions."""
    with session.part("start"):
        session.call(START, MAP, Jsonb([{"n": n} for n in range(size)]))
    _work(session, MAP, size)


def run_singles(session: Session, size: int) -> None:
    """As many runs of a flow of one single step: a start each, one read, one claim, `size` completions."""
    with session.part("start"):
        for n in range(size):
            session.call(START, SINGLE, Jsonb({"n": n}))
    _work(session, SINGLE, size)


def _work(session: Session, flow: str, size: int) -> None:
    with session.part("read"):
        messages = session.call(READ, flow, READ_VT_S, size)
    with session.part("claim"):
        tasks = session.call(CLAIM, flow, [message[0] for message in messages], session.worker)
    if len(tasks) != size:
        raise AssertionError(f"{flow}: {len(tasks)} tasks were claimed, not {size}")
    with session.part("complete"):
        for run_id, step, index, *_ in tasks:
            session.call(COMPLETE, run_id, step, index, OUTPUT)


def floor_each(session: Session, size: int) -> None:
    """The floor of a map: one send_batch, one read, an archive for each id, as callbacks must."""
    with session.part("send"):
        session.call(SEND_ALL, FLOOR, _bodies(MAP, size))
    _archive_each(session, size)


def floor_all(session: Session, size: int) -> None:
    """The lowest floor: one send_batch, one read, one archive of all ids."""
    with session.part("send"):
        session.call(SEND_ALL, FLOOR, _bodies(MAP, size))
    with session.part("read"):
        messages = session.call(READ, FLOOR, READ_VT_S, size)
    with session.part("archive"):
        session.call(ARCHIVE_ALL, FLOOR, [message[0] for message in messages])


def floor_singles(session: Session, size: int) -> None:
    """The floor of single runs: a send for each, one read, an archive for each id."""
    bodies = _bodies(SINGLE, size)
    with session.part("send"):
        for body in bodies:
            session.call(SEND, FLOOR, body)
    _archive_each(session, size)


def _archive_each(session: Session, size: int) -> None:
    with session.part("read"):
        messages = session.call(READ, FLOOR, READ_VT_S, size)
    with session.part("archive"):
        for message in messages:
            session.call(ARCHIVE, FLOOR, message[0])


def _bodies(flow: str, size: int) -> list[Jsonb]:
    """The very bodies that pgflow would send."""
    run_id = str(uuid4())
    return [
        Jsonb({"flow_slug": flow, "run_id": run_id, "step_slug": STEP, "task_index": n}) for n in range(size)
    ]
