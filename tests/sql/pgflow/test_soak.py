"""Everything against everything else for a while: no deadlock, no unexpected error, no broken invariant.

`PGFLOW_SOAK_S` is for how long, on each server.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import scalar_row
from psycopg.types.json import Jsonb

from .engine import (
    Step,
    Task,
    add_worker,
    claim,
    complete,
    define,
    fail,
    queued,
    read,
    start,
    statuses,
    wait_until_blocked,
)
from .invariants import broken

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    Conn = psycopg.Connection[Any]

LOG: Final = logging.getLogger(__name__)
DURATION_S: Final = float(os.environ.get("PGFLOW_SOAK_S", "3"))
PRUNE: Final = Path(__file__).parents[3] / "examples/pgflow/prune_data_older_than.sql"
RETENTION: Final = "300 milliseconds"
MOST_RUNS: Final = 60
BATCH: Final = 8
PAUSE_S: Final = 0.02
END_S: Final = 60.0
CHURN: Final = "churn"
FLOWS: Final[dict[str, tuple[Step, ...]]] = {
    "line": (
        Step("a", max_attempts=2),
        Step("m", ["a"], type="map", max_attempts=1),
        Step("c", ["a", "m"], when_exhausted="skip-cascade"),
    ),
    "Spread": (
        Step("m", type="map", max_attempts=2, when_exhausted="skip"),
        Step("n", ["m"], type="map", max_attempts=1, when_exhausted="skip-cascade"),
        Step("i", ["m"], required={"m": [1]}, max_attempts=1),
        Step("j", ["n", "i"], forbidden={"i": 0}, when_unmet="skip-cascade"),
        Step("k", ["j"]),
    ),
}
SHAPES: Final = tuple(
    {
        "steps": [
            {"slug": slug, "stepType": kind, "dependencies": deps}
            for slug, kind, deps in (("a", "single", []), ("b", last, ["a"]))
        ]
    }
    for last in ("single", "map")
)
SESSION: Final = "set deadlock_timeout = '20ms'; set lock_timeout = '30s'; set pgflow.environment = 'local'"
COMPILE: Final = "select pgflow.ensure_flow_compiled(%s, %s)"
LIVE_RUNS: Final = "select count(*) from pgflow.runs where status = 'started'"
AGE: Final = """
update pgflow.step_tasks as t
set queued_at = t.queued_at - interval '1 hour', started_at = t.started_at - interval '1 hour'
from (
  select run_id, step_slug, task_index
  from pgflow.step_tasks
  where status = 'started' and started_at > now() - interval '1 hour'
  order by random() limit 3
  for update skip locked
) as k
where t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
"""
OPEN: Final = """
select t.flow_slug, t.run_id, t.step_slug, t.task_index, t.status, t.message_id from pgflow.step_tasks as t
where t.status in ('queued', 'started') order by t.run_id, t.step_slug, t.task_index
"""
# Flows, workers and queues go while others use them: what that may answer.
WORKER_GONE: Final = "step_tasks_last_worker_id_fkey"
FLOW_GONE: Final = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.ForeignKeyViolation,
)


@dataclass
class Soak:
    """What all threads share."""

    conninfo: str
    seed: int
    end: float = field(default_factory=lambda: monotonic() + DURATION_S)
    stop: Event = field(default_factory=Event)
    counts: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def is_over(self) -> bool:
        """Whether the time is up, or a thread has failed."""
        return monotonic() > self.end or self.stop.is_set()

    def count(self, what: str, number: int = 1) -> None:
        """Note that something happened."""
        with self.lock:
            self.counts[what] += number

    def repeat(self, number: int, act: Callable[[Soak, Conn, Random], None]) -> None:
        """Act on a connection of one's own until the time is up."""
        random = Random(self.seed + number)
        try:
            with psycopg.connect(self.conninfo, autocommit=True) as conn:
                conn.execute(SESSION)
                while not self.is_over():
                    act(self, conn, random)
        finally:
            if monotonic() < self.end:
                self.stop.set()


def start_runs(soak: Soak, conn: Conn, random: Random) -> None:
    """Start a run of any flow, unless there are many."""
    if _value(conn, LIVE_RUNS) >= MOST_RUNS:
        soak.stop.wait(PAUSE_S)
        return
    flow = random.choice([*FLOWS, CHURN])
    try:
        start(conn, flow, random.choice([[], [1], [1, 2, 3], list(range(6))]))
    except FLOW_GONE:
        if flow != CHURN:
            raise
        soak.count("starts without a flow")
    else:
        soak.count("starts")


def work(soak: Soak, conn: Conn, random: Random) -> None:
    """Poll a flow's queue as a new worker, claim, and call back for most: in time, twice or not at all."""
    flow = random.choice([*FLOWS, CHURN])
    worker = add_worker(conn, flow)
    for _ in range(5):
        try:
            ids = read(conn, flow, qty=BATCH, vt_s=random.choice([0, 0, 5]))
            claimed = claim(conn, flow, worker=worker, ids=ids)
        except (*FLOW_GONE, psycopg.errors.InvalidTextRepresentation) as error:
            if flow != CHURN and error.diag.constraint_name != WORKER_GONE:
                raise
            soak.count(f"claims refused ({error.sqlstate})")
            return
        soak.count("claims", len(claimed))
        for task in random.sample(claimed, len(claimed)):
            call_back(soak, conn, random, task)


def call_back(soak: Soak, conn: Conn, random: Random, task: Task) -> None:
    """Tell what became of a task, or forget it."""
    chance = random.random()
    if chance < 0.08:
        soak.count("forgotten")
        return
    for _ in range(2 if chance > 0.9 else 1):
        if random.random() < 0.25:
            fail(conn, task)
            soak.count("fails")
        else:
            complete(conn, task, random.choice([[], [1], [0, None], [1, 2, 3], [1], 0]))
            soak.count("completes")


def recover(soak: Soak, conn: Conn, _random: Random) -> None:
    """Let time pass for some started tasks, then recover."""
    conn.execute(AGE)
    soak.count("recovered", _value(conn, "select pgflow.requeue_stalled_tasks()"))
    soak.stop.wait(PAUSE_S)


def recompile(soak: Soak, conn: Conn, random: Random) -> None:
    """Delete a flow with its data and queue, and make it anew with another shape."""
    answer = _value(conn, COMPILE, CHURN, Jsonb(random.choice(SHAPES)))
    soak.count(str(answer["status"]))
    soak.stop.wait(PAUSE_S)


def prune(soak: Soak, conn: Conn, _random: Random) -> None:
    """Prune what is older than a moment."""
    conn.execute("select pgflow.prune_data_older_than(%s)", [RETENTION])
    soak.count("prunes")
    soak.stop.wait(PAUSE_S)


# Two roots' tasks, of which the second one's callback ends the first.
ENDINGS: Final[dict[str, list[Step]]] = {
    "run": [Step("a", type="map", max_attempts=1)],
    "step": [Step("a", type="map", max_attempts=1, when_exhausted="skip")],
    "type": [Step("a"), Step("b"), Step("c", ["b"], type="map")],
    "condition": [Step("a"), Step("b"), Step("c", ["b"], forbidden={}, when_unmet="fail")],
}
WAITING: Final = "select cardinality(pg_blocking_pids(%s)) > 0"
THREADS: Final = (start_runs, start_runs, work, work, work, recover, recompile, prune)


def test_everything_at_once_deadlocks_nowhere_and_breaks_nothing(database: str) -> None:
    """Then a patient worker brings every run to an end."""
    soak = Soak(database, seed=uuid4().int)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(PRUNE.read_bytes())
        for flow, steps in FLOWS.items():
            define(conn, flow, *steps, base_delay=0)
        conn.execute(COMPILE, [CHURN, Jsonb(SHAPES[0])])

        soak.end = monotonic() + DURATION_S
        with ThreadPoolExecutor(len(THREADS)) as pool:
            running = [pool.submit(soak.repeat, number, act) for number, act in enumerate(THREADS)]
        for one in running:
            one.result()

        soak.counts["deadlocks"] = _value(
            conn, "select deadlocks from pg_stat_database where datname = current_database()"
        )
        conn.execute("analyze")
        LOG.info("seed %s: %s", soak.seed, dict(sorted(soak.counts.items())))
        assert broken(conn, archives_kept=False) == []
        finish(conn)
        assert broken(conn, archives_kept=False) == []
    assert soak.counts["deadlocks"] == 0
    done = ("starts", "claims", "completes", "fails", "recovered", "recompiled", "prunes")
    assert {what for what in done if not soak.counts[what]} == set()


def test_a_start_that_waited_for_a_recompilation_is_waited_for_by_the_next(database: str) -> None:
    """Row 137: the flow's row that it waited for is gone, and it has to hold the new one."""
    with (
        psycopg.connect(database, autocommit=True) as watcher,
        psycopg.connect(database) as first,
        psycopg.connect(database) as starter,
        psycopg.connect(database) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        watcher.execute(SESSION)
        watcher.execute(COMPILE, [CHURN, Jsonb(SHAPES[0])])
        first.execute(SESSION)
        second.execute(SESSION)
        first.execute(COMPILE, [CHURN, Jsonb(SHAPES[1])])
        waiting = pool.submit(start, starter, CHURN, {})
        wait_until_blocked(watcher, waiter=starter.info.backend_pid, holder=first.info.backend_pid)
        first.commit()
        run_id = waiting.result(timeout=30)
        deleting = pool.submit(second.execute, COMPILE, [CHURN, Jsonb(SHAPES[0])])
        wait_until_blocked(watcher, waiter=second.info.backend_pid, holder=starter.info.backend_pid)
        assert set(statuses(starter, run_id)) == {"a", "b"}
        starter.commit()
        answer = deleting.result(timeout=30).fetchone()
        assert answer is not None
        assert answer[0]["status"] == "recompiled"
        second.commit()
        assert _value(watcher, LIVE_RUNS) == 0
        assert broken(watcher) == []


@pytest.mark.parametrize("ends", ENDINGS)
def test_claims_and_a_callback_that_ends_siblings_take_turns(database: str, ends: str) -> None:
    """A claim that waited for a task would keep the rows it has, and meet a callback that waits for those."""
    with (
        psycopg.connect(database, autocommit=True) as watcher,
        psycopg.connect(database) as holder,
        psycopg.connect(database) as claimer,
        psycopg.connect(database) as failing,
        ThreadPoolExecutor(2) as pool,
    ):
        define(watcher, "f", *ENDINGS[ends])
        start(watcher, "f", [1, 2])
        worker = add_worker(watcher, "f")
        first, last = queued(watcher, "f")
        (task,) = claim(watcher, "f", worker=worker, ids=[last])
        assert len(claim(holder, "f", worker=worker, ids=[first])) == 1
        claiming = pool.submit(_claim_and_commit, claimer, worker, [first, last])
        assert _waits(watcher, claiming, claimer)
        called = pool.submit(_call_and_commit, failing, task, ends)
        assert _waits(watcher, called, failing)
        holder.commit()
        called.result(timeout=30)
        claiming.result(timeout=30)
        assert broken(watcher) == []


def _claim_and_commit(conn: Conn, worker: UUID, ids: list[int]) -> list[Task]:
    claimed = claim(conn, "f", worker=worker, ids=ids)
    conn.commit()
    return claimed


def _call_and_commit(conn: Conn, task: Task, ends: str) -> None:
    if ends in ("type", "condition"):
        complete(conn, task, {"a": 1})
    else:
        fail(conn, task)
    conn.commit()


def _waits(watcher: Conn, pending: Future[Any], conn: Conn) -> bool:
    """Whether a call on a connection comes to wait for another session; else it ends."""
    end = monotonic() + END_S
    while monotonic() < end and not pending.done():
        if _value(watcher, WAITING, conn.info.backend_pid):
            return True
    assert pending.done(), "the call neither waits nor ends"
    return False


def finish(conn: Conn) -> None:
    """Claim and complete until no run is left."""
    end = monotonic() + END_S
    for worker in cycle([add_worker(conn)]):
        if _value(conn, LIVE_RUNS) == 0:
            return
        assert monotonic() < end, "runs do not end"
        for flow, run_id, step, index, status, message_id in conn.execute(OPEN).fetchall():
            if status == "queued":
                claim(conn, flow, worker=worker, ids=[message_id])
            complete(conn, (run_id, step, index), [1])


def _value(conn: Conn, query: str, *values: object) -> Any:
    cursor = conn.cursor(row_factory=scalar_row)
    return cursor.execute(query.encode(), values or None).fetchone()
