"""Callbacks, claims and recovery that need each other's task rows: one waits, none is a deadlock's victim."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.sql.pgflow.engine import (
    Step,
    add_worker,
    archived,
    claim,
    complete,
    define,
    fail,
    queued,
    start,
    statuses,
    tasks,
    wait_until_blocked,
)
from tests.sql.pgflow.watching import claimed, race

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.sql.pgflow.engine import Conn, Task

END_OPEN_TASKS: Final = "select pgflow._end_open_tasks(%s, %s, %s)"
NO_INDEX: Final = """
set local enable_indexscan = off;
set local enable_indexonlyscan = off;
set local enable_bitmapscan = off;
"""


def free(watcher: Conn, table: str, strength: str, where: str = "true") -> bool:
    """Whether nobody holds the row against a lock of this strength."""
    query = SQL("select 1 from pgflow.{} where {} for {} skip locked")
    parts = Identifier(table), SQL(where), SQL(strength)
    return watcher.execute(query.format(*parts)).fetchone() is not None


@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_a_failure_waits_for_an_open_claim_of_a_sibling_and_ends_it(database: str, mode: str) -> None:
    """Row 73, 81: the claim is undone for the worker, whose callback will find the task ended."""
    with race(database) as sessions:
        define(sessions.a, "f", Step("m", type="map", when_exhausted=mode), "o", max_attempts=1)
        run_id = start(sessions.a, "f", [0, 1])
        (culprit,) = claim(sessions.a, "f", ids=[tasks(sessions.a, run_id, "m")[1]["message_id"]])
        sessions.a.commit()
        (sibling,) = claim(sessions.a, "f", ids=[tasks(sessions.a, run_id, "m")[0]["message_id"]])
        pending = sessions.b_waits_for_a(lambda b: fail(b, culprit))
        sessions.a.commit()
        pending.result(timeout=10)
        sessions.b.commit()
        ended = "cancelled" if mode == "fail" else "skipped"
        assert [row["status"] for row in tasks(sessions.a, run_id, "m")] == [ended, "failed"]
        assert {sibling.msg_id, culprit.msg_id} <= set(archived(sessions.a, "f"))


def test_a_skip_that_fails_the_run_meets_a_claim_of_several_steps(database: str) -> None:
    """The failing call ends tasks of `m`, and by a child's condition those of `a`; the claim wants both.

    The call is held in between by a session that locks the message of one of the tasks.
    """
    with (
        ThreadPoolExecutor(1) as other_pool,
        race(database) as sessions,
        psycopg.connect(database) as holder,
    ):
        child = Step("c", ["m"], required={"m": []}, when_unmet="fail")
        define(sessions.a, "f", "a", Step("m", type="map", when_exhausted="skip"), child, max_attempts=1)
        run_id = start(sessions.a, "f", [0, 1])
        first, culprit, sibling = tasks(sessions.a, run_id)
        (task,) = claim(sessions.a, "f", ids=[culprit["message_id"]])
        sessions.a.commit()
        holder.execute("select from pgmq.q_f where msg_id = %s for update", [sibling["message_id"]])
        failing = other_pool.submit(fail, sessions.a, task)
        a, b, held = (one.info.backend_pid for one in (sessions.a, sessions.b, holder))
        wait_until_blocked(sessions.watcher, waiter=a, holder=held)
        claiming = sessions.pool.submit(
            claim, sessions.b, "f", ids=[first["message_id"], sibling["message_id"]]
        )
        wait_until_blocked(sessions.watcher, waiter=b, holder=a)
        holder.rollback()
        row = failing.result(timeout=10)
        sessions.a.commit()
        assert row is not None
        assert row["status"] == "failed"
        assert claiming.result(timeout=10) == []
        sessions.b.commit()
        assert [one["status"] for one in tasks(sessions.a, run_id)] == ["cancelled", "failed", "skipped"]
        assert (queued(sessions.a, "f"), archived(sessions.a, "f")) == ([], [1, 2, 3])


@pytest.mark.parametrize("call", [complete, fail])
def test_a_late_callback_on_a_failed_run_does_not_wait_for_its_row(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    with race(database) as sessions:
        define(sessions.a, "f", Step("m", type="map"), max_attempts=1)
        run_id = start(sessions.a, "f", [0, 1])
        work = claimed(sessions.a, "f")
        fail(sessions.a, work["m", 0])
        sessions.a.commit()
        sessions.a.execute("select from pgflow.runs where run_id = %s for update", [run_id])
        sessions.b.execute("set lock_timeout = '5 s'")
        row = call(sessions.b, work["m", 1])
        assert row is not None
        assert row["status"] == "cancelled"


def finish(conn: Conn, task: Task) -> dict[str, Any] | None:
    """Complete a task with an output that leaves its child's condition unmet."""
    return complete(conn, task, "unmet")


@pytest.mark.parametrize("call", [finish, fail])
def test_a_callback_that_fails_the_run_waits_for_an_open_claim_of_it(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    """The claim holds the run and `a`, which the callback goes on to end: so it waits for the run first."""
    with (
        ThreadPoolExecutor(1) as other_pool,
        race(database) as sessions,
        psycopg.connect(database) as holder,
    ):
        child = Step("c", ["z"], required={"z": 1}, when_unmet="fail")
        define(sessions.a, "f", "a", "b", "z", child, max_attempts=1)
        run_id = start(sessions.a, "f", {})
        sessions.a.commit()
        ids = {row["step_slug"]: row["message_id"] for row in tasks(sessions.a, run_id)}
        sessions.a.commit()
        task = claimed(sessions.a, "f", ids=[ids["z"]])["z", 0]
        sessions.a.commit()
        holder.execute("select from pgflow.step_tasks where step_slug = 'b' for update")
        a, b, held = (one.info.backend_pid for one in (sessions.a, sessions.b, holder))
        claiming = sessions.pool.submit(claim, sessions.b, "f", ids=list(ids.values()))
        wait_until_blocked(sessions.watcher, waiter=b, holder=held)
        ending = other_pool.submit(call, sessions.a, task)
        wait_until_blocked(sessions.watcher, waiter=a, holder=b)
        holder.rollback()
        assert {one.step_slug for one in claiming.result(timeout=10)} == {"a", "b"}
        sessions.b.commit()
        ending.result(timeout=10)
        sessions.a.commit()
        ended = "completed" if call is finish else "failed"
        assert [one["status"] for one in tasks(sessions.a, run_id)] == ["cancelled", "cancelled", ended]
        assert statuses(sessions.a, run_id)["c"] == ("failed" if call is finish else "created")
        assert (queued(sessions.a, "f"), archived(sessions.a, "f")) == ([], [1, 2, 3])


@pytest.mark.parametrize(("steps", "status"), [(None, "cancelled"), (["m"], "skipped")])
def test_open_tasks_are_ended_in_the_order_of_their_key(
    database: str, steps: list[str] | None, status: str
) -> None:
    """Their order in the table is another one; the plan is one that would go by that."""
    with race(database) as sessions:
        define(sessions.a, "f", Step("m", type="map"))
        run_id = start(sessions.a, "f", [0, 1, 2])
        sessions.a.execute("update pgflow.step_tasks set requeued_count = 1 where task_index = 0")
        sessions.a.commit()
        sessions.a.execute("select from pgflow.step_tasks where task_index = 0 for update")
        sessions.b.execute(NO_INDEX)
        pending = sessions.b_waits_for_a(lambda b: b.execute(END_OPEN_TASKS, [run_id, steps, status]))
        assert free(sessions.watcher, "step_tasks", "update", "task_index = 1")
        sessions.a.commit()
        pending.result(timeout=10)
        sessions.b.commit()
        assert [row["status"] for row in tasks(sessions.a, run_id)] == [status] * 3


def test_a_claim_holds_run_and_worker_before_tasks_no_stronger_than_it_has_to(database: str) -> None:
    with race(database) as sessions:
        define(sessions.a, "f", "a")
        start(sessions.a, "f")
        worker = add_worker(sessions.a)
        sessions.a.commit()
        sessions.a.execute("select from pgflow.step_tasks for update")
        pending = sessions.b_waits_for_a(lambda b: claim(b, "f", worker=worker))
        for table, held, left in (("runs", "share", "key share"), ("workers", "update", "no key update")):
            assert not free(sessions.watcher, table, held)
            assert free(sessions.watcher, table, left)
        sessions.a.commit()
        assert len(pending.result(timeout=10)) == 1


@pytest.mark.parametrize("call", [complete, fail])
def test_a_callback_holds_run_state_and_task(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    """Of a map that goes on: neither run nor state need to change."""
    with race(database) as sessions:
        define(sessions.a, "f", Step("m", type="map"))
        start(sessions.a, "f", [0, 1])
        work = claimed(sessions.a, "f")
        sessions.a.commit()
        call(sessions.a, work["m", 0])
        rows = {"runs": "true", "step_states": "true", "step_tasks": "task_index = 0"}
        assert [free(sessions.watcher, table, "key share", where) for table, where in rows.items()] == [
            False,
            False,
            False,
        ]
