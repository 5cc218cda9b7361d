"""Steps that are skipped when their attempts are used up, and what that does downstream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.pgflow.engine import (
    Step,
    archived,
    claim,
    complete,
    define,
    events,
    fail,
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
    from uuid import UUID

    from tests.sql.pgflow.engine import Conn

FORCE_SKIP = "select pgflow._cascade_force_skip_steps(%s, %s, %s)"


def skipped(conn: Conn, run_id: UUID) -> dict[str, str]:
    """The reason of each skipped step."""
    return {slug: row["skip_reason"] for slug, row in states(conn, run_id).items() if row["skip_reason"]}


def force_skip(conn: Conn, run_id: UUID, step: str, reason: str = "condition_unmet") -> int:
    """Call the private cascade by hand: how many steps it skipped."""
    row = conn.execute(FORCE_SKIP, [run_id, step, reason]).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def test_a_skipped_step_lets_the_run_go_on_without_its_output(conn: Conn) -> None:
    """Row 74."""
    install_realtime(conn)
    define(conn, "f", Step("a", when_exhausted="skip"), "b", Step("c", ["a", "b"]), max_attempts=1)
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    complete(conn, work["b", 0], 5)
    before = len(happened(conn, run_id))
    row = fail(conn, work["a", 0], "no luck")
    assert [row] == tasks(conn, run_id, "a")
    assert row is not None
    assert (row["status"], row["error_message"]) == ("failed", "no luck")
    state = states(conn, run_id)["a"]
    assert (state["status"], state["skip_reason"], state["error_message"]) == (
        "skipped",
        "handler_failed",
        "no luck",
    )
    assert (state["remaining_tasks"], state["output"], state["failed_at"]) == (None, None, None)
    assert state["skipped_at"] is not None
    run = run_of(conn, run_id)
    assert (run["status"], run["remaining_steps"]) == ("started", 1)
    assert work["a", 0].msg_id in archived(conn, "f")
    skip, started = events(conn, run_id)[before:]
    assert (skip["event"], started["event"]) == ("step:a:skipped", "step:c:started")
    assert skip["payload"].pop("skipped_at")
    assert skip["payload"] == {
        "event_type": "step:skipped",
        "run_id": str(run_id),
        "step_slug": "a",
        "status": "skipped",
        "skip_reason": "handler_failed",
        "error_message": "no luck",
    }
    (child,) = claim(conn, "f")
    assert (child.step_slug, child.input) == ("c", {"b": 5})
    complete(conn, child, 6)
    assert (run_of(conn, run_id)["status"], run_of(conn, run_id)["output"]) == ("completed", {"c": 6})


def test_attempts_that_are_left_are_used_before_a_step_is_skipped(conn: Conn) -> None:
    define(conn, "f", Step("a", when_exhausted="skip"), max_attempts=2)
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    assert statuses(conn, run_id) == {"a": "started"}
    fail(conn, claim(conn, "f", ids=queued(conn, "f"))[0])
    assert statuses(conn, run_id) == {"a": "skipped"}


def test_a_cascading_skip_takes_everything_downstream_and_completes_the_run(conn: Conn) -> None:
    """Row 75; a join that also has a living parent is skipped with the rest, each step counted once."""
    install_realtime(conn)
    define(
        conn,
        "f",
        Step("a", when_exhausted="skip-cascade"),
        "other",
        Step("b", ["a"]),
        Step("c", ["a"]),
        Step("m", ["b"], type="map"),
        Step("join", ["b", "c", "other"]),
        Step("end", ["join"], required={"x": 1}, when_unmet="fail"),
        max_attempts=1,
    )
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    before = len(happened(conn, run_id))
    fail(conn, work["a", 0], "no luck")
    downstream = dict.fromkeys(("b", "c", "m", "join", "end"), "dependency_skipped")
    assert skipped(conn, run_id) == {"a": "handler_failed", **downstream}
    assert {slug for slug, row in states(conn, run_id).items() if row["error_message"]} == {"a"}
    assert run_of(conn, run_id)["remaining_steps"] == 1
    new = events(conn, run_id)[before:]
    order = [event["payload"]["step_slug"] for event in new]
    assert {event["payload"]["event_type"] for event in new} == {"step:skipped"}
    assert sorted(order) == sorted(["a", *downstream])
    parents = [("a", "b"), ("a", "c"), ("b", "m"), ("b", "join"), ("c", "join"), ("join", "end")]
    assert all(order.index(parent) < order.index(child) for parent, child in parents)
    assert new[0]["payload"]["error_message"] == "no luck"
    for event in new[1:]:
        assert event["payload"].pop("skipped_at")
        assert event["payload"] == {
            "event_type": "step:skipped",
            "run_id": str(run_id),
            "flow_slug": "f",
            "step_slug": event["payload"]["step_slug"],
            "status": "skipped",
            "skip_reason": "dependency_skipped",
        }
    complete(conn, work["other", 0], 1)
    run = run_of(conn, run_id)
    assert (run["status"], run["output"], run["remaining_steps"]) == ("completed", None, 0)


def test_a_cascading_skip_of_a_chain_ends_the_run_at_once(conn: Conn) -> None:
    """Row 75."""
    install_realtime(conn)
    define(conn, "f", Step("a", when_exhausted="skip-cascade"), Step("b", ["a"]), max_attempts=1)
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    assert happened(conn, run_id)[-3:] == ["step:a:skipped", "step:b:skipped", "run:completed"]
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1])


@pytest.mark.parametrize("mode", ["skip", "skip-cascade"])
def test_a_run_whose_only_step_is_skipped_completes_without_output(conn: Conn, mode: str) -> None:
    """Row 76."""
    install_realtime(conn)
    define(conn, "f", Step("a", when_exhausted=mode), max_attempts=1)
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    run = run_of(conn, run_id)
    assert (run["status"], run["output"], run["failed_at"]) == ("completed", None, None)
    assert run["completed_at"] is not None
    assert happened(conn, run_id)[-2:] == ["step:a:skipped", "run:completed"]
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1])


def test_a_child_with_another_running_parent_waits_for_it(conn: Conn) -> None:
    """Row 77."""
    define(conn, "f", Step("a", when_exhausted="skip"), "b", Step("c", ["a", "b"]), max_attempts=1)
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    fail(conn, work["a", 0])
    child = states(conn, run_id)["c"]
    assert (child["status"], child["remaining_deps"]) == ("created", 1)
    complete(conn, work["b", 0], 1)
    assert statuses(conn, run_id)["c"] == "started"


@pytest.mark.parametrize("type_", ["single", "map"])
def test_maps_below_a_skipped_step_complete_empty_and_their_child_starts(conn: Conn, type_: str) -> None:
    """Row 78."""
    install_realtime(conn)
    define(
        conn,
        "f",
        Step("a", type=type_, when_exhausted="skip"),
        Step("m", ["a"], type="map"),
        Step("n", ["m"], type="map"),
        Step("s", ["n"]),
        max_attempts=1,
    )
    run_id = start(conn, "f", [1])
    before = len(happened(conn, run_id))
    fail(conn, claim(conn, "f")[0])
    assert statuses(conn, run_id) == {"a": "skipped", "m": "completed", "n": "completed", "s": "started"}
    state = states(conn, run_id)
    assert [(state[slug]["initial_tasks"], state[slug]["output"]) for slug in "mn"] == [(0, []), (0, [])]
    assert run_of(conn, run_id)["remaining_steps"] == 1
    assert happened(conn, run_id)[before:] == [
        "step:a:skipped",
        "step:m:completed",
        "step:n:completed",
        "step:s:started",
    ]
    (child,) = claim(conn, "f")
    assert child.input == {"n": []}


def test_a_child_s_unmet_condition_after_a_skip_fails_the_run(conn: Conn) -> None:
    """Row 79."""
    install_realtime(conn)
    child = Step("c", ["a"], required={"a": {}}, when_unmet="fail")
    define(conn, "f", Step("a", when_exhausted="skip"), child, "other", max_attempts=1)
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    row = fail(conn, work["a", 0])
    assert row is not None
    assert row["status"] == "failed"
    assert statuses(conn, run_id) == {"a": "skipped", "c": "failed", "other": "started"}
    assert run_of(conn, run_id)["status"] == "failed"
    assert tasks(conn, run_id, "other")[0]["status"] == "cancelled"
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1, 2])
    assert happened(conn, run_id)[-3:] == ["step:a:skipped", "step:c:failed", "run:failed"]


def test_a_child_s_unmet_condition_after_a_skip_skips_it_too(conn: Conn) -> None:
    define(
        conn,
        "f",
        Step("a", when_exhausted="skip"),
        Step("m", ["a"], type="map", required={"a": []}),
        max_attempts=1,
    )
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    assert skipped(conn, run_id) == {"a": "handler_failed", "m": "condition_unmet"}
    assert run_of(conn, run_id)["status"] == "completed"


@pytest.mark.parametrize("mode", ["skip", "skip-cascade"])
def test_several_failing_tasks_skip_their_step_once(conn: Conn, mode: str) -> None:
    """Row 80."""
    install_realtime(conn)
    define(
        conn,
        "f",
        Step("m", type="map", when_exhausted=mode),
        "other",
        Step("c", ["m", "other"]),
        max_attempts=1,
    )
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f")
    fail(conn, work["m", 0])
    before = picture(conn, "f")
    for index in (0, 1, 2):
        fail(conn, work["m", index], "again")
        complete(conn, work["m", index], "late")
    assert picture(conn, "f") == before
    assert happened(conn, run_id).count("step:m:skipped") == 1
    assert run_of(conn, run_id)["remaining_steps"] == (2 if mode == "skip" else 1)


@pytest.mark.parametrize("mode", ["skip", "skip-cascade"])
def test_open_tasks_of_a_skipped_step_are_skipped_with_their_rows_kept(conn: Conn, mode: str) -> None:
    """Row 81."""
    define(conn, "f", Step("m", type="map", when_exhausted=mode), Step("other"), max_attempts=1)
    run_id = start(conn, "f", [0, 1, 2, 3, 4])
    rows = tasks(conn, run_id)
    work = claimed(conn, "f", ids=[row["message_id"] for row in rows if row["task_index"] != 4])
    complete(conn, work["m", 1], "done")
    conn.execute("update pgflow.step_tasks set message_id = null where step_slug = 'm' and task_index = 3")
    before = {(row["step_slug"], row["task_index"]): row for row in tasks(conn, run_id)}
    fail(conn, work["m", 0])
    after = {(row["step_slug"], row["task_index"]): row for row in tasks(conn, run_id)}
    assert {key: row["status"] for key, row in after.items()} == {
        ("m", 0): "failed",
        ("m", 1): "completed",
        ("m", 2): "skipped",
        ("m", 3): "skipped",
        ("m", 4): "skipped",
        ("other", 0): "started",
    }
    for key in (("m", 2), ("m", 3), ("m", 4)):
        assert {**before[key], "status": "skipped"} == after[key]
    assert after["m", 1] == before["m", 1]
    assert after["other", 0] == before["other", 0]
    kept = {before["m", 3]["message_id"], before["other", 0]["message_id"]} - {None}
    assert set(queued(conn, "f")) - {work["m", 3].msg_id} == kept
    assert set(archived(conn, "f")) == {
        row["message_id"] for key, row in before.items() if key[0] == "m" and row["message_id"]
    }


def test_a_sibling_that_waited_for_the_skip_finds_itself_skipped(database: str) -> None:
    """Rows 68, 80, 81."""
    with race(database) as sessions:
        install_realtime(sessions.a)
        define(sessions.a, "f", Step("m", type="map", when_exhausted="skip"), "o", max_attempts=1)
        run_id = start(sessions.a, "f", [0, 1])
        work = claimed(sessions.a, "f")
        sessions.a.commit()
        fail(sessions.a, work["m", 0])
        pending = sessions.b_waits_for_a(lambda b: fail(b, work["m", 1], "me too"))
        sessions.a.commit()
        row = pending.result(timeout=10)
        sessions.b.commit()
        assert row is not None
        assert (row["status"], row["error_message"]) == ("skipped", None)
        assert happened(sessions.a, run_id).count("step:m:skipped") == 1
        assert run_of(sessions.a, run_id)["remaining_steps"] == 1


@pytest.mark.parametrize("output", [{"a": 1}, "text", None])
@pytest.mark.parametrize("mode", ["skip", "skip-cascade"])
def test_a_type_violation_fails_the_run_whatever_the_step_says(conn: Conn, mode: str, output: Any) -> None:
    """Row 66; the other open tasks are cancelled, and no attempt that is left is used."""
    install_realtime(conn)
    define(conn, "f", Step("a", when_exhausted=mode), "b", Step("m", ["a"], type="map"), Step("n", ["a"]))
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    before = len(happened(conn, run_id))
    row = complete(conn, work["a", 0], output)
    assert [row] == tasks(conn, run_id, "a")
    assert row is not None
    kind = {dict: "object", str: "string", type(None): "null"}[type(output)]
    assert (row["status"], row["output"]) == ("failed", output)
    assert row["error_message"] == f"[TYPE_VIOLATION] Produced {kind} instead of array"
    assert (row["failed_at"] is not None, row["completed_at"]) == (True, None)
    state = states(conn, run_id)
    assert statuses(conn, run_id) == {"a": "failed", "b": "started", "m": "created", "n": "created"}
    assert state["a"]["error_message"] == (
        f"[TYPE_VIOLATION] Map step m expects array input but dependency a produced {kind}"
    )
    assert run_of(conn, run_id)["status"] == "failed"
    assert tasks(conn, run_id, "b")[0]["status"] == "cancelled"
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1, 2])
    assert happened(conn, run_id)[before:] == ["run:failed", "step:a:failed"]
    assert "error_message" not in events(conn, run_id)[before]["payload"]


def test_the_cascade_skips_a_started_step_with_its_tasks_and_all_below_it_once(conn: Conn) -> None:
    install_realtime(conn)
    define(
        conn, "f", Step("m", type="map"), "o", Step("b", ["m"]), Step("d", ["m", "b", "o"]), Step("e", ["o"])
    )
    run_id = start(conn, "f", [0, 1])
    claim(conn, "f", ids=[tasks(conn, run_id)[0]["message_id"]])
    before = len(happened(conn, run_id))
    assert force_skip(conn, run_id, "m") == 3
    assert skipped(conn, run_id) == {
        "m": "condition_unmet",
        "b": "dependency_skipped",
        "d": "dependency_skipped",
    }
    assert states(conn, run_id)["m"]["remaining_tasks"] is None
    assert [row["status"] for row in tasks(conn, run_id)] == ["skipped", "skipped", "queued"]
    assert archived(conn, "f") == [row["message_id"] for row in tasks(conn, run_id, "m")]
    assert run_of(conn, run_id)["remaining_steps"] == 2
    new = happened(conn, run_id)[before:]
    assert new == [f"step:{slug}:skipped" for slug in "mbd"]
    after = picture(conn, "f")
    assert force_skip(conn, run_id, "m") == 0
    assert picture(conn, "f") == after


def test_the_cascade_leaves_tasks_of_steps_alone_that_it_does_not_skip_itself(conn: Conn) -> None:
    define(conn, "f", "a", Step("b", ["a"]))
    run_id = start(conn, "f", {})
    force_skip(conn, run_id, "b")
    conn.execute(
        "insert into pgflow.step_tasks (flow_slug, run_id, step_slug, message_id)"
        " select 'f', %s, 'b', pgmq.send('f', %s)",
        [run_id, Jsonb({})],
    )
    assert force_skip(conn, run_id, "a") == 1
    assert tasks(conn, run_id, "b")[0]["status"] == "queued"
    assert archived(conn, "f") == [tasks(conn, run_id, "a")[0]["message_id"]]


def test_the_cascade_names_a_run_that_does_not_exist(conn: Conn) -> None:
    run_id = uuid4()
    with pytest.raises(psycopg.DatabaseError) as caught:
        force_skip(conn, run_id, "a")
    assert caught.value.diag.message_primary == f"Run not found: {run_id}"
