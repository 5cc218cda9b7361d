"""Starting a run: what `start_flow` makes, refuses and completes by itself, and the steps it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

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
    read,
    run_of,
    start,
    states,
    statuses,
    tasks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Conn = psycopg.Connection[Any]

ELEMENTS: Final = [1, "two", None, [3, [4]], {"five": 5}]
MESSAGES: Final = "select msg_id, message from pgmq.q_f order by msg_id"
SEQUENTIAL: Final = ("a", Step("b", ["a"]), Step("c", ["b"]))
START_ROW: Final = "select * from pgflow.start_flow(%s, %s, %s)"
START_WITH_STATES: Final = "select pgflow.start_flow_with_states(%s, %s, %s)"
GET_RUN: Final = "select pgflow.get_run_with_states(%s)"
ROW_AS_JSON: Final = "select to_jsonb(r) from pgflow.runs as r where r.run_id = %s"
STATES_AS_JSON: Final = "select to_jsonb(s) from pgflow.step_states as s where s.run_id = %s"


def start_row(conn: Conn, flow: str, value: object, *, run_id: UUID | None = None) -> dict[str, Any]:
    """The row that `start_flow` returns; None as the value is SQL's null."""
    with conn.cursor(row_factory=dict_row) as cursor:
        [row] = cursor.execute(START_ROW, [flow, value, run_id]).fetchall()
    return row


def value_of(conn: Conn, query: str, *values: object) -> Any:
    """The only value of the only row."""
    [(value,)] = conn.execute(query, values).fetchall()
    return value


def runs(conn: Conn, flow: str) -> int:
    """How many runs the flow has."""
    return int(value_of(conn, "select count(*) from pgflow.runs where flow_slug = %s", flow))


def map_chain(conn: Conn, length: int) -> None:
    """Define flow `f` as a chain of maps."""
    first = Step("m1", type="map")
    define(conn, "f", first, *(Step(f"m{i}", [f"m{i - 1}"], "map") for i in range(2, length + 1)))


def test_a_start_makes_the_run_all_states_and_the_tasks_of_roots(conn: Conn) -> None:
    """Row 31."""
    define(conn, "f", *SEQUENTIAL)
    row = start_row(conn, "f", Jsonb({"n": 1}))
    run_id = row["run_id"]
    assert row == run_of(conn, run_id)
    assert (row["flow_slug"], row["status"], row["input"], row["output"]) == ("f", "started", {"n": 1}, None)
    assert (row["remaining_steps"], row["completed_at"], row["failed_at"]) == (3, None, None)
    assert {
        slug: (state["status"], state["initial_tasks"], state["remaining_tasks"], state["remaining_deps"])
        for slug, state in states(conn, run_id).items()
    } == {"a": ("started", 1, 1, 0), "b": ("created", 1, None, 1), "c": ("created", 1, None, 1)}
    [task] = tasks(conn, run_id)
    assert (task["flow_slug"], task["step_slug"], task["task_index"]) == ("f", "a", 0)
    assert (task["status"], task["attempts_count"], task["started_at"]) == ("queued", 0, None)
    assert (task["last_worker_id"], task["requeued_count"]) == (None, 0)
    assert [task["message_id"]] == queued(conn, "f")


def test_all_roots_start_and_nothing_else(conn: Conn) -> None:
    """Row 32."""
    define(conn, "f", "a", "b", Step("c", ["a", "b"]), Step("d", ["c"]))
    run_id = start(conn, "f")
    assert statuses(conn, run_id) == {"a": "started", "b": "started", "c": "created", "d": "created"}
    assert states(conn, run_id)["c"]["remaining_deps"] == 2
    assert [task["step_slug"] for task in tasks(conn, run_id)] == ["a", "b"]
    assert len(queued(conn, "f")) == 2


def test_a_message_names_its_task_and_nothing_else(conn: Conn) -> None:
    """Row 33; indices pair with the batch in order."""
    define(conn, "f", "a", Step("m", type="map"))
    run_id = start(conn, "f", ["x", "y", "z"])
    sent: dict[int, Any] = dict(conn.execute(MESSAGES).fetchall())
    for step, count in (("a", 1), ("m", 3)):
        rows = tasks(conn, run_id, step)
        ids = [row["message_id"] for row in rows]
        assert ids == sorted(ids)
        assert [sent.pop(message_id) for message_id in ids] == [
            {"flow_slug": "f", "run_id": str(run_id), "step_slug": step, "task_index": index}
            for index in range(count)
        ]
    assert sent == {}


def test_a_given_run_id_is_used_once(conn: Conn) -> None:
    """Row 34."""
    define(conn, "f", "a")
    given = uuid4()
    assert start_row(conn, "f", Jsonb(1), run_id=given)["run_id"] == given
    with pytest.raises(psycopg.errors.UniqueViolation, match="runs_pkey"), conn.transaction():
        start(conn, "f", 2, run_id=given)
    assert run_of(conn, given)["input"] == 1
    assert len(queued(conn, "f")) == 1


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (Jsonb({"a": []}), "not an array (got object)"),
        (Jsonb("[]"), "not an array (got string)"),
        (Jsonb(5), "not an array (got number)"),
        (Jsonb(True), "not an array (got boolean)"),
        (Jsonb(None), "not an array (got null)"),
        (None, "NULL"),
    ],
)
def test_a_root_map_needs_an_array(conn: Conn, value: object, what: str) -> None:
    """Row 35."""
    define(conn, "f", "a", Step("m", type="map"))
    with pytest.raises(psycopg.DatabaseError) as caught, conn.transaction():
        start_row(conn, "f", value)
    assert caught.value.diag.message_primary == f"Flow f has root map steps but input is {what}"
    assert (runs(conn, "f"), queued(conn, "f")) == (0, [])


def test_a_dependent_map_does_not_look_at_the_input(conn: Conn) -> None:
    define(conn, "f", "a", Step("m", ["a"], "map"))
    assert run_of(conn, start(conn, "f", {"not": "an array"}))["status"] == "started"


def test_without_root_maps_any_json_is_an_input_but_not_sql_null(conn: Conn) -> None:
    define(conn, "f", "a")
    values: tuple[object, ...] = ({}, [], "", 0, False, None)
    for value in values:
        run_id = start(conn, "f", value)
        stored = value_of(conn, "select input = %s from pgflow.runs where run_id = %s", Jsonb(value), run_id)
        assert stored is True
    with pytest.raises(psycopg.errors.NotNullViolation, match='"input"'), conn.transaction():
        start_row(conn, "f", None)
    assert runs(conn, "f") == 6


def test_an_unknown_flow_is_refused_by_the_foreign_key(conn: Conn) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="runs_flow_slug_fkey"):
        start(conn, "absent")


def test_a_root_map_has_a_task_for_each_element(conn: Conn) -> None:
    """Row 36."""
    define(conn, "f", Step("m", type="map"))
    run_id = start(conn, "f", ELEMENTS)
    state = states(conn, run_id)["m"]
    assert (state["status"], state["initial_tasks"], state["remaining_tasks"]) == ("started", 5, 5)
    assert [task["task_index"] for task in tasks(conn, run_id)] == [0, 1, 2, 3, 4]
    assert [task.input for task in claim(conn, "f")] == ELEMENTS


def test_two_root_maps_have_tasks_each(conn: Conn) -> None:
    """Row 37."""
    define(conn, "f", Step("m", type="map"), Step("n", type="map"))
    run_id = start(conn, "f", ["x", "y"])
    claimed = [(task.step_slug, task.task_index, task.input) for task in claim(conn, "f")]
    assert claimed == [("m", 0, "x"), ("m", 1, "y"), ("n", 0, "x"), ("n", 1, "y")]
    assert [state["initial_tasks"] for state in states(conn, run_id).values()] == [2, 2]


def test_a_dependent_map_does_not_know_its_size_at_the_start(conn: Conn) -> None:
    """Row 38."""
    define(conn, "f", "a", Step("m", ["a"], "map"), Step("n", ["m"], "map"), Step("s", ["n"]))
    run_id = start(conn, "f", [1, 2, 3])
    sizes = {slug: state["initial_tasks"] for slug, state in states(conn, run_id).items()}
    assert sizes == {"a": 1, "m": None, "n": None, "s": 1}
    assert [task["step_slug"] for task in tasks(conn, run_id)] == ["a"]


def test_an_empty_array_completes_a_chain_of_maps_in_the_call(conn: Conn) -> None:
    """Row 39."""
    install_realtime(conn)
    map_chain(conn, 3)
    row = start_row(conn, "f", Jsonb([]))
    assert (row["status"], row["output"], row["remaining_steps"]) == ("completed", {"m3": []}, 0)
    assert row["completed_at"] is not None
    for state in states(conn, row["run_id"]).values():
        assert (state["status"], state["output"], state["initial_tasks"]) == ("completed", [], 0)
        assert (state["remaining_tasks"], state["remaining_deps"]) == (0, 0)
        assert state["started_at"] == state["completed_at"] is not None
    assert (tasks(conn, row["run_id"]), queued(conn, "f"), archived(conn, "f")) == ([], [], [])
    sent = events(conn, row["run_id"])
    assert [event["event"] for event in sent] == [
        "run:started",
        "step:m1:completed",
        "step:m2:completed",
        "step:m3:completed",
        "run:completed",
    ]
    assert (sent[0]["payload"]["remaining_steps"], sent[0]["payload"]["status"]) == (3, "started")
    for event in sent[1:4]:
        payload = event["payload"]
        assert (payload["output"], payload["remaining_tasks"], payload["remaining_deps"]) == ([], 0, 0)
        assert payload["started_at"] == payload["completed_at"]
    assert sent[4]["payload"]["output"] == {"m3": []}


def test_a_single_child_of_empty_maps_runs_once(conn: Conn) -> None:
    """Both parents of `s` complete in one wave and are both counted."""
    define(conn, "f", Step("m", type="map"), Step("n", type="map"), Step("s", ["m", "n"]))
    run_id = start(conn, "f", [])
    assert statuses(conn, run_id) == {"m": "completed", "n": "completed", "s": "started"}
    assert run_of(conn, run_id)["remaining_steps"] == 1
    [task] = claim(conn, "f")
    assert (task.step_slug, task.input, task.flow_input) == ("s", {"m": [], "n": []}, None)
    complete(conn, task, "done")
    assert run_of(conn, run_id)["output"] == {"s": "done"}


def test_a_map_below_a_skipped_step_is_empty(conn: Conn) -> None:
    define(conn, "f", Step("a", required={"go": True}), Step("m", ["a"], "map"), Step("s", ["m"]))
    run_id = start(conn, "f", {})
    assert statuses(conn, run_id) == {"a": "skipped", "m": "completed", "s": "started"}
    assert states(conn, run_id)["m"]["output"] == []
    [task] = claim(conn, "f")
    assert task.input == {"m": []}


def test_a_start_delay_hides_the_first_message_only(conn: Conn) -> None:
    """Row 41."""
    define(conn, "f", Step("a", start_delay=300, base_delay=7), Step("m", ["a"], "map", start_delay=200))
    run_id = start(conn, "f")
    [message_id] = queued(conn, "f")
    assert 290 < hidden_s(conn, "f", message_id) <= 300
    assert read(conn, "f") == []
    [task] = claim(conn, "f", ids=[message_id])
    fail(conn, task)
    assert 10 < hidden_s(conn, "f", message_id) <= 14
    [task] = claim(conn, "f", ids=[message_id])
    complete(conn, task, ["x", "y"])
    ids = [row["message_id"] for row in tasks(conn, run_id, "m")]
    assert ids == queued(conn, "f")
    assert all(190 < hidden_s(conn, "f", message_id) <= 200 for message_id in ids)


def test_an_empty_flow_completes_at_once(conn: Conn) -> None:
    """Row 43; the row is read again at the end."""
    install_realtime(conn)
    define(conn, "f")
    row = start_row(conn, "f", Jsonb({"n": 1}))
    assert (row["status"], row["output"], row["remaining_steps"]) == ("completed", None, 0)
    assert row["completed_at"] is not None
    assert [event["event"] for event in events(conn, row["run_id"])] == ["run:started", "run:completed"]


def test_a_condition_that_fails_the_run_ends_the_start(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", "a", Step("b", required={"go": True}, when_unmet="fail"), Step("m", type="map"))
    row = start_row(conn, "f", Jsonb([]))
    assert (row["status"], row["remaining_steps"]) == ("failed", 3)
    assert statuses(conn, row["run_id"]) == {"a": "created", "b": "failed", "m": "created"}
    assert (tasks(conn, row["run_id"]), queued(conn, "f")) == ([], [])
    assert [event["event"] for event in events(conn, row["run_id"])] == [
        "run:started",
        "step:b:failed",
        "run:failed",
    ]


def test_started_events_carry_what_the_step_has_to_do(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", "a", Step("m", type="map"), Step("s", ["m"]))
    run_id = start(conn, "f", [1, 2])
    sent = events(conn, run_id)
    assert sent[0]["event"] == "run:started"
    payloads = {event["event"]: event["payload"] for event in sent[1:]}
    assert {
        name: (payload["remaining_tasks"], payload["remaining_deps"]) for name, payload in payloads.items()
    } == {"step:a:started": (1, 0), "step:m:started": (2, 0)}
    conn.execute("select pgflow.start_ready_steps(%s)", [run_id])
    assert (len(events(conn, run_id)), len(tasks(conn, run_id)), len(queued(conn, "f"))) == (3, 3, 3)


@pytest.mark.parametrize("end", ["failed", "completed"])
def test_no_step_of_an_ended_run_starts(conn: Conn, end: str) -> None:
    define(conn, "f", "a", Step("b", ["a"]))
    run_id = start(conn, "f")
    conn.execute("update pgflow.step_states set remaining_deps = 0 where step_slug = 'b'")
    conn.execute(
        "update pgflow.runs set status = %(end)s,"
        " failed_at = case %(end)s when 'failed' then now() end,"
        " completed_at = case %(end)s when 'completed' then now() end",
        {"end": end},
    )
    conn.execute("select pgflow.start_ready_steps(%s)", [run_id])
    assert statuses(conn, run_id)["b"] == "created"
    assert (len(tasks(conn, run_id)), len(queued(conn, "f"))) == (1, 1)


def test_a_taskless_single_completes_with_null_and_counts(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", "a", Step("b", ["a"]), Step("c", ["b"]))
    run_id = start(conn, "f")
    cascade = "select pgflow.cascade_complete_taskless_steps(%s)"
    assert value_of(conn, cascade, run_id) == 0
    conn.execute("update pgflow.step_states set remaining_deps = 0, initial_tasks = 0 where step_slug = 'b'")
    assert value_of(conn, cascade, run_id) == 1
    after = states(conn, run_id)
    assert (after["b"]["status"], after["b"]["output"], after["b"]["remaining_tasks"]) == (
        "completed",
        None,
        0,
    )
    assert (after["c"]["status"], after["c"]["initial_tasks"], after["c"]["remaining_deps"]) == (
        "created",
        1,
        0,
    )
    assert run_of(conn, run_id)["remaining_steps"] == 2
    assert events(conn, run_id)[-1]["payload"]["output"] is None
    assert value_of(conn, cascade, run_id) == 0


def test_only_a_started_run_without_steps_left_is_completed(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", Step("a", required={"go": True}), Step("b", ["a"]), Step("z", forbidden={"no": 1}))
    run_id = start(conn, "f", {"no": 1})
    assert statuses(conn, run_id) == {"a": "skipped", "b": "started", "z": "skipped"}
    again = "select pgflow.maybe_complete_run(%s)"
    conn.execute(again, [run_id])
    assert run_of(conn, run_id)["status"] == "started"
    conn.execute("update pgflow.runs set status = 'failed', failed_at = now(), remaining_steps = 0")
    conn.execute(again, [run_id])
    assert (run_of(conn, run_id)["status"], run_of(conn, run_id)["completed_at"]) == ("failed", None)
    conn.execute("update pgflow.runs set status = 'started', failed_at = null, remaining_steps = 1")
    [task] = claim(conn, "f")
    complete(conn, task, 7)
    assert run_of(conn, run_id)["output"] == {"b": 7}, "skipped leaves are absent"
    conn.execute(again, [run_id])
    assert [event["event"] for event in events(conn, run_id)].count("run:completed") == 1


def test_a_run_whose_leaves_are_all_skipped_has_no_output(conn: Conn) -> None:
    define(conn, "f", Step("a", required={"go": True}), Step("b", ["a"], required={"a": 1}))
    row = start_row(conn, "f", Jsonb({}))
    assert (row["status"], row["output"]) == ("completed", None)


def test_start_with_states_gives_the_run_and_all_columns_of_its_states(conn: Conn) -> None:
    define(conn, "f", *SEQUENTIAL)
    given = uuid4()
    started = value_of(conn, START_WITH_STATES, "f", Jsonb({"n": 2**60 + 1}), given)
    assert sorted(started) == ["run", "steps"]
    assert started["run"] == value_of(conn, ROW_AS_JSON, given)
    assert started["run"]["input"] == {"n": 2**60 + 1}
    expected = by_slug([row[0] for row in conn.execute(STATES_AS_JSON, [given])])
    assert by_slug(started["steps"]) == expected
    assert len(expected) == 3
    assert value_of(conn, GET_RUN, given) == started
    assert value_of(conn, GET_RUN, uuid4()) is None


def by_slug(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same states, by slug."""
    return sorted(rows, key=lambda row: str(row["step_slug"]))


def test_client_roles_need_the_right_to_the_two_entry_points_only(conn: Conn) -> None:
    define(conn, "f", "a")
    conn.execute("create role pgflow_test_client")
    conn.execute("grant usage on schema pgflow to pgflow_test_client")
    conn.execute(
        "grant execute on function pgflow.start_flow_with_states(text, jsonb, uuid),"
        " pgflow.get_run_with_states(uuid) to pgflow_test_client"
    )
    conn.execute("set local role pgflow_test_client")
    started = value_of(conn, START_WITH_STATES, "f", Jsonb(1), None)
    assert value_of(conn, GET_RUN, started["run"]["run_id"]) == started
    with pytest.raises(psycopg.errors.InsufficientPrivilege), conn.transaction():
        start(conn, "f", 1)
