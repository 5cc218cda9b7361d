"""Claims and completions of several sessions at once: who waits for whom, and what each then does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    LIMIT_S,
    Step,
    Task,
    add_worker,
    archived,
    claim,
    complete,
    define,
    events,
    fail,
    hidden_s,
    install_realtime,
    queued,
    read,
    run_of,
    start,
    states,
    statuses,
    tasks,
    wait_until_blocked,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer

    Conn = psycopg.Connection[Any]
    Sessions = tuple[Conn, Conn, Conn, ThreadPoolExecutor]

CLEAN: Final = """
truncate pgflow.flows, pgflow.workers cascade;
select pgmq.drop_queue('f');
drop schema if exists realtime cascade;
"""
LOCK_LIMIT: Final = f"-c lock_timeout={int(LIMIT_S)}s"
FAIL_RUN: Final = "update pgflow.runs set status = 'failed', failed_at = now()"


@pytest.fixture(scope="module")
def arena(server: DevServer, template: str) -> Iterator[str]:
    """Conninfo of the database of all tests here."""
    with server.clone(template) as conninfo:
        yield conninfo


@pytest.fixture
def database(arena: str) -> Iterator[str]:
    """That database, which is emptied after the test."""
    yield arena
    with psycopg.connect(arena, autocommit=True) as conn:
        conn.execute(CLEAN)


@contextmanager
def sessions(database: str) -> Iterator[Sessions]:
    """Two sessions A and B, one that watches in autocommit mode, and a thread for B.

    A ends first, so that B's statement, should a test fail, ends too.
    """
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(database, autocommit=True) as watcher,
        psycopg.connect(database, options=LOCK_LIMIT) as b,
        psycopg.connect(database) as a,
    ):
        yield a, b, watcher, pool


@contextmanager
def third(database: str) -> Iterator[tuple[Conn, ThreadPoolExecutor]]:
    """One more session and a thread for it."""
    with ThreadPoolExecutor(1) as pool, psycopg.connect(database, options=LOCK_LIMIT) as c:
        yield c, pool


def committed(conn: Conn, call: Callable[..., Any], *values: object, **options: object) -> Any:
    """Call and commit, or roll back, so that nothing is held while others are waited for."""
    with conn.transaction():
        return call(conn, *values, **options)


def waits(watcher: Conn, waiter: Conn, holder: Conn) -> None:
    """Return when one session waits for the other."""
    wait_until_blocked(watcher, waiter=waiter.info.backend_pid, holder=holder.info.backend_pid)


def free(watcher: Conn, table: str, where: str, *values: object) -> bool:
    """Whether nobody holds the row against an update."""
    query = f"select 1 from pgflow.{table} where {where} for no key update skip locked"
    return watcher.execute(query, values).fetchone() is not None


def one_claimed(conn: Conn) -> tuple[UUID, Task]:
    """A run of flow `f` with the started task `a`, of which a map wants an array."""
    define(conn, "f", "a", Step("m", ["a"], "map"))
    run_id = start(conn, "f")
    [task] = claim(conn, "f")
    return run_id, task


def row_states(conn: Conn, run_id: UUID) -> list[tuple[str, int]]:
    """Status and attempts of the run's tasks, by step and index."""
    return [(row["status"], row["attempts_count"]) for row in tasks(conn, run_id)]


def two_steps(conn: Conn) -> UUID:
    """A run of flow `f` with the queued tasks `a` and `b`, messages 1 and 2."""
    define(conn, "f", "a", "b")
    return start(conn, "f")


@pytest.mark.parametrize("a_commits", [True, False])
def test_of_two_claims_at_once_one_gets_the_tasks(database: str, a_commits: bool) -> None:
    with sessions(database) as (a, b, watcher, pool):
        run_id = two_steps(watcher)
        worker_a, worker_b = add_worker(watcher), add_worker(watcher)
        assert len(claim(a, "f", worker=worker_a, ids=[1, 2])) == 2
        pending = pool.submit(committed, b, claim, "f", worker=worker_b, ids=[2, 1])
        waits(watcher, b, a)
        a.execute("commit" if a_commits else "rollback")
        claimed = pending.result(LIMIT_S)
        assert len(claimed) == (0 if a_commits else 2)
        assert row_states(watcher, run_id) == [("started", 1)] * 2
        owner = worker_a if a_commits else worker_b
        assert {row["last_worker_id"] for row in tasks(watcher, run_id)} == {owner}


@pytest.mark.parametrize(("when_exhausted", "sibling"), [("fail", "cancelled"), ("skip", "skipped")])
def test_a_claim_waits_for_a_failure_and_then_gets_nothing(
    database: str, when_exhausted: str, sibling: str
) -> None:
    """Row 52, and the same with a skip."""
    with sessions(database) as (a, b, watcher, pool):
        define(watcher, "f", Step("m", type="map", max_attempts=1, when_exhausted=when_exhausted))
        run_id = start(watcher, "f", ["x", "y"])
        [task] = claim(watcher, "f", ids=[1])
        worker = add_worker(watcher)
        fail(a, task)
        pending = pool.submit(committed, b, claim, "f", worker=worker, ids=[2])
        waits(watcher, b, a)
        a.commit()
        assert pending.result(LIMIT_S) == []
        assert row_states(watcher, run_id) == [("failed", 1), (sibling, 0)]
        assert (queued(watcher, "f"), archived(watcher, "f")) == ([], [1, 2])


def test_a_claim_locks_tasks_by_key_whatever_the_order_of_ids(database: str) -> None:
    """By run, step and index, though the messages came, and the rows lie, in another order."""
    low, high = UUID(int=1), UUID(int=2)
    with sessions(database) as (a, b, watcher, pool):
        define(watcher, "f", Step("z", type="map"), Step("b", ["z"]), Step("a", ["b"]))
        for run_id in (high, low):
            start(watcher, "f", ["x", "y"], run_id=run_id)
        worker = add_worker(watcher)
        [first] = claim(watcher, "f", worker=worker, ids=[3])
        fail(watcher, first)
        a.execute("select from pgflow.step_tasks where run_id = %s and task_index = 1 for update", [low])
        pending = pool.submit(committed, b, claim, "f", worker=worker, ids=[1, 2, 4, 3])
        waits(watcher, b, a)
        key = "run_id = %s and task_index = %s"
        rows = [(run_id, index) for run_id in (low, high) for index in (0, 1)]
        held = [not free(watcher, "step_tasks", key, *row) for row in rows]
        a.rollback()
        assert len(pending.result(LIMIT_S)) == 4
        assert held == [True, True, False, False]


def test_claims_in_opposite_orders_do_not_deadlock(database: str) -> None:
    """A holds a middle row back: the first claim waits for it, the second for the first."""
    with sessions(database) as (a, b, watcher, pool), third(database) as (c, other):
        define(watcher, "f", Step("m", type="map"))
        run_id = start(watcher, "f", ["x", "y", "z"])
        workers = [add_worker(watcher), add_worker(watcher)]
        a.execute("select from pgflow.step_tasks where task_index = 1 for update")
        first = pool.submit(committed, b, claim, "f", worker=workers[0], ids=[1, 2, 3])
        waits(watcher, b, a)
        second = other.submit(committed, c, claim, "f", worker=workers[1], ids=[3, 2, 1])
        waits(watcher, c, b)
        a.rollback()
        assert (len(first.result(LIMIT_S)), second.result(LIMIT_S)) == (3, [])
        assert row_states(watcher, run_id) == [("started", 1)] * 3


def test_a_claim_locks_runs_and_tasks_then_messages_and_lets_steps_change(database: str) -> None:
    with sessions(database) as (a, b, watcher, pool):
        run_id = two_steps(watcher)
        worker = add_worker(watcher)
        assert read(a, "f") == [1, 2]
        pending = pool.submit(committed, b, claim, "f", worker=worker, ids=[1, 2])
        waits(watcher, b, a)
        tables = ("step_tasks", "runs", "step_states")
        assert [free(watcher, table, "true") for table in tables] == [False, False, True]
        a.commit()
        assert len(pending.result(LIMIT_S)) == 2
        assert row_states(watcher, run_id) == [("started", 1)] * 2
        assert hidden_s(watcher, "f", 1) > 50


def test_a_transaction_older_than_the_run_can_claim_and_complete_it(database: str) -> None:
    """Times that a check orders never run backwards, though `now()` does."""
    with psycopg.connect(database) as old, psycopg.connect(database, autocommit=True) as young:
        define(young, "f", "a", Step("m", ["a"], "map"))
        worker = add_worker(young)
        old.execute("select now()")
        run_id = start(young, "f", 1)
        for _ in range(2):
            for task in claim(old, "f", worker=worker):
                complete(old, task, ["x"])
        old.commit()
        run = run_of(young, run_id)
        assert (run["status"], run["output"]) == ("completed", {"m": [["x"]]})
        assert run["completed_at"] >= run["started_at"]
        for row in tasks(young, run_id):
            assert row["queued_at"] <= row["started_at"] <= row["completed_at"]


def test_two_starts_with_one_run_id_make_one_run(database: str) -> None:
    with sessions(database) as (a, b, watcher, pool):
        define(watcher, "f", "a")
        given = uuid4()
        start(a, "f", 1, run_id=given)
        pending = pool.submit(start, b, "f", 2, run_id=given)
        waits(watcher, b, a)
        a.commit()
        with pytest.raises(psycopg.errors.UniqueViolation, match="runs_pkey"):
            pending.result(LIMIT_S)
        b.rollback()
        assert (run_of(watcher, given)["input"], queued(watcher, "f")) == (1, [1])


def test_the_last_two_tasks_of_a_map_can_end_at_once(database: str) -> None:
    """Row 62."""
    with sessions(database) as (a, b, watcher, pool):
        install_realtime(watcher)
        define(watcher, "f", Step("m", type="map"), Step("n", ["m"], "map"), Step("s", ["m"]))
        run_id = start(watcher, "f", [0, 1, 2])
        first, second, last = claim(watcher, "f")
        complete(watcher, first, "x")
        complete(a, last, "z")
        pending = pool.submit(committed, b, complete, second, "y")
        waits(watcher, b, a)
        a.commit()
        pending.result(LIMIT_S)
        after = states(watcher, run_id)
        assert (after["m"]["status"], after["m"]["remaining_tasks"]) == ("completed", 0)
        assert after["m"]["output"] == ["x", "y", "z"]
        assert (after["n"]["status"], after["n"]["initial_tasks"]) == ("started", 3)
        assert after["s"]["status"] == "started"
        assert run_of(watcher, run_id)["remaining_steps"] == 2
        sent = [event["event"] for event in events(watcher, run_id)]
        assert sorted(sent[2:]) == ["step:m:completed", "step:n:started", "step:s:started"]
        assert (archived(watcher, "f"), len(queued(watcher, "f"))) == ([1, 2, 3], 4)


def test_two_parents_that_end_at_once_start_their_child_once(database: str) -> None:
    """Row 63."""
    with sessions(database) as (a, b, watcher, pool):
        define(watcher, "f", "a", "b", Step("c", ["a", "b"]))
        run_id = start(watcher, "f")
        first, second = claim(watcher, "f")
        complete(a, first, 1)
        pending = pool.submit(committed, b, complete, second, 2)
        waits(watcher, b, a)
        a.commit()
        pending.result(LIMIT_S)
        assert statuses(watcher, run_id)["c"] == "started"
        assert [task.input for task in claim(watcher, "f")] == [{"a": 1, "b": 2}]
        assert run_of(watcher, run_id)["remaining_steps"] == 1


def test_of_two_completions_of_a_task_the_first_counts(database: str) -> None:
    with sessions(database) as (a, b, watcher, pool):
        define(watcher, "f", Step("m", type="map"))
        run_id = start(watcher, "f", [0, 1])
        task, _ = claim(watcher, "f")
        row = complete(a, task, "first")
        pending = pool.submit(committed, b, complete, task, "second")
        waits(watcher, b, a)
        a.commit()
        late = pending.result(LIMIT_S)
        assert late == row == tasks(watcher, run_id)[0]
        assert states(watcher, run_id)["m"]["remaining_tasks"] == 1


def test_a_completion_does_not_wait_for_a_run_that_has_failed(database: str) -> None:
    """The first guard reads without a lock."""
    with sessions(database) as (a, b, watcher, _):
        run_id, task = one_claimed(watcher)
        watcher.execute(FAIL_RUN)
        a.execute("select from pgflow.runs for update")
        a.execute("select from pgflow.step_states for update")
        row = committed(b, complete, task, [])
        assert [row] == tasks(watcher, run_id)
        assert (row_states(watcher, run_id), archived(watcher, "f")) == ([("started", 1)], [])


@pytest.mark.parametrize(
    ("held", "locked"),
    [("runs", []), ("step_states", ["runs"]), ("step_tasks", ["runs", "step_states"])],
)
def test_a_completion_locks_run_then_step_then_task(database: str, held: str, locked: list[str]) -> None:
    """The second guard."""
    with sessions(database) as (a, b, watcher, pool):
        run_id, task = one_claimed(watcher)
        a.execute(f"select from pgflow.{held} for update")
        pending = pool.submit(committed, b, complete, task, [])
        waits(watcher, b, a)
        rows = {"runs": "true", "step_states": "step_slug = 'a'", "step_tasks": "true"}
        taken = [table for table in rows if table != held and not free(watcher, table, rows[table])]
        a.rollback()
        pending.result(LIMIT_S)
        assert taken == locked
        assert run_of(watcher, run_id)["status"] == "completed"


@pytest.mark.parametrize("output", [[], "not an array"])
def test_a_completion_that_waited_for_a_failure_archives_its_message_only(
    database: str, output: object
) -> None:
    """The third guard."""
    with sessions(database) as (a, b, watcher, pool):
        run_id, task = one_claimed(watcher)
        before = tasks(watcher, run_id), states(watcher, run_id)
        a.execute(FAIL_RUN)
        pending = pool.submit(committed, b, complete, task, output)
        waits(watcher, b, a)
        a.commit()
        row = pending.result(LIMIT_S)
        assert (tasks(watcher, run_id), states(watcher, run_id)) == before
        assert [row] == tasks(watcher, run_id)
        assert (queued(watcher, "f"), archived(watcher, "f")) == ([], [task.msg_id])


@pytest.mark.parametrize(("when_exhausted", "sibling"), [("fail", "cancelled"), ("skip", "skipped")])
def test_a_completion_that_waited_for_the_end_of_its_step_changes_nothing(
    database: str, when_exhausted: str, sibling: str
) -> None:
    """The third and the fourth guard, as `fail_task` of a sibling brings them about."""
    with sessions(database) as (a, b, watcher, pool):
        define(watcher, "f", "w", Step("m", type="map", max_attempts=1, when_exhausted=when_exhausted))
        run_id = start(watcher, "f", ["x", "y"])
        first, second, _ = claim(watcher, "f")
        fail(a, first)
        pending = pool.submit(committed, b, complete, second, "late")
        waits(watcher, b, a)
        a.commit()
        row = pending.result(LIMIT_S)
        assert [row] == tasks(watcher, run_id, "m")[1:]
        assert row is not None
        assert (row["status"], row["output"], row["completed_at"]) == (sibling, None, None)
        assert run_of(watcher, run_id)["remaining_steps"] == (2 if when_exhausted == "fail" else 1)


@pytest.mark.parametrize(
    ("call", "child"),
    [
        (fail, Step("t", ["s"])),
        (complete, Step("t", ["s"], "map")),
        (complete, Step("t", ["s"], required={"s": 1}, when_unmet="fail")),
    ],
    ids=["exhausted", "type violation", "condition below"],
)
def test_a_callback_that_fails_the_run_and_a_waiting_claim_do_not_deadlock(
    database: str, call: Callable[..., dict[str, Any] | None], child: Step
) -> None:
    """The claim holds the run, and siblings of what the callback ends."""
    with sessions(database) as (a, b, watcher, pool), third(database) as (c, other):
        define(watcher, "f", Step("b", type="map"), Step("s", max_attempts=1), child)
        run_id = start(watcher, "f", ["x", "y"])
        [ended] = tasks(watcher, run_id, "s")
        worker = add_worker(watcher)
        [task] = claim(watcher, "f", worker=worker, ids=[ended["message_id"]])
        a.execute("select from pgflow.step_tasks where step_slug = 'b' and task_index = 0 for update")
        pending = pool.submit(committed, b, claim, "f", worker=worker, ids=[1, 2, 3])
        waits(watcher, b, a)
        ending = other.submit(committed, c, call, task, "no array")
        waits(watcher, c, b)
        a.rollback()
        claimed, row = pending.result(LIMIT_S), ending.result(LIMIT_S)
        assert row is not None
        assert run_of(watcher, run_id)["status"] == "failed"
        assert [task.step_slug for task in claimed] == ["b", "b"]
        assert [status for status, _ in row_states(watcher, run_id)][:2] == ["cancelled"] * 2
        assert queued(watcher, "f") == []
