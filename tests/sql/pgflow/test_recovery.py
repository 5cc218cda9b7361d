"""`requeue_stalled_tasks`: which tasks are stalled, what a pass does with them, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    Step,
    archived,
    claim,
    complete,
    define,
    fail,
    hidden_s,
    install_realtime,
    queued,
    run_of,
    start,
    statuses,
    tasks,
)
from tests.sql.pgflow.watching import claimed, happened, picture, race

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tests.sql.pgflow.engine import Conn, Task

STALL: Final = """
update pgflow.step_tasks
set queued_at = now() - %(ago)s::interval, started_at = now() - %(ago)s::interval
where status = 'started' and run_id = coalesce(%(run_id)s, run_id)
  and step_slug = coalesce(%(step)s, step_slug) and task_index = coalesce(%(index)s, task_index)
"""
CALLS: Final[dict[str, Callable[[Conn, Task], dict[str, Any] | None]]] = {
    "complete": lambda conn, task: complete(conn, task, "late"),
    "fail": lambda conn, task: fail(conn, task, "late"),
}

both_callbacks = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def requeue(conn: Conn) -> int:
    """One pass: how many tasks it requeued."""
    row = conn.execute("select pgflow.requeue_stalled_tasks()").fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def stall(
    conn: Conn,
    ago: str = "1 hour",
    *,
    run_id: UUID | None = None,
    step: str | None = None,
    index: int | None = None,
) -> None:
    """Let started tasks have started some time ago."""
    conn.execute(STALL, {"ago": ago, "run_id": run_id, "step": step, "index": index})


def exhaust(conn: Conn, run_id: UUID, index: int = 0) -> None:
    """Let a stalled task have been requeued as often as is allowed."""
    stall(conn, run_id=run_id, index=index)
    conn.execute(
        "update pgflow.step_tasks set requeued_count = 3 where run_id = %s and task_index = %s",
        [run_id, index],
    )


@pytest.mark.parametrize(
    ("ago", "stalled"),
    [("34 s", 0), ("35 s", 0), ("35.000001 s", 1), ("36 s", 1)],
)
def test_a_task_is_stalled_half_a_minute_after_its_timeout(conn: Conn, ago: str, stalled: int) -> None:
    """Row 92; exactly at the deadline it is not."""
    define(conn, "f", "a", timeout=5)
    start(conn, "f", {})
    claim(conn, "f")
    stall(conn, ago)
    before = picture(conn, "f")
    assert requeue(conn) == stalled
    assert (picture(conn, "f") == before) is (not stalled)


def test_a_stalled_task_is_queued_again_and_visible_at_once(conn: Conn) -> None:
    """Row 92."""
    install_realtime(conn)
    define(conn, "f", "a", timeout=5)
    run_id = start(conn, "f", {})
    (task,) = claim(conn, "f")
    stall(conn)
    before, (row,) = happened(conn, run_id), tasks(conn, run_id)
    assert hidden_s(conn, "f", task.msg_id) > 0
    assert requeue(conn) == 1
    (after,) = tasks(conn, run_id)
    changed = {"status": "queued", "started_at": None, "last_worker_id": None, "requeued_count": 1}
    assert after["last_requeued_at"] is not None
    assert after == {**row, **changed, "last_requeued_at": after["last_requeued_at"]}
    assert hidden_s(conn, "f", task.msg_id) <= 0
    assert happened(conn, run_id) == before
    assert requeue(conn) == 0
    (again,) = claim(conn, "f")
    assert again == task
    assert (tasks(conn, run_id)[0]["attempts_count"], tasks(conn, run_id)[0]["requeued_count"]) == (2, 1)
    complete(conn, again, 1)
    assert run_of(conn, run_id)["status"] == "completed"


@pytest.mark.parametrize(("step", "flow", "stalled"), [(5, 60, 1), (60, 5, 0), (None, 5, 1), (None, 60, 0)])
def test_a_step_s_own_timeout_counts_before_the_flow_s(
    conn: Conn, step: int | None, flow: int, stalled: int
) -> None:
    """Row 94."""
    define(conn, "f", Step("a", timeout=step), timeout=flow)
    start(conn, "f", {})
    claim(conn, "f")
    stall(conn, "36 s")
    assert requeue(conn) == stalled


def test_after_three_requeues_a_task_is_stalled_for_good(conn: Conn) -> None:
    """Row 93; alone in its pass, its message hidden when the pass comes."""
    install_realtime(conn)
    define(conn, "f", "a", timeout=600)
    run_id = start(conn, "f", {})
    for count in (1, 2, 3):
        claim(conn, "f")
        stall(conn)
        assert requeue(conn) == 1
        assert tasks(conn, run_id)[0]["requeued_count"] == count
    (task,) = claim(conn, "f")
    stall(conn)
    (row,) = tasks(conn, run_id)
    before = happened(conn, run_id)
    assert hidden_s(conn, "f", task.msg_id) > 500
    assert requeue(conn) == 0
    (after,) = tasks(conn, run_id)
    assert after["permanently_stalled_at"] is not None
    assert {**row, "permanently_stalled_at": after["permanently_stalled_at"]} == after
    assert (after["status"], after["attempts_count"], after["requeued_count"]) == ("started", 4, 3)
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [task.msg_id])
    assert (run_of(conn, run_id)["status"], statuses(conn, run_id)) == ("started", {"a": "started"})
    assert happened(conn, run_id) == before
    final = picture(conn, "f")
    assert requeue(conn) == 0
    assert picture(conn, "f") == final


def test_a_pass_counts_the_requeued_only_and_archives_the_exhausted(conn: Conn) -> None:
    """Row 93; exhausted and requeued ones together, with a young one that stays."""
    define(conn, "f", Step("m", type="map"))
    run_id = start(conn, "f", [0, 1, 2, 3])
    work = claimed(conn, "f")
    for index in (0, 1):
        exhaust(conn, run_id, index)
    stall(conn, run_id=run_id, index=2)
    assert requeue(conn) == 1
    assert [row["status"] for row in tasks(conn, run_id)] == ["started", "started", "queued", "started"]
    stalled = [row["permanently_stalled_at"] is not None for row in tasks(conn, run_id)]
    assert stalled == [True, True, False, False]
    assert archived(conn, "f") == [work["m", 0].msg_id, work["m", 1].msg_id]
    assert queued(conn, "f") == [work["m", 2].msg_id, work["m", 3].msg_id]


def test_a_task_that_was_given_up_is_left_alone_by_later_passes(database: str) -> None:
    """Row 93; passes in transactions of their own, so that another time would show."""
    with psycopg.connect(database, autocommit=True) as conn:
        define(conn, "f", "a")
        run_id = start(conn, "f")
        claim(conn, "f")
        exhaust(conn, run_id)
        assert requeue(conn) == 0
        before = picture(conn, "f")
        assert requeue(conn) == 0
        assert picture(conn, "f") == before


def test_tasks_without_a_message_are_requeued_and_stalled_like_others(conn: Conn) -> None:
    define(conn, "f", Step("m", type="map"))
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f")
    conn.execute("update pgflow.step_tasks set message_id = null where task_index < 2")
    exhaust(conn, run_id, 0)
    stall(conn, index=1)
    assert requeue(conn) == 1
    assert [row["status"] for row in tasks(conn, run_id)] == ["started", "queued", "started"]
    assert tasks(conn, run_id)[0]["permanently_stalled_at"] is not None
    assert archived(conn, "f") == []
    stall(conn, index=2)
    assert requeue(conn) == 1
    assert hidden_s(conn, "f", work["m", 2].msg_id) <= 0


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize(
    "change",
    [
        "update pgflow.runs set status = 'failed', failed_at = now()",
        "update pgflow.runs set status = 'completed', completed_at = now()",
        "update pgflow.step_states set status = 'skipped', skip_reason = 'handler_failed',"
        " skipped_at = now(), remaining_tasks = null",
        "update pgflow.step_states set status = 'failed', failed_at = now()",
        "update pgflow.step_states set status = 'completed', remaining_tasks = 0, completed_at = now()",
    ],
    ids=["run failed", "run completed", "step skipped", "step failed", "step completed"],
)
def test_started_rows_of_ended_runs_and_steps_are_left_alone(conn: Conn, change: str, count: int) -> None:
    """Row 95."""
    define(conn, "f", "a")
    start(conn, "f", {})
    claim(conn, "f")
    stall(conn)
    conn.execute("update pgflow.step_tasks set requeued_count = %s", [count])
    conn.execute(change.encode())
    before = picture(conn, "f")
    assert requeue(conn) == 0
    assert picture(conn, "f") == before


def test_tasks_that_are_not_started_are_never_stalled(conn: Conn) -> None:
    define(conn, "f", Step("m", type="map"), max_attempts=2)
    start(conn, "f", [0, 1, 2, 3])
    work = claimed(conn, "f", ids=[1, 2])
    complete(conn, work["m", 0])
    fail(conn, work["m", 1])
    conn.execute("update pgflow.step_tasks set queued_at = now() - interval '1 day'")
    before = picture(conn, "f")
    assert requeue(conn) == 0
    assert picture(conn, "f") == before


def test_one_pass_serves_every_flow_in_its_own_queue(conn: Conn) -> None:
    """Message ids are counted by queue; the queue of `MyFlow` is `myflow`."""
    runs: dict[str, UUID] = {}
    for flow in ("f", "MyFlow", "h"):
        define(conn, flow, Step("m", type="map"))
        runs[flow] = start(conn, flow, [0, 1, 2])
        assert [task.msg_id for task in claim(conn, flow)] == [1, 2, 3]
    stall(conn, run_id=runs["f"], index=0)
    stall(conn, run_id=runs["MyFlow"], index=1)
    exhaust(conn, runs["MyFlow"], 2)
    exhaust(conn, runs["h"], 1)
    assert requeue(conn) == 2
    assert {flow: archived(conn, flow) for flow in runs} == {"f": [], "MyFlow": [3], "h": [2]}
    visible = {flow: [m for m in queued(conn, flow) if hidden_s(conn, flow, m) <= 0] for flow in runs}
    assert visible == {"f": [1], "MyFlow": [2], "h": []}


def test_recovery_runs_with_its_owner_s_rights_and_no_search_path(conn: Conn) -> None:
    row = conn.execute(
        "select prosecdef, proconfig[1], prorettype::regtype::text from pg_catalog.pg_proc"
        " where oid = 'pgflow.requeue_stalled_tasks()'::regprocedure"
    ).fetchone()
    assert row == (True, "search_path=pg_catalog, pg_temp", "integer")


def two_started(conn: Conn, *, max_attempts: int = 1, stalled: tuple[int, ...] = (0, 1)) -> dict[int, Task]:
    """A committed run with two started map tasks, of which some are stalled."""
    define(conn, "f", Step("m", type="map"), max_attempts=max_attempts)
    start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    for index in stalled:
        stall(conn, index=index)
    conn.commit()
    return {index: task for (_, index), task in work.items()}


@both_callbacks
def test_a_pass_skips_a_task_that_a_callback_holds(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    """It neither waits for it nor for the run and step that the callback locked, and takes the others."""
    with race(database) as sessions:
        work = two_started(sessions.a, max_attempts=3)
        call(sessions.a, work[0])
        sessions.b.execute("set lock_timeout = '5 s'")
        assert requeue(sessions.b) == 1
        sessions.b.commit()
        sessions.a.commit()
        expected = "completed" if call is CALLS["complete"] else "queued"
        rows = tasks(sessions.a, work[0].run_id)
        assert [(row["status"], row["requeued_count"]) for row in rows] == [(expected, 0), ("queued", 1)]
        assert requeue(sessions.b) == 0


@both_callbacks
def test_a_callback_waits_for_a_pass_that_holds_its_task_and_then_changes_nothing(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    with race(database) as sessions:
        work = two_started(sessions.a, stalled=(0,))
        assert requeue(sessions.a) == 1
        pending = sessions.b_waits_for_a(lambda b: call(b, work[0]))
        sessions.a.commit()
        before = picture(sessions.a, "f")
        sessions.a.commit()
        row = pending.result(timeout=10)
        sessions.b.commit()
        assert row is not None
        assert (row["status"], row["requeued_count"], row["error_message"]) == ("queued", 1, None)
        assert picture(sessions.a, "f") == before
        assert hidden_s(sessions.a, "f", work[0].msg_id) <= 0


def test_a_failure_waits_for_a_pass_that_requeues_a_sibling_and_cancels_it(database: str) -> None:
    with race(database) as sessions:
        work = two_started(sessions.a, stalled=(1,))
        assert requeue(sessions.a) == 1
        pending = sessions.b_waits_for_a(lambda b: fail(b, work[0]))
        sessions.a.commit()
        pending.result(timeout=10)
        sessions.b.commit()
        rows = tasks(sessions.a, work[0].run_id)
        assert [row["status"] for row in rows] == ["failed", "cancelled"]
        assert (queued(sessions.a, "f"), archived(sessions.a, "f")) == ([], [1, 2])


def test_a_failure_waits_for_a_pass_that_gives_a_sibling_up(database: str) -> None:
    """The sibling is cancelled; its message, which the pass archived, is archived once."""
    with race(database) as sessions:
        work = two_started(sessions.a, stalled=())
        exhaust(sessions.a, work[0].run_id, 1)
        sessions.a.commit()
        assert requeue(sessions.a) == 0
        pending = sessions.b_waits_for_a(lambda b: fail(b, work[0]))
        sessions.a.commit()
        pending.result(timeout=10)
        sessions.b.commit()
        rows = tasks(sessions.a, work[0].run_id)
        assert [row["status"] for row in rows] == ["failed", "cancelled"]
        assert (queued(sessions.a, "f"), archived(sessions.a, "f")) == ([], [1, 2])


def test_a_pass_meets_a_failure_that_holds_every_task_and_takes_none(database: str) -> None:
    with race(database) as sessions:
        work = two_started(sessions.a)
        fail(sessions.a, work[0])
        sessions.b.execute("set lock_timeout = '5 s'")
        assert requeue(sessions.b) == 0
        sessions.b.commit()
        sessions.a.commit()
        assert requeue(sessions.b) == 0
        assert [row["status"] for row in tasks(sessions.a, work[0].run_id)] == ["failed", "cancelled"]


def test_two_passes_at_once_requeue_each_task_once(database: str) -> None:
    with race(database) as sessions:
        work = two_started(sessions.a)
        assert requeue(sessions.a) == 2
        sessions.b.execute("set lock_timeout = '5 s'")
        assert requeue(sessions.b) == 0
        sessions.a.commit()
        sessions.b.commit()
        assert [row["requeued_count"] for row in tasks(sessions.a, work[0].run_id)] == [1, 1]


def test_a_late_failure_of_a_task_that_was_given_up_leaves_no_attempt(conn: Conn) -> None:
    define(conn, "f", Step("a", max_attempts=5))
    run_id = start(conn, "f")
    (task,) = claim(conn, "f")
    conn.execute(
        "update pgflow.step_tasks set requeued_count = 3, queued_at = now() - interval '1 day',"
        " started_at = now() - interval '1 hour'"
    )
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (0,)
    row = fail(conn, task)
    assert row is not None
    assert (row["status"], run_of(conn, run_id)["status"]) == ("failed", "failed")
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [task.msg_id])


def test_a_queue_that_is_gone_stops_its_own_flow_only(conn: Conn) -> None:
    for flow in ("b", "c"):
        define(conn, flow, "a")
        start(conn, flow)
        claim(conn, flow)
    conn.execute("update pgflow.step_tasks set queued_at = '2020-01-01', started_at = '2020-01-01'")
    conn.execute("drop table pgmq.q_b")
    told: list[str | None] = []
    conn.add_notice_handler(lambda diag: told.append(diag.message_primary))
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (1,)
    query = "select flow_slug, status, requeued_count from pgflow.step_tasks order by flow_slug"
    assert conn.execute(query).fetchall() == [("b", "started", 0), ("c", "queued", 1)]
    assert told == ['stalled tasks of flow b stay as they are: relation "pgmq.q_b" does not exist']
