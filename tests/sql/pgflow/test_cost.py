"""What a call costs does not grow with what is finished: rows read, scans made, functions called.

    PGFLOW_FINISHED_TASKS=1000000 python -m pytest -n0 -rP tests/sql/pgflow/test_cost.py

compares with a million finished tasks. The figures are printed.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg

from tests.sql.pgflow.engine import Step, Task, add_worker, claim, complete, define, fail, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    Conn = psycopg.Connection[Any]
    Cost = dict[tuple[str, str, str], int]

FEW: Final = 1_000
MANY: Final = int(os.environ.get("PGFLOW_FINISHED_TASKS", "100000"))
WAITING: Final = 5_000
"""Runs that wait with a queued task all the time: in no table is a scan the best way because it is small."""

ELEMENTS: Final = 10
TASKS_OF_A_RUN: Final = ELEMENTS + 2
CLAIMED: Final = 100
FIRST_ID: Final = 1_000_000_000
"""Ids of waiting messages start behind those of all finished ones."""

GROWING: Final = frozenset({"runs", "step_states", "step_tasks", "q_f"})
DEFINITIONS: Final = frozenset({"flows", "steps", "deps"})
"""As large at both times; before version 18, functions in SQL are planned anew at each call."""

FINISH: Final = """
with finished as materialized (
  select pg_catalog.gen_random_uuid() as run_id, n, now() - interval '1 day' as day
  from pg_catalog.generate_series(%(first)s::integer, %(last)s) as n
),
runs as (
  insert into pgflow.runs (run_id, flow_slug, status, input, output, started_at, completed_at)
  select run_id, 'f', 'completed', '{}', '{"z": 1}', day, day from finished
),
states as (
  insert into pgflow.step_states (
    flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, output, created_at, started_at,
    completed_at
  )
  select 'f', run_id, step_slug, 'completed', tasks, 0, '1', day, day, day
  from finished, (values ('a', 1), ('m', %(elements)s), ('z', 1)) as s (step_slug, tasks)
),
tasks as (
  insert into pgflow.step_tasks (
    flow_slug, run_id, step_slug, task_index, message_id, status, attempts_count, output, queued_at,
    started_at, completed_at
  )
  select 'f', run_id, s.step_slug, s.task_index, n * (%(elements)s + 2) + s.number, 'completed', 1, '1', day,
         day, day
  from finished, lateral (
    select 'a' as step_slug, 0 as task_index, 0 as number
    union all select 'z', 0, 1
    union all select 'm', i, i + 2 from pg_catalog.generate_series(0, %(elements)s::integer - 1) as i
  ) as s
  returning message_id, queued_at
)
insert into pgmq.a_f (msg_id, read_ct, enqueued_at, vt, message)
select message_id, 1, queued_at, queued_at, '{}' from tasks
"""
WAIT: Final = """
with waiting as materialized (
  select pg_catalog.gen_random_uuid() as run_id, n from pg_catalog.generate_series(1, %(count)s::integer) as n
),
runs as (
  insert into pgflow.runs (run_id, flow_slug, input, remaining_steps) select run_id, 'f', '{}', 3 from waiting
),
states as (
  insert into pgflow.step_states (
    flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, remaining_deps, started_at
  )
  select 'f', run_id, step_slug, status, tasks, tasks, deps, case when status = 'started' then now() end
  from waiting, (values ('a', 'started', 1, 0), ('m', 'created', null, 1), ('z', 'created', null, 1))
    as s (step_slug, status, tasks, deps)
),
tasks as (
  insert into pgflow.step_tasks (flow_slug, run_id, step_slug, message_id)
  select 'f', run_id, 'a', %(first_id)s + n from waiting
)
insert into pgmq.q_f (msg_id, read_ct, enqueued_at, vt, message) overriding system value
select %(first_id)s + n, 0, now(), now(), pg_catalog.jsonb_build_object(
  'flow_slug', 'f', 'run_id', run_id, 'step_slug', 'a', 'task_index', 0
)
from waiting
"""
NEXT_ID: Final = "select pg_catalog.setval('pgmq.q_f_msg_id_seq', %s)"
TABLES: Final = """
select s.relname, s.seq_scan, s.seq_tup_read, s.idx_scan, s.idx_tup_fetch, s.n_tup_ins, s.n_tup_upd,
       s.n_tup_del
from pg_catalog.pg_stat_xact_user_tables as s
where s.schemaname in ('pgflow', 'pgmq')
"""
QUEUED: Final = "select message_id from pgflow.step_tasks where run_id = %s and status = 'queued'"
AGE: Final = """
update pgflow.step_tasks
set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
where message_id = %s
"""
CHANCE: Final = ("claim 100", "runs", "look-ups")  # of an array: as many as the pages its random ids are on
COUNTERS: Final = ("scans", "rows scanned", "look-ups", "rows looked up", "inserted", "updated", "deleted")
FUNCTIONS: Final = (
    "select s.funcid::regprocedure::text, s.calls from pg_catalog.pg_stat_xact_user_functions as s"
)


def test_cost_does_not_grow_with_finished_tasks(database: str) -> None:
    with (
        psycopg.connect(database) as seed,
        psycopg.connect(database) as old,
        psycopg.connect(database) as new,
    ):
        define_flows(seed)
        finish(seed, 1, FEW)
        few = measure(old)
        finish(seed, FEW + 1, MANY, analyze=False)
        same_plans = measure(old)
        seed.execute("analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks")
        seed.commit()
        new_plans = measure(new)
    report(few, same_plans, new_plans)
    assert but_definitions(same_plans) == but_definitions(few)
    assert done(new_plans) == done(few)
    for found in (few, new_plans):
        assert [key for key in found if key[2] == "scans" and key[1] in GROWING] == []
    read, limit = rows_read(new_plans), {call: 2 * n for call, n in rows_read(few).items()}
    assert {call: n for call, n in read.items() if n > limit[call]} == {}


def define_flows(conn: Conn) -> None:
    """Three flows, and runs of the first that wait for a worker."""
    define(conn, "f", "a", Step("m", ["a"], "map"), Step("z", ["m"]), max_attempts=2)
    define(conn, "g", Step("a", when_exhausted="skip"), Step("z", ["a"]), max_attempts=1)
    define(conn, "h", Step("a", when_exhausted="skip-cascade"), Step("z", ["a"]), max_attempts=1)
    conn.execute("set session_replication_role = replica")  # no foreign keys: seeding takes a third
    conn.execute(WAIT, {"count": WAITING, "first_id": FIRST_ID})
    conn.execute(NEXT_ID, [2 * FIRST_ID])


def finish(conn: Conn, first: int, last: int, *, analyze: bool = True) -> None:
    """Bring the number of finished tasks to about `last`."""
    runs = {"first": first // TASKS_OF_A_RUN + 1, "last": last // TASKS_OF_A_RUN}
    conn.execute(FINISH, {**runs, "elements": ELEMENTS})
    if analyze:
        conn.execute("analyze")
    conn.commit()


def measure(conn: Conn) -> Cost:
    """The cost of each kind of call: by call, by table or function, by counter. Nothing is kept but plans.

    Plans are those that a worker has after some calls. Making them reads rows as well, so it is done before.
    """
    conn.execute("set plan_cache_mode = 'force_generic_plan'")
    conn.execute("set track_functions = 'all'")
    conn.commit()
    for _ in ("plan", "measure"):
        costs = Calls(conn).costs()
        conn.rollback()
    return {(call, *key): value for call, cost in costs.items() for key, value in cost.items()}


def but_definitions(found: Cost) -> Cost:
    """What it costs to read and write all that can grow, and which functions were called."""
    return {key: n for key, n in found.items() if key[1] not in DEFINITIONS and key != CHANCE}


def done(found: Cost) -> Cost:
    """What was written, and which functions were called, how often."""
    return {key: n for key, n in found.items() if key[2] in ("inserted", "updated", "deleted", "calls")}


def rows_read(found: Cost) -> Counter[str]:
    """Rows read by each kind of call, in whichever way."""
    counter: Counter[str] = Counter()
    for (call, _, what), n in found.items():
        counter[call] += n if what.startswith("rows ") else 0
    return counter


def report(*found: Cost) -> None:
    """Print the rows read by each kind of call."""
    for call in rows_read(found[0]):
        few, same_plans, new_plans = (rows_read(one)[call] for one in found)
        sys.stdout.write(
            f"{call:<34} {few:>5} rows read at {FEW:,} finished tasks, {same_plans:>5} at {MANY:,},"
            f" {new_plans:>5} there with new plans\n"
        )


class Calls:
    """Calls of each kind on one connection, with what each has cost."""

    def __init__(self, conn: Conn) -> None:
        self.conn = conn
        self.worker = add_worker(conn)
        self.found: dict[str, dict[tuple[str, str], int]] = {}

    def costs(self) -> dict[str, dict[tuple[str, str], int]]:
        """Make the calls."""
        self._complete_a_run()
        self._fail_tasks()
        ids = [FIRST_ID + 1000 + n for n in range(CLAIMED)]
        with self._watched(f"claim {CLAIMED}"):
            claimed = self._claim("f", ids)
        assert len(claimed) == CLAIMED
        with self._watched("recover none"):
            assert self._recover() == 0
        self.conn.execute(AGE, ids[:1])
        with self._watched("recover one"):
            assert self._recover() == 1
        return self.found

    def _complete_a_run(self) -> None:
        with self._watched("start"):
            run_id = start(self.conn, "f", {})
        ids = self._queued(run_id)
        with self._watched("claim 1"):
            (first,) = self._claim("f", ids)
        with self._watched("complete a step, start a map"):
            complete(self.conn, first, list(range(ELEMENTS)))
        ids = self._queued(run_id)
        with self._watched("claim a map"):
            elements = self._claim("f", ids)
        assert len(elements) == ELEMENTS
        with self._watched("complete one of a map"):
            complete(self.conn, elements[0], 1)
        for task in elements[1:-1]:
            complete(self.conn, task, 1)
        with self._watched("complete the last of a map"):
            complete(self.conn, elements[-1], 1)
        (last,) = self._claim("f", self._queued(run_id))
        with self._watched("complete a run"):
            complete(self.conn, last, 1)
        with self._watched("complete again"):
            complete(self.conn, last, 1)

    def _fail_tasks(self) -> None:
        run_id = start(self.conn, "f", {})
        (first,) = self._claim("f", self._queued(run_id))
        complete(self.conn, first, list(range(ELEMENTS)))
        task, *_ = self._claim("f", self._queued(run_id))
        with self._watched("fail, with an attempt left"):
            fail(self.conn, task)
        self._claim("f", [task.msg_id])
        with self._watched("fail a run"):
            fail(self.conn, task)
        for flow, call in (("g", "fail, skip the step"), ("h", "fail, skip what is behind, too")):
            (task,) = self._claim(flow, self._queued(start(self.conn, flow, {})))
            with self._watched(call):
                fail(self.conn, task)

    def _claim(self, flow: str, ids: list[int]) -> list[Task]:
        return claim(self.conn, flow, worker=self.worker, ids=ids)

    def _queued(self, run_id: UUID) -> list[int]:
        return [int(row[0]) for row in self.conn.execute(QUEUED, [run_id])]

    def _recover(self) -> int:
        row = self.conn.execute("select pgflow.requeue_stalled_tasks()").fetchone()
        assert row is not None
        return int(row[0])

    @contextmanager
    def _watched(self, call: str) -> Iterator[None]:
        before = self._counters()
        yield
        self.found[call] = dict(self._counters() - before)

    def _counters(self) -> Counter[tuple[str, str]]:
        counters: Counter[tuple[str, str]] = Counter()
        for table, *values in self.conn.execute(TABLES):
            counters.update({(table, what): n for what, n in zip(COUNTERS, values, strict=True) if n})
        counters.update({(name, "calls"): calls for name, calls in self.conn.execute(FUNCTIONS)})
        return counters
