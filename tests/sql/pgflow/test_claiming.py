"""Claiming: which tasks `start_tasks` takes and what it hands out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    Step,
    add_worker,
    claim,
    complete,
    define,
    fail,
    hidden_s,
    queued,
    read,
    start,
    states,
    tasks,
)

if TYPE_CHECKING:
    Conn = psycopg.Connection[Any]


def row_states(conn: Conn, run_id: UUID) -> list[tuple[str, int]]:
    """Status and attempts of the run's tasks, by step and index."""
    return [(row["status"], row["attempts_count"]) for row in tasks(conn, run_id)]


def two_steps(conn: Conn) -> UUID:
    """A run of flow `f` with the queued tasks `a` and `b`, messages 1 and 2."""
    define(conn, "f", "a", "b")
    return start(conn, "f")


def test_a_claim_starts_the_task(conn: Conn) -> None:
    """Row 44."""
    define(conn, "f", Step("m", type="map"))
    run_id = start(conn, "f", ["x", "y"])
    worker = add_worker(conn)
    first, second = queued(conn, "f")
    [task] = claim(conn, "f", worker=worker, ids=[second])
    assert (task.flow_slug, task.run_id, task.step_slug) == ("f", run_id, "m")
    assert (task.msg_id, task.task_index, task.input, task.flow_input) == (second, 1, "y", None)
    other, row = tasks(conn, run_id)
    assert (row["status"], row["attempts_count"], row["last_worker_id"]) == ("started", 1, worker)
    assert row["started_at"] is not None
    assert (other["status"], other["attempts_count"], other["last_worker_id"]) == ("queued", 0, None)
    assert (other["message_id"], other["started_at"]) == (first, None)
    state = states(conn, run_id)["m"]
    assert (state["status"], state["remaining_tasks"], state["initial_tasks"]) == ("started", 2, 2)
    assert len(queued(conn, "f")) == 2


def test_each_claim_counts_an_attempt_and_the_last_worker_stays(conn: Conn) -> None:
    run_id = two_steps(conn)
    for attempt in (1, 2):
        worker = add_worker(conn)
        [task] = claim(conn, "f", worker=worker, ids=[1])
        row = tasks(conn, run_id, "a")[0]
        assert (row["attempts_count"], row["last_worker_id"]) == (attempt, worker)
        fail(conn, task)
    assert tasks(conn, run_id, "a")[0]["attempts_count"] == 2


def test_a_recovered_task_can_run_twice_and_a_result_counts_while_it_is_started(conn: Conn) -> None:
    run_id = two_steps(conn)
    [first] = claim(conn, "f", ids=[1])
    conn.execute("update pgflow.step_tasks set queued_at = queued_at - interval '2 minutes'")
    conn.execute("update pgflow.step_tasks set started_at = started_at - interval '2 minutes'")
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchall() == [(1,)]
    complete(conn, first, "too late")
    assert row_states(conn, run_id)[0] == ("queued", 1)
    [second] = claim(conn, "f", ids=[1])
    assert second == first
    assert row_states(conn, run_id)[0] == ("started", 2)
    complete(conn, first, "in time")
    complete(conn, second, "twice")
    assert tasks(conn, run_id, "a")[0]["output"] == "in time"


def test_a_single_gets_the_outputs_of_its_parents(conn: Conn) -> None:
    """Row 45; SQL's null comes as JSON's."""
    define(conn, "f", "a", "b", "n", "other", Step("c", ["a", "b", "n"]))
    run_id = start(conn, "f", {"in": 1})
    by_step = {task.step_slug: task for task in claim(conn, "f")}
    complete(conn, by_step["a"], {"x": [1]})
    complete(conn, by_step["other"], "not a parent")
    complete(conn, by_step["b"], "text")
    conn.execute("select pgflow.complete_task(%s, 'n', 0, null)", [run_id])
    [task] = claim(conn, "f")
    assert (task.step_slug, task.flow_input) == ("c", None)
    assert task.input == {"a": {"x": [1]}, "b": "text", "n": None}


def test_a_root_single_gets_the_input_of_the_run(conn: Conn) -> None:
    """Row 46."""
    define(conn, "f", "a", Step("m", type="map"), Step("c", ["a"]), Step("n", ["m"], "map"))
    start(conn, "f", [7])
    first = claim(conn, "f")
    assert [(task.step_slug, task.input, task.flow_input) for task in first] == [
        ("a", {}, [7]),
        ("m", 7, None),
    ]
    for task in first:
        complete(conn, task, 8)
    second = claim(conn, "f")
    assert [(task.step_slug, task.input, task.flow_input) for task in second] == [
        ("c", {"a": 8}, None),
        ("n", 8, None),
    ]


def test_a_root_input_that_is_null_comes_as_json_null(conn: Conn) -> None:
    define(conn, "f", "a")
    start(conn, "f", None)
    worker = add_worker(conn)
    query = "select input::text, flow_input::text from pgflow.start_tasks('f', '{1}', %s)"
    assert conn.execute(query, [worker]).fetchall() == [("{}", "null")]


def test_maps_get_raw_elements(conn: Conn) -> None:
    """Row 47: root, below a single, below a map."""
    elements = [1, None, [2, [3]], {"k": "v"}, "s"]
    define(conn, "f", "a", Step("d", ["a"], "map"), Step("r", type="map"), Step("q", ["r"], "map"))
    start(conn, "f", elements)
    for task in claim(conn, "f"):
        if task.step_slug == "a":
            complete(conn, task, elements[::-1])
        else:
            assert task.input == elements[task.task_index]
            complete(conn, task, {"from": task.input})
    below = {(task.step_slug, task.task_index): task.input for task in claim(conn, "f")}
    assert below == {
        **{("d", index): element for index, element in enumerate(elements[::-1])},
        **{("q", index): {"from": element} for index, element in enumerate(elements)},
    }


def test_a_skipped_parent_has_no_key(conn: Conn) -> None:
    skipped = Step("b", required={"go": True})
    define(conn, "f", "a", skipped, Step("c", ["a", "b"]), Step("d", ["b"]))
    start(conn, "f", {})
    a, d = claim(conn, "f")
    assert (d.step_slug, d.input, d.flow_input) == ("d", {}, None)
    complete(conn, a, None)
    assert [task.input for task in claim(conn, "f")] == [{"a": None}]


def test_only_queued_tasks_are_claimed(conn: Conn) -> None:
    """Row 48; a task that runs keeps the deadline of its message."""
    define(conn, "f", "a", "b", "c", "d", max_attempts=1)
    run_id = start(conn, "f")
    a, b, _ = claim(conn, "f", ids=[1, 2, 3])
    complete(conn, a)
    conn.execute(
        "update pgflow.step_tasks set status = 'failed', failed_at = now() where step_slug = %s",
        [b.step_slug],
    )
    conn.execute("select pgmq.set_vt('f', 3, 7)")
    before = tasks(conn, run_id)
    assert claim(conn, "f", ids=[1, 2, 3]) == []
    assert tasks(conn, run_id) == before
    assert 5 < hidden_s(conn, "f", 3) <= 7


@pytest.mark.parametrize("ended", ["skipped", "completed", "failed", "created"])
def test_no_task_of_a_step_that_is_not_started_is_claimed(conn: Conn, ended: str) -> None:
    """Row 49."""
    run_id = two_steps(conn)
    conn.execute(
        "update pgflow.step_states set status = %(to)s,"
        " remaining_tasks = case when %(to)s in ('completed', 'failed') then 0 end,"
        " skip_reason = case %(to)s when 'skipped' then 'handler_failed' end,"
        " started_at = case when %(to)s <> 'created' then started_at end where step_slug = 'a'",
        {"to": ended},
    )
    assert [task.step_slug for task in claim(conn, "f")] == ["b"]
    assert row_states(conn, run_id) == [("queued", 0), ("started", 1)]


@pytest.mark.parametrize("ended", ["failed", "completed"])
def test_no_task_of_a_run_that_ended_is_claimed(conn: Conn, ended: str) -> None:
    run_id = two_steps(conn)
    conn.execute("update pgflow.runs set status = %s", [ended])
    assert claim(conn, "f") == []
    assert row_states(conn, run_id) == [("queued", 0)] * 2


def test_claimed_messages_are_hidden_for_the_timeout_and_two_seconds(conn: Conn) -> None:
    """Row 50; a message that was not claimed keeps what the read gave it."""
    define(conn, "f", "a", Step("b", timeout=10), "c", timeout=60)
    start(conn, "f")
    assert read(conn, "f", vt_s=2) == [1, 2, 3]
    kept = conn.execute("select vt from pgmq.q_f where msg_id = 3").fetchall()
    [(before,)] = conn.execute("select clock_timestamp()")
    assert [task.step_slug for task in claim(conn, "f", ids=[1, 2])] == ["a", "b"]
    [(after,)] = conn.execute("select clock_timestamp()")
    a, b, c = conn.execute("select vt from pgmq.q_f order by msg_id").fetchall()
    assert before <= a[0] - timedelta(seconds=62) <= after
    assert before <= b[0] - timedelta(seconds=12) <= after
    assert [c] == kept


@pytest.mark.parametrize("how", ["delete", "archive"])
def test_a_message_missing_under_a_task_undoes_the_whole_claim(conn: Conn, how: str) -> None:
    """Row 51."""
    run_id = two_steps(conn)
    read(conn, "f", vt_s=2)
    conn.execute(f"select pgmq.{how}('f', 1)")
    before = tasks(conn, run_id)
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught, conn.transaction():
        claim(conn, "f", ids=[1, 2])
    text = "start_tasks(): visibility updated 1 of 2 claimed messages"
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == ("22P02", text)
    assert tasks(conn, run_id) == before
    assert row_states(conn, run_id) == [("queued", 0)] * 2
    assert hidden_s(conn, "f", 2) <= 2
    assert [task.msg_id for task in claim(conn, "f", ids=[2])] == [2]


def test_unknown_and_repeated_ids_change_nothing(conn: Conn) -> None:
    run_id = two_steps(conn)
    conn.execute("select pgmq.send('f', '{}')")
    claimed = claim(conn, "f", ids=[999, 1, 3, 1, -1, 2**62])
    assert [task.msg_id for task in claimed] == [1]
    assert row_states(conn, run_id) == [("started", 1), ("queued", 0)]
    assert hidden_s(conn, "f", 3) <= 0


@pytest.mark.parametrize("ids", ["null", "'{}'", "'{null}'"])
def test_an_empty_list_claims_nothing(conn: Conn, ids: str) -> None:
    run_id = two_steps(conn)
    worker = add_worker(conn)
    query = f"select * from pgflow.start_tasks('f', {ids}::bigint[], %s)"
    assert conn.execute(query, [worker]).fetchall() == []
    assert row_states(conn, run_id) == [("queued", 0)] * 2


def test_a_null_among_the_ids_is_ignored(conn: Conn) -> None:
    run_id = two_steps(conn)
    conn.execute("update pgflow.step_tasks set message_id = null where step_slug = 'b'")
    query = "select msg_id from pgflow.start_tasks('f', '{null,1}', %s)"
    assert conn.execute(query, [add_worker(conn)]).fetchall() == [(1,)]
    assert row_states(conn, run_id) == [("started", 1), ("queued", 0)]


def test_equal_ids_of_another_flow_are_not_touched(conn: Conn) -> None:
    define(conn, "f", "a")
    define(conn, "g", "a")
    f, g = start(conn, "f"), start(conn, "g")
    assert queued(conn, "f") == queued(conn, "g") == [1]
    [task] = claim(conn, "g", ids=[1])
    assert (task.flow_slug, task.run_id) == ("g", g)
    assert row_states(conn, f) == [("queued", 0)]
    assert hidden_s(conn, "f", 1) <= 0 < hidden_s(conn, "g", 1)
    assert claim(conn, "absent", worker=add_worker(conn), ids=[1]) == []


def test_an_unknown_worker_claims_nothing(conn: Conn) -> None:
    run_id = two_steps(conn)
    with (
        pytest.raises(psycopg.errors.ForeignKeyViolation, match="step_tasks_last_worker_id_fkey"),
        conn.transaction(),
    ):
        claim(conn, "f", worker=uuid4(), ids=[1, 2])
    assert row_states(conn, run_id) == [("queued", 0)] * 2
    assert hidden_s(conn, "f", 1) <= 0


def test_a_claim_of_many_runs_gives_each_task_its_own_input(conn: Conn) -> None:
    define(conn, "f", "a", Step("m", ["a"], "map"))
    run_ids = [start(conn, "f", number) for number in range(3)]
    for task in claim(conn, "f"):
        assert task.run_id == run_ids[task.flow_input]
        complete(conn, task, [[task.flow_input, "x"], [task.flow_input, "y"]])
    claimed = claim(conn, "f")
    assert len(claimed) == 6
    for task in claimed:
        assert task.input == [run_ids.index(task.run_id), "xy"[task.task_index]]


def test_poll_for_tasks_is_kept_for_old_workers_and_gives_nothing(conn: Conn) -> None:
    run_id = two_steps(conn)
    notices: list[str] = []
    conn.add_notice_handler(lambda notice: notices.append(f"{notice.severity} {notice.message_primary}"))
    assert conn.execute("select * from pgflow.poll_for_tasks('f', 2, 10)").fetchall() == []
    assert len(notices) == 1
    assert notices[0].startswith("NOTICE")
    assert "deprecated" in notices[0]
    assert row_states(conn, run_id) == [("queued", 0)] * 2


def test_a_timeout_as_long_as_the_type_allows_stops_no_claim(conn: psycopg.Connection[Any]) -> None:
    define(conn, "f", Step("a", timeout=2**31 - 1), Step("b", timeout=60))
    start(conn, "f")
    assert [task.step_slug for task in claim(conn, "f")] == ["a", "b"]
    assert hidden_s(conn, "f", 1) > 2_000_000_000
    assert hidden_s(conn, "f", 2) < 63
