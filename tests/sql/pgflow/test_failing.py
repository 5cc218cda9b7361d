"""`fail_task`: retries, limits, what a failure takes with it, and the guards of both callbacks."""

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
    events,
    fail,
    hidden_s,
    install_realtime,
    queued,
    run_of,
    start,
    states,
    statuses,
    tasks,
)
from tests.sql.pgflow.watching import claimed, happened, picture, race

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tests.sql.pgflow.engine import Conn, Task

CALLS: Final[dict[str, Callable[[Conn, Task], dict[str, Any] | None]]] = {
    "complete": lambda conn, task: complete(conn, task, ["late"]),
    "fail": lambda conn, task: fail(conn, task, "late"),
}
FAIL_RUN: Final = "update pgflow.runs set status = 'failed', failed_at = now() where run_id = %s"
KEPT: Final = ("attempts_count", "started_at", "last_worker_id", "error_message", "message_id")

both_callbacks = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def test_a_failed_attempt_goes_back_to_the_queue_for_the_back_off(conn: Conn) -> None:
    """Row 69."""
    install_realtime(conn)
    define(conn, "f", "a", max_attempts=3, base_delay=7)
    run_id = start(conn, "f", {})
    (task,) = claim(conn, "f")
    before = happened(conn, run_id)
    row = fail(conn, task, "no luck")
    assert [row] == tasks(conn, run_id)
    assert row is not None
    assert (row["status"], row["started_at"], row["failed_at"]) == ("queued", None, None)
    assert (row["attempts_count"], row["error_message"], row["output"]) == (1, "no luck", None)
    assert 10 < hidden_s(conn, "f", task.msg_id) <= 14
    assert (states(conn, run_id)["a"]["status"], states(conn, run_id)["a"]["remaining_tasks"]) == (
        "started",
        1,
    )
    assert run_of(conn, run_id)["status"] == "started"
    assert (queued(conn, "f"), archived(conn, "f")) == ([task.msg_id], [])
    assert happened(conn, run_id) == before


def test_the_back_off_doubles_with_every_attempt(conn: Conn) -> None:
    """Row 70."""
    define(conn, "f", "a", max_attempts=4, base_delay=2)
    run_id = start(conn, "f", {})
    for attempt, delay_s in enumerate((4, 8, 16), start=1):
        (task,) = claim(conn, "f", ids=queued(conn, "f"))
        fail(conn, task)
        assert delay_s / 2 < hidden_s(conn, "f", task.msg_id) <= delay_s
        assert tasks(conn, run_id)[0]["attempts_count"] == attempt
    (task,) = claim(conn, "f", ids=queued(conn, "f"))
    fail(conn, task)
    assert run_of(conn, run_id)["status"] == "failed"


def test_the_back_off_has_no_cap(conn: Conn) -> None:
    """Row 70."""
    define(conn, "f", "a", max_attempts=50, base_delay=5)
    start(conn, "f", {})
    (task,) = claim(conn, "f")
    conn.execute("update pgflow.step_tasks set attempts_count = 20")
    fail(conn, task)
    assert 5 * 2**20 - 30 < hidden_s(conn, "f", task.msg_id) <= 5 * 2**20


@pytest.mark.parametrize(
    ("flow", "step", "retried"),
    [(1, 2, True), (5, 1, False), (2, None, True), (1, None, False), (0, None, False), (5, 0, False)],
)
def test_a_step_s_own_limit_of_attempts_counts_before_the_flow_s(
    conn: Conn, flow: int, step: int | None, retried: bool
) -> None:
    """Row 71; the limit counts all attempts, so 0 and 1 both mean no retry."""
    define(conn, "f", Step("a", max_attempts=step), max_attempts=flow)
    start(conn, "f", {})
    (task,) = claim(conn, "f")
    row = fail(conn, task)
    assert row is not None
    assert row["status"] == ("queued" if retried else "failed")


@pytest.mark.parametrize(("flow", "step", "delay_s"), [(40, 3, 6), (3, 40, 80), (9, None, 18), (9, 0, 0)])
def test_a_step_s_own_base_delay_counts_before_the_flow_s(
    conn: Conn, flow: int, step: int | None, delay_s: int
) -> None:
    """Row 71."""
    define(conn, "f", Step("a", base_delay=step), base_delay=flow)
    start(conn, "f", {})
    (task,) = claim(conn, "f")
    fail(conn, task)
    assert delay_s - 3 < hidden_s(conn, "f", task.msg_id) <= delay_s


def test_a_retry_of_one_map_task_leaves_the_others_alone(conn: Conn) -> None:
    define(conn, "f", Step("m", type="map"))
    run_id = start(conn, "f", [1, 2, 3])
    before = claimed(conn, "f")
    others = tasks(conn, run_id)[1:]
    fail(conn, before["m", 0])
    assert tasks(conn, run_id)[1:] == others
    assert states(conn, run_id)["m"]["remaining_tasks"] == 3


def test_the_last_attempt_fails_the_task_the_step_and_the_run(conn: Conn) -> None:
    """Row 72."""
    install_realtime(conn)
    define(conn, "f", "a", "b", Step("late", start_delay=900), Step("c", ["a"]), max_attempts=1)
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    ids = queued(conn, "f")
    before = len(happened(conn, run_id))
    row = fail(conn, work["a", 0], "broken")
    assert [row] == tasks(conn, run_id, "a")
    assert row is not None
    assert (row["status"], row["error_message"], row["completed_at"]) == ("failed", "broken", None)
    assert row["failed_at"] is not None
    state = states(conn, run_id)
    assert (state["a"]["status"], state["a"]["error_message"]) == ("failed", "broken")
    assert state["a"]["failed_at"] is not None
    assert {slug: state[slug]["status"] for slug in "bc"} == {"b": "started", "c": "created"}
    run = run_of(conn, run_id)
    assert (run["status"], run["completed_at"], run["output"]) == ("failed", None, None)
    assert run["failed_at"] is not None
    assert (queued(conn, "f"), archived(conn, "f")) == ([], ids)
    step_failed, run_failed = events(conn, run_id)[before:]
    assert (step_failed["event"], run_failed["event"]) == ("step:a:failed", "run:failed")
    assert step_failed["payload"].pop("failed_at")
    assert run_failed["payload"].pop("failed_at")
    assert step_failed["payload"] == {
        "event_type": "step:failed",
        "run_id": str(run_id),
        "step_slug": "a",
        "status": "failed",
        "error_message": "broken",
    }
    assert run_failed["payload"] == {
        "event_type": "run:failed",
        "run_id": str(run_id),
        "flow_slug": "f",
        "status": "failed",
        "error_message": "broken",
    }


def test_the_failed_run_s_open_tasks_are_cancelled_with_their_rows_kept(conn: Conn) -> None:
    """Row 73."""
    define(conn, "f", Step("m", type="map"), Step("other", max_attempts=3), max_attempts=1)
    run_id = start(conn, "f", [0, 1, 2, 3])
    ids = queued(conn, "f")
    work = claimed(conn, "f", ids=[t["message_id"] for t in tasks(conn, run_id) if t["task_index"] != 3])
    complete(conn, work["m", 1], "done")
    fail(conn, work["other", 0], "again")
    before = {(row["step_slug"], row["task_index"]): row for row in tasks(conn, run_id)}
    fail(conn, work["m", 0], "enough")
    after = {(row["step_slug"], row["task_index"]): row for row in tasks(conn, run_id)}
    assert {key: row["status"] for key, row in after.items()} == {
        ("m", 0): "failed",
        ("m", 1): "completed",
        ("m", 2): "cancelled",
        ("m", 3): "cancelled",
        ("other", 0): "cancelled",
    }
    assert after["m", 1] == before["m", 1]
    for key in (("m", 2), ("m", 3), ("other", 0)):
        assert {**before[key], "status": "cancelled"} == after[key]
    assert after["other", 0]["error_message"] == "again"
    assert (queued(conn, "f"), archived(conn, "f")) == ([], ids)


def test_other_runs_and_other_queues_with_equal_ids_keep_their_messages(conn: Conn) -> None:
    define(conn, "f", "a", "b", max_attempts=1)
    define(conn, "g", "a", "b", max_attempts=1)
    run_id, other, stranger = start(conn, "f", {}), start(conn, "f", {}), start(conn, "g", {})
    assert queued(conn, "g") == queued(conn, "f")[:2]
    work = claimed(conn, "f", ids=[row["message_id"] for row in tasks(conn, run_id)])
    before = [tasks(conn, one) for one in (other, stranger)]
    fail(conn, work["a", 0])
    assert [tasks(conn, one) for one in (other, stranger)] == before
    assert queued(conn, "f") == [row["message_id"] for row in tasks(conn, other)]
    assert (queued(conn, "g"), archived(conn, "g")) == ([1, 2], [])


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_tasks_without_a_message_fail_and_retry_like_others(conn: Conn, max_attempts: int) -> None:
    define(conn, "f", Step("m", type="map"), max_attempts=max_attempts)
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f")
    conn.execute("update pgflow.step_tasks set message_id = null where task_index < 2")
    row = fail(conn, work["m", 0])
    assert row is not None
    expected = ["failed", "cancelled", "cancelled"] if max_attempts == 1 else ["queued", "started", "started"]
    assert [task["status"] for task in tasks(conn, run_id)] == expected
    assert archived(conn, "f") == ([work["m", 2].msg_id] if max_attempts == 1 else [])


def test_a_task_that_does_not_exist_fails_to_no_row(conn: Conn) -> None:
    define(conn, "f", "a")
    run_id = start(conn, "f", {})
    before = picture(conn, "f")
    assert fail(conn, (run_id, "a", 7)) is None
    assert fail(conn, (run_id, "b", 0)) is None
    assert picture(conn, "f") == before


@both_callbacks
@pytest.mark.parametrize("status", ["queued", "completed", "failed", "skipped", "cancelled"])
def test_a_task_that_is_not_started_stays_as_it_is(
    conn: Conn, call: Callable[[Conn, Task], dict[str, Any] | None], status: str
) -> None:
    """Rows 54, 55, 82."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map"), max_attempts=1)
    run_id = start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    conn.execute("update pgflow.step_tasks set status = %s where task_index = 0", [status])
    if status != "queued":
        conn.execute("select pgmq.archive('f', %s)", [work["m", 0].msg_id])
    before = picture(conn, "f")
    assert call(conn, work["m", 0]) == tasks(conn, run_id)[0]
    assert picture(conn, "f") == before


def test_a_replayed_failure_of_a_retried_task_does_not_move_its_message(conn: Conn) -> None:
    """Row 82."""
    define(conn, "f", "a", base_delay=100)
    start(conn, "f", {})
    (task,) = claim(conn, "f")
    fail(conn, task)
    before = picture(conn, "f")
    fail(conn, task, "again")
    assert picture(conn, "f") == before


def _left_started(conn: Conn) -> tuple[UUID, Task]:
    """A run with a started task, its message still in the queue, and an untouched child."""
    install_realtime(conn)
    define(conn, "f", "a", Step("c", ["a"]), max_attempts=1)
    run_id = start(conn, "f", {})
    (task,) = claim(conn, "f")
    return run_id, task


def test_a_late_completion_on_a_failed_run_changes_nothing_at_all(conn: Conn) -> None:
    """Row 67: the row is returned; even the message stays where it is."""
    run_id, task = _left_started(conn)
    conn.execute(FAIL_RUN, [run_id])
    before = picture(conn, "f")
    assert complete(conn, task, 1) == tasks(conn, run_id)[0]
    assert picture(conn, "f") == before


def test_a_late_failure_on_a_failed_run_archives_its_message_and_nothing_else(conn: Conn) -> None:
    run_id, task = _left_started(conn)
    conn.execute(FAIL_RUN, [run_id])
    before = [run_of(conn, run_id), states(conn, run_id), tasks(conn, run_id), happened(conn, run_id)]
    assert fail(conn, task) == tasks(conn, run_id)[0]
    assert [run_of(conn, run_id), states(conn, run_id), tasks(conn, run_id), happened(conn, run_id)] == before
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [task.msg_id])


@both_callbacks
def test_a_callback_after_its_run_failed_keeps_the_task_cancelled(
    conn: Conn, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    """Row 67."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map"), max_attempts=1)
    start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    fail(conn, work["m", 0])
    before = picture(conn, "f")
    row = call(conn, work["m", 1])
    assert row is not None
    assert row["status"] == "cancelled"
    assert picture(conn, "f") == before


@both_callbacks
@pytest.mark.parametrize(
    "change",
    [
        "status = 'skipped', skip_reason = 'handler_failed', skipped_at = now(), remaining_tasks = null",
        "status = 'failed', failed_at = now()",
        "status = 'completed', remaining_tasks = 0, completed_at = now()",
        "status = 'created', remaining_tasks = null",
    ],
    ids=["skipped", "failed", "completed", "created"],
)
def test_a_callback_on_a_step_that_is_not_started_only_archives_its_message(
    conn: Conn, call: Callable[[Conn, Task], dict[str, Any] | None], change: str
) -> None:
    """Row 68."""
    run_id, task = _left_started(conn)
    conn.execute(f"update pgflow.step_states set {change} where step_slug = 'a'".encode())
    before = [run_of(conn, run_id), states(conn, run_id), tasks(conn, run_id), happened(conn, run_id)]
    assert call(conn, task) == tasks(conn, run_id)[0]
    assert [run_of(conn, run_id), states(conn, run_id), tasks(conn, run_id), happened(conn, run_id)] == before
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [task.msg_id])


@both_callbacks
@pytest.mark.parametrize("with_message", [True, False])
def test_a_callback_that_waited_for_a_failure_of_the_run_only_archives_its_message(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None], with_message: bool
) -> None:
    with race(database) as sessions:
        run_id, task = _left_started(sessions.a)
        if not with_message:
            sessions.a.execute("update pgflow.step_tasks set message_id = null")
        sessions.a.commit()
        before = [states(sessions.a, run_id), tasks(sessions.a, run_id), happened(sessions.a, run_id)]
        sessions.a.execute(FAIL_RUN, [run_id])
        pending = sessions.b_waits_for_a(lambda b: call(b, task))
        sessions.a.commit()
        assert pending.result(timeout=10) == tasks(sessions.b, run_id)[0]
        sessions.b.commit()
        assert [states(sessions.a, run_id), tasks(sessions.a, run_id), happened(sessions.a, run_id)] == before
        assert archived(sessions.a, "f") == ([task.msg_id] if with_message else [])


@both_callbacks
def test_a_callback_waits_for_a_failing_sibling_and_finds_itself_cancelled(
    database: str, call: Callable[[Conn, Task], dict[str, Any] | None]
) -> None:
    with race(database) as sessions:
        install_realtime(sessions.a)
        define(sessions.a, "f", "a", "b", Step("c", ["a"]), max_attempts=1)
        run_id = start(sessions.a, "f", {})
        work = claimed(sessions.a, "f")
        sessions.a.commit()
        fail(sessions.a, work["a", 0])
        pending = sessions.b_waits_for_a(lambda b: call(b, work["b", 0]))
        sessions.a.commit()
        row = pending.result(timeout=10)
        sessions.b.commit()
        assert row is not None
        assert (row["status"], row["output"], row["error_message"]) == ("cancelled", None, None)
        assert statuses(sessions.a, run_id) == {"a": "failed", "b": "started", "c": "created"}
        assert happened(sessions.a, run_id)[-2:] == ["step:a:failed", "run:failed"]
        assert happened(sessions.a, run_id).count("run:failed") == 1
        assert (queued(sessions.a, "f"), archived(sessions.a, "f")) == ([], [1, 2])


@pytest.mark.parametrize("mode", ["fail", "skip", "skip-cascade"])
def test_a_failure_in_a_transaction_older_than_the_run_breaks_no_check(database: str, mode: str) -> None:
    with psycopg.connect(database) as old, psycopg.connect(database) as new:
        old.execute("select now()")
        child = Step("c", ["m"], required={"m": []}, when_unmet="fail")
        define(new, "f", Step("m", type="map", when_exhausted=mode), "s", child, max_attempts=1)
        run_id = start(new, "f", [0, 1])
        work = claimed(new, "f")
        new.commit()
        fail(old, work["m", 0])
        old.commit()
        run = run_of(new, run_id)
        assert run["status"] == ("started" if mode == "skip-cascade" else "failed")
        assert run["failed_at"] in (None, run["started_at"])


def test_a_back_off_beyond_the_type_is_as_long_as_it_can_be(conn: psycopg.Connection[Any]) -> None:
    define(conn, "f", Step("a", max_attempts=100, base_delay=5))
    start(conn, "f")
    (task,) = claim(conn, "f")
    conn.execute("update pgflow.step_tasks set attempts_count = 60")
    row = fail(conn, task)
    assert row is not None
    assert row["status"] == "queued"
    assert hidden_s(conn, "f", task.msg_id) > 2_000_000_000
