"""Completing tasks: what `complete_task` stores, counts, starts and ends, and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

import pytest

from tests.sql.pgflow.engine import (
    Step,
    Task,
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

if TYPE_CHECKING:
    import psycopg

    Conn = psycopg.Connection[Any]

WITHOUT_OUTPUT: Final = "select * from pgflow.complete_task(%s, %s, %s, null)"
END_STEP: Final = """
update pgflow.step_states
set status = %(to)s,
  remaining_tasks = case when %(to)s in ('completed', 'failed') then 0 end,
  skip_reason = case %(to)s when 'skipped' then 'handler_failed' end,
  started_at = case when %(to)s <> 'created' then started_at end
where step_slug = %(step)s
"""
FAIL_RUN: Final = "update pgflow.runs set status = 'failed', failed_at = now() where run_id = %s"


def everything(conn: Conn, run_id: UUID) -> tuple[object, ...]:
    """All that a callback may change of a run, its messages aside."""
    return run_of(conn, run_id), states(conn, run_id), tasks(conn, run_id), events(conn, run_id)


def names(conn: Conn, run_id: UUID) -> list[str]:
    """The names of a run's events, in order."""
    return [event["event"] for event in events(conn, run_id)]


def claimed_map(conn: Conn, *below: Step) -> tuple[UUID, list[Task]]:
    """A run whose map `m` has three started tasks."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map"), *below)
    run_id = start(conn, "f", ["x", "y", "z"])
    return run_id, claim(conn, "f")


def claimed_single(conn: Conn, *others: Step | str, **options: Any) -> tuple[UUID, Task]:
    """A run whose root `a` is started; other roots stay queued."""
    install_realtime(conn)
    define(conn, "f", "a", *others, **options)
    run_id = start(conn, "f")
    [row] = tasks(conn, run_id, "a")
    [task] = claim(conn, "f", ids=[row["message_id"]])
    return run_id, task


def test_a_completed_task_ends_its_step_and_starts_the_child(conn: Conn) -> None:
    """Row 53."""
    run_id, task = claimed_single(conn, Step("b", ["a"]), Step("c", ["b"]))
    row = complete(conn, task, {"n": 1})
    assert [row] == tasks(conn, run_id, "a")
    assert row is not None
    assert (row["status"], row["output"], row["error_message"]) == ("completed", {"n": 1}, None)
    assert (row["attempts_count"], row["message_id"]) == (1, task.msg_id)
    assert row["completed_at"] is not None
    assert row["failed_at"] is None
    after = states(conn, run_id)
    assert (after["a"]["status"], after["a"]["output"]) == ("completed", {"n": 1})
    assert after["a"]["remaining_tasks"] == 0
    assert after["a"]["completed_at"] is not None
    assert (after["b"]["status"], after["b"]["remaining_deps"]) == ("started", 0)
    assert after["b"]["remaining_tasks"] == 1
    assert (after["c"]["status"], after["c"]["remaining_deps"]) == ("created", 1)
    assert run_of(conn, run_id)["remaining_steps"] == 2
    [child] = tasks(conn, run_id, "b")
    assert (archived(conn, "f"), queued(conn, "f")) == ([task.msg_id], [child["message_id"]])
    assert names(conn, run_id)[1:] == ["step:a:started", "step:a:completed", "step:b:started"]
    assert events(conn, run_id)[2]["payload"]["output"] == {"n": 1}


def test_a_queued_task_is_not_completed(conn: Conn) -> None:
    """Row 54; and its output is not checked: a map waits for an array here."""
    install_realtime(conn)
    define(conn, "f", "a", Step("m", ["a"], "map"))
    run_id = start(conn, "f")
    before, live = everything(conn, run_id), queued(conn, "f")
    for output in (["x"], {"not": "an array"}):
        assert [complete(conn, (run_id, "a", 0), output)] == tasks(conn, run_id)
    assert everything(conn, run_id) == before
    assert (queued(conn, "f"), archived(conn, "f")) == (live, [])


def test_an_ended_task_is_not_completed_again(conn: Conn) -> None:
    """Row 55: the step is still started, then it is completed."""
    run_id, (x, y, z) = claimed_map(conn, Step("s", ["m"]))
    complete(conn, x, "first")
    conn.execute(
        "update pgflow.step_tasks set status = 'failed', failed_at = now() where task_index = %s",
        [y.task_index],
    )
    before = everything(conn, run_id)
    for task in (x, y):
        assert complete(conn, task, "second") == tasks(conn, run_id)[task.task_index]
    assert everything(conn, run_id) == before
    conn.execute("update pgflow.step_tasks set status = 'started', failed_at = null where task_index = 1")
    complete(conn, y, "y")
    complete(conn, z, "z")
    before = everything(conn, run_id)
    assert complete(conn, z, "again") == tasks(conn, run_id, "m")[2]
    assert everything(conn, run_id) == before
    assert len(queued(conn, "f")) == 1


def test_a_task_that_is_not_there_gives_no_row(conn: Conn) -> None:
    run_id, _ = claimed_single(conn)
    before = everything(conn, run_id)
    for key in ((uuid4(), "a", 0), (run_id, "absent", 0), (run_id, "a", 1)):
        assert complete(conn, key) is None
    assert everything(conn, run_id) == before


def test_the_last_step_completes_the_run_with_the_outputs_of_leaves(conn: Conn) -> None:
    """Row 56."""
    skipped = Step("s", required={"go": True})
    run_id, task = claimed_single(conn, Step("b", ["a"]), Step("c", ["a"]), skipped)
    complete(conn, task, "inner")
    b, c = claim(conn, "f")
    complete(conn, b, [1])
    assert run_of(conn, run_id)["status"] == "started"
    complete(conn, c, {"leaf": None})
    run = run_of(conn, run_id)
    assert (run["status"], run["remaining_steps"]) == ("completed", 0)
    assert run["output"] == {"b": [1], "c": {"leaf": None}}
    assert run["completed_at"] is not None
    before = everything(conn, run_id)
    complete(conn, c, "again")
    assert everything(conn, run_id) == before
    assert names(conn, run_id).count("run:completed") == 1
    assert names(conn, run_id)[-2:] == ["step:c:completed", "run:completed"]
    assert events(conn, run_id)[-1]["payload"]["output"] == run["output"]
    assert queued(conn, "f") == []


def test_a_missing_output_completes_the_step_with_null(conn: Conn) -> None:
    """Row 57."""
    run_id, task = claimed_single(conn, Step("b", ["a"]))
    assert conn.execute(WITHOUT_OUTPUT, task.key).fetchone() is not None
    state = states(conn, run_id)["a"]
    assert (state["status"], state["output"]) == ("completed", None)
    nulls = "select t.output is null, s.output is null from pgflow.step_tasks as t"
    nulls += (
        " join pgflow.step_states as s using (run_id, step_slug) where t.run_id = %s and s.step_slug = 'a'"
    )
    assert conn.execute(nulls, [run_id]).fetchall() == [(True, True)]
    [child] = claim(conn, "f")
    assert child.input == {"a": None}
    conn.execute(WITHOUT_OUTPUT, child.key)
    assert run_of(conn, run_id)["output"] == {"b": None}


def test_a_map_collects_outputs_by_index(conn: Conn) -> None:
    """Rows 59 and 60; SQL's null becomes JSON's. No index brings the rows in order."""
    for way in ("indexscan", "indexonlyscan", "bitmapscan"):
        conn.execute(f"set local enable_{way} = off")
    run_id, (x, y, z) = claimed_map(conn, Step("s", ["m"]))
    complete(conn, z, {"of": "z"})
    conn.execute(WITHOUT_OUTPUT, x.key)
    state = states(conn, run_id)["m"]
    assert (state["status"], state["remaining_tasks"], state["output"]) == ("started", 1, None)
    assert (statuses(conn, run_id)["s"], tasks(conn, run_id, "s")) == ("created", [])
    assert run_of(conn, run_id)["remaining_steps"] == 2
    assert len(archived(conn, "f")) == 2
    complete(conn, y, [1])
    state = states(conn, run_id)["m"]
    assert (state["status"], state["remaining_tasks"]) == ("completed", 0)
    assert state["output"] == [None, [1], {"of": "z"}]
    [sent] = [event for event in events(conn, run_id) if event["event"] == "step:m:completed"]
    assert sent["payload"]["output"] == state["output"]
    [child] = claim(conn, "f")
    assert child.input == {"m": state["output"]}
    complete(conn, child)
    assert run_of(conn, run_id)["output"] == {"s": None}


def test_a_map_below_a_map_gets_its_size_at_the_end(conn: Conn) -> None:
    """Row 61."""
    run_id, (x, y, z) = claimed_map(conn, Step("n", ["m"], "map"))
    for task in (z, x):
        complete(conn, task, [task.input] * 5)
        state = states(conn, run_id)["n"]
        assert (state["status"], state["initial_tasks"], state["remaining_deps"]) == ("created", None, 1)
    complete(conn, y, "not an array")
    state = states(conn, run_id)["n"]
    assert (state["status"], state["initial_tasks"], state["remaining_tasks"]) == ("started", 3, 3)
    below = claim(conn, "f")
    assert [task.input for task in below] == [["x"] * 5, "not an array", ["z"] * 5]
    for task in below:
        complete(conn, task, task.task_index)
    assert run_of(conn, run_id)["output"] == {"n": [0, 1, 2]}


def test_a_map_below_a_single_gets_the_length_of_its_array(conn: Conn) -> None:
    run_id, task = claimed_single(conn, Step("m", ["a"], "map"))
    complete(conn, task, [[1, 2], None, "x", []])
    state = states(conn, run_id)["m"]
    assert (state["status"], state["initial_tasks"], state["remaining_tasks"]) == ("started", 4, 4)
    assert [task.input for task in claim(conn, "f")] == [[1, 2], None, "x", []]


def test_a_child_of_several_parents_starts_once_with_all(conn: Conn) -> None:
    """Row 63."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map"), "a", Step("s", ["m", "a"]))
    run_id = start(conn, "f", [1, 2])
    a, first, second = claim(conn, "f")
    for task, left in ((first, 2), (second, 1)):
        complete(conn, task, f"m{task.task_index}")
        assert states(conn, run_id)["s"]["remaining_deps"] == left
        assert statuses(conn, run_id)["s"] == "created"
    complete(conn, a, "a")
    assert names(conn, run_id).count("step:s:started") == 1
    [child] = claim(conn, "f")
    assert child.input == {"m": ["m0", "m1"], "a": "a"}


def test_an_empty_array_completes_the_map_below_and_starts_its_child(conn: Conn) -> None:
    """Row 64; the parent's event comes before its children's."""
    run_id, task = claimed_single(conn, Step("m", ["a"], "map"), Step("n", ["m"], "map"), Step("s", ["n"]))
    complete(conn, task, [])
    assert statuses(conn, run_id) == {"a": "completed", "m": "completed", "n": "completed", "s": "started"}
    assert run_of(conn, run_id)["remaining_steps"] == 1
    assert names(conn, run_id)[2:] == [
        "step:a:completed",
        "step:m:completed",
        "step:n:completed",
        "step:s:started",
    ]
    [child] = claim(conn, "f")
    assert child.input == {"n": []}


def test_an_empty_array_can_complete_the_run(conn: Conn) -> None:
    run_id, task = claimed_single(conn, Step("m", ["a"], "map"))
    row = complete(conn, task, [])
    assert row is not None
    assert row["status"] == "completed"
    assert (run_of(conn, run_id)["status"], run_of(conn, run_id)["output"]) == ("completed", {"m": []})
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [task.msg_id])


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("'{\"k\": 1}'", "object"),
        ("'\"text\"'", "string"),
        ("'5'", "number"),
        ("'true'", "boolean"),
        ("'null'", "null"),
        ("null", "null"),
    ],
)
def test_an_output_that_no_map_can_use_fails_the_run(conn: Conn, output: str, what: str) -> None:
    """Row 65; `w` is queued, `x` started, `y` completed, and nothing is retried."""
    below = (Step("m", ["a"], "map"), Step("s", ["a"]), Step("z", ["m"]))
    run_id, task = claimed_single(conn, *below, "w", "x", "y", max_attempts=3)
    ids = {row["step_slug"]: row["message_id"] for row in tasks(conn, run_id)}
    _, y = claim(conn, "f", ids=[ids["x"], ids["y"]])
    complete(conn, y, "done")
    [text] = conn.execute(
        f"select t.output is not distinct from {output}::jsonb, t.status, t.error_message,"
        f" t.failed_at is null from pgflow.complete_task(%s, 'a', 0, {output}::jsonb) as t",
        [run_id],
    ).fetchall()
    assert text == (True, "failed", f"[TYPE_VIOLATION] Produced {what} instead of array", False)
    rows = {row["step_slug"]: row for row in tasks(conn, run_id)}
    assert {slug: row["status"] for slug, row in rows.items()} == {
        "a": "failed",
        "w": "cancelled",
        "x": "cancelled",
        "y": "completed",
    }
    assert rows["a"]["attempts_count"] == 1
    assert (rows["w"]["attempts_count"], rows["w"]["failed_at"], rows["w"]["error_message"]) == (
        0,
        None,
        None,
    )
    assert (rows["x"]["attempts_count"], rows["x"]["started_at"] is None) == (1, False)
    step_text = f"[TYPE_VIOLATION] Map step m expects array input but dependency a produced {what}"
    state = states(conn, run_id)["a"]
    assert (state["status"], state["error_message"], state["output"]) == ("failed", step_text, None)
    assert state["failed_at"] is not None
    others = {
        "m": "created",
        "s": "created",
        "w": "started",
        "x": "started",
        "y": "completed",
        "z": "created",
    }
    assert statuses(conn, run_id) == {"a": "failed", **others}
    run = run_of(conn, run_id)
    assert (run["status"], run["output"], run["failed_at"] is None) == ("failed", None, False)
    assert (queued(conn, "f"), archived(conn, "f")) == ([], sorted(ids.values()))
    run_failed, step_failed = events(conn, run_id)[-2:]
    assert (run_failed["event"], step_failed["event"]) == ("run:failed", "step:a:failed")
    assert "error_message" not in run_failed["payload"]
    assert step_failed["payload"]["error_message"] == step_text
    before = everything(conn, run_id)
    complete(conn, task, [])
    assert everything(conn, run_id) == before


def test_only_maps_below_whose_size_is_unknown_ask_for_an_array(conn: Conn) -> None:
    below = (Step("s", ["a"]), Step("m", ["a"], "map"))
    run_id, task = claimed_single(conn, *below, "b", Step("n", ["b"], "map"))
    conn.execute("update pgflow.step_states set initial_tasks = 0 where step_slug = 'm'")
    complete(conn, task, {"no": "array"})
    done = {"a": "completed", "s": "started", "m": "completed"}
    assert statuses(conn, run_id) == {**done, "b": "started", "n": "created"}


def test_map_tasks_are_retried_one_by_one(conn: Conn) -> None:
    run_id, (x, y, z) = claimed_map(conn)
    complete(conn, x, 0)
    fail(conn, y)
    assert [row["status"] for row in tasks(conn, run_id)] == ["completed", "queued", "started"]
    complete(conn, z, 2)
    assert states(conn, run_id)["m"]["remaining_tasks"] == 1
    [again] = claim(conn, "f", ids=[y.msg_id])
    assert (again.task_index, again.input) == (1, "y")
    complete(conn, again, 1)
    assert run_of(conn, run_id)["output"] == {"m": [0, 1, 2]}


def test_a_condition_below_can_fail_the_run(conn: Conn) -> None:
    """Conditions come after the step's event; nothing below starts; the own message is archived."""
    below = Step("b", ["a"], required={"a": {"go": True}}, when_unmet="fail")
    run_id, task = claimed_single(conn, below, Step("c", ["a"]), "w")
    row = complete(conn, task, {"go": False})
    assert row is not None
    assert (row["status"], row["output"]) == ("completed", {"go": False})
    assert statuses(conn, run_id) == {"a": "completed", "b": "failed", "c": "created", "w": "started"}
    assert run_of(conn, run_id)["status"] == "failed"
    assert [row["status"] for row in tasks(conn, run_id, "w")] == ["cancelled"]
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1, 2])
    assert names(conn, run_id)[-3:] == ["step:a:completed", "step:b:failed", "run:failed"]


def test_a_failed_run_is_left_alone(conn: Conn) -> None:
    """Row 67; the first guard: not even the message is archived."""
    run_id, task = claimed_single(conn, Step("m", ["a"], "map"))
    conn.execute(FAIL_RUN, [run_id])
    before = everything(conn, run_id)
    outputs: tuple[object, ...] = ([], "not an array")
    for output in outputs:
        assert [complete(conn, task, output)] == tasks(conn, run_id)
    assert everything(conn, run_id) == before
    assert (queued(conn, "f"), archived(conn, "f")) == ([task.msg_id], [])


@pytest.mark.parametrize("ended", ["skipped", "completed", "failed", "created"])
def test_a_late_callback_of_an_ended_step_archives_its_message_only(conn: Conn, ended: str) -> None:
    """Row 68; the fourth guard."""
    run_id, task = claimed_single(conn, Step("m", ["a"], "map"), "w")
    conn.execute(END_STEP, {"to": ended, "step": "a"})
    before = everything(conn, run_id)
    assert [complete(conn, task, "not an array")] == tasks(conn, run_id, "a")
    assert everything(conn, run_id) == before
    assert archived(conn, "f") == [task.msg_id]


def test_tasks_without_a_message_complete(conn: Conn) -> None:
    run_id, task = claimed_single(conn, Step("b", ["a"]))
    conn.execute("update pgflow.step_tasks set message_id = null")
    complete(conn, task, 1)
    assert statuses(conn, run_id) == {"a": "completed", "b": "started"}
    conn.execute("update pgflow.step_tasks set message_id = null")
    conn.execute(END_STEP, {"to": "skipped", "step": "b"})
    assert [complete(conn, (run_id, "b", 0), 1)] == tasks(conn, run_id, "b")
