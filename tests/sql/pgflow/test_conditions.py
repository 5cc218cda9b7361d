"""When a ready step's condition is tested, against what, and what each mode does when it is not met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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

MODES: Final = ("fail", "skip", "skip-cascade")
RESOLVE: Final = "select pgflow.cascade_resolve_conditions(%s)"

# (subject, required, forbidden, met)
TESTS: Final[tuple[tuple[Any, Any, Any, bool], ...]] = (
    ({"plan": "pro", "n": 1}, {"plan": "pro"}, None, True),
    ({"plan": "free"}, {"plan": "pro"}, None, False),
    ({"a": {"b": [1, 2]}}, {"a": {"b": [2]}}, None, True),
    ({"a": {"b": [1, 2]}}, {"a": {"b": [3]}}, None, False),
    ({"a": None}, {"a": None}, None, True),
    ({}, {"a": None}, None, False),
    ({"plan": "pro"}, None, {"plan": "pro"}, False),
    ({"plan": "free"}, None, {"plan": "pro"}, True),
    ({}, None, {"a": None}, True),
    ({}, {}, None, True),
    ({"a": 1}, {}, None, True),
    ([], {}, None, False),
    ([{}], {}, None, False),
    (1, {}, None, False),
    ("text", {}, None, False),
    (None, {}, None, False),
    ({}, None, {}, False),
    ({"a": 1}, None, {}, False),
    ([], None, {}, True),
    (1, None, {}, True),
    (None, None, {}, True),
    ([{"a": 1}], {"a": 1}, None, False),
    # row 86: both patterns, four inputs
    ({"plan": "pro", "beta": False}, {"plan": "pro"}, {"beta": True}, True),
    ({"plan": "pro", "beta": True}, {"plan": "pro"}, {"beta": True}, False),
    ({"plan": "free", "beta": False}, {"plan": "pro"}, {"beta": True}, False),
    ({"plan": "free", "beta": True}, {"plan": "pro"}, {"beta": True}, False),
)


def resolve(conn: Conn, run_id: UUID) -> bool:
    """Call the private function by hand."""
    row = conn.execute(RESOLVE, [run_id]).fetchone()
    assert row is not None
    assert isinstance(row[0], bool)
    return row[0]


def skipped(conn: Conn, run_id: UUID) -> dict[str, str]:
    """The reason of each skipped step."""
    return {slug: row["skip_reason"] for slug, row in states(conn, run_id).items() if row["skip_reason"]}


def test_a_root_step_s_patterns_are_tested_against_the_run_s_input(conn: Conn) -> None:
    """Rows 83, 86."""
    steps = [Step(f"s{i}", required=row[1], forbidden=row[2]) for i, row in enumerate(TESTS)]
    define(conn, "f", *steps)
    for i, (subject, _, _, met) in enumerate(TESTS):
        run_id = start(conn, "f", subject)
        assert statuses(conn, run_id)[f"s{i}"] == ("started" if met else "skipped"), TESTS[i]
        assert len(tasks(conn, run_id, f"s{i}")) == int(met)


def test_an_inner_step_s_patterns_are_tested_against_its_parents_outputs(conn: Conn) -> None:
    """Rows 83, 86; a pattern stands under the parent's slug, and the run's input does not count."""
    steps = []
    for i, (_, required, forbidden, _) in enumerate(TESTS):
        under = [None if pattern is None else {f"p{i}": pattern} for pattern in (required, forbidden)]
        steps += [Step(f"p{i}"), Step(f"c{i}", [f"p{i}"], required=under[0], forbidden=under[1])]
    define(conn, "f", *steps)
    run_id = start(conn, "f", {f"p{i}": {"x": i} for i in range(len(TESTS))})
    work = claimed(conn, "f")
    for i, row in enumerate(TESTS):
        complete(conn, work[f"p{i}", 0], row[0])
    got = statuses(conn, run_id)
    for i, row in enumerate(TESTS):
        assert got[f"c{i}"] == ("started" if row[3] else "skipped"), row


@pytest.mark.parametrize(("required", "met"), [({"a": 1, "b": 2}, True), ({"a": 1, "b": 3}, False)])
def test_the_subject_of_an_inner_step_holds_every_completed_parent(
    conn: Conn, required: Any, met: bool
) -> None:
    define(conn, "f", "a", "b", Step("c", ["a", "b"], required=required))
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    complete(conn, work["a", 0], 1)
    assert statuses(conn, run_id)["c"] == "created"
    complete(conn, work["b", 0], 2)
    assert statuses(conn, run_id)["c"] == ("started" if met else "skipped")


def test_an_unmet_root_is_skipped_with_reason_and_event_and_the_run_goes_on(conn: Conn) -> None:
    """Row 83."""
    install_realtime(conn)
    define(conn, "f", Step("a", required={"x": 1}), "b", Step("c", ["a", "b"]))
    run_id = start(conn, "f", {})
    state = states(conn, run_id)
    assert (state["a"]["status"], state["a"]["skip_reason"]) == ("skipped", "condition_unmet")
    assert (state["a"]["remaining_tasks"], state["a"]["error_message"]) == (None, None)
    assert state["a"]["skipped_at"] is not None
    assert (state["c"]["status"], state["c"]["remaining_deps"]) == ("created", 1)
    assert run_of(conn, run_id)["remaining_steps"] == 2
    assert happened(conn, run_id) == ["run:started", "step:a:skipped", "step:b:started"]
    assert events(conn, run_id)[0]["payload"]["remaining_steps"] == 3
    payload = events(conn, run_id)[1]["payload"]
    assert payload.pop("skipped_at")
    assert payload == {
        "event_type": "step:skipped",
        "run_id": str(run_id),
        "flow_slug": "f",
        "step_slug": "a",
        "status": "skipped",
        "skip_reason": "condition_unmet",
    }
    complete(conn, claim(conn, "f")[0], 1)
    (child,) = claim(conn, "f")
    assert child.input == {"b": 1}


def test_an_unmet_root_with_mode_fail_fails_step_and_run_before_anything_starts(conn: Conn) -> None:
    """Row 84."""
    install_realtime(conn)
    define(conn, "f", "b", Step("a", required={"x": 1}, when_unmet="fail"))
    run_id = start(conn, "f", {})
    assert statuses(conn, run_id) == {"a": "failed", "b": "created"}
    state, run = states(conn, run_id)["a"], run_of(conn, run_id)
    assert (state["error_message"], state["failed_at"] is not None) == ("Condition not met", True)
    assert (run["status"], run["failed_at"] is not None, run["completed_at"]) == ("failed", True, None)
    assert (tasks(conn, run_id), queued(conn, "f")) == ([], [])
    assert happened(conn, run_id) == ["run:started", "step:a:failed", "run:failed"]
    step, failed = (event["payload"] for event in events(conn, run_id)[1:])
    assert step.pop("failed_at")
    assert failed.pop("failed_at")
    both = {"run_id": str(run_id), "status": "failed", "error_message": "Condition not met"}
    assert step == {**both, "event_type": "step:failed", "step_slug": "a"}
    assert failed == {**both, "event_type": "run:failed", "flow_slug": "f"}


def test_an_unmet_inner_step_with_mode_fail_cancels_and_archives_the_run_s_open_tasks(conn: Conn) -> None:
    """Row 84; null message ids are left out."""
    install_realtime(conn)
    child = Step("c", ["a"], required={"a": 2}, when_unmet="fail")
    define(conn, "f", "a", child, "b", "n", Step("late", start_delay=900))
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    ids = queued(conn, "f")
    conn.execute("update pgflow.step_tasks set message_id = null where step_slug = 'n'")
    before = len(happened(conn, run_id))
    row = complete(conn, work["a", 0], 1)
    assert row is not None
    assert (row["status"], row["output"]) == ("completed", 1)
    assert {task["step_slug"]: task["status"] for task in tasks(conn, run_id)} == {
        "a": "completed",
        "b": "cancelled",
        "late": "cancelled",
        "n": "cancelled",
    }
    assert statuses(conn, run_id)["c"] == "failed"
    assert statuses(conn, run_id)["b"] == "started"
    assert run_of(conn, run_id)["status"] == "failed"
    assert (queued(conn, "f"), set(archived(conn, "f"))) == (
        [work["n", 0].msg_id],
        set(ids) - {work["n", 0].msg_id},
    )
    assert happened(conn, run_id)[before:] == ["step:a:completed", "step:c:failed", "run:failed"]


@pytest.mark.parametrize("inner", [False, True])
def test_an_unmet_step_with_mode_skip_cascade_takes_its_chain_along(conn: Conn, inner: bool) -> None:
    """Row 85."""
    define(
        conn,
        "f",
        "p",
        Step("a", ["p"] if inner else [], required={"x": 1}, when_unmet="skip-cascade"),
        Step("b", ["a"]),
        Step("c", ["b"], type="map"),
    )
    run_id = start(conn, "f", {})
    complete(conn, claim(conn, "f")[0], 1)
    assert skipped(conn, run_id) == {
        "a": "condition_unmet",
        "b": "dependency_skipped",
        "c": "dependency_skipped",
    }
    run = run_of(conn, run_id)
    output = None if inner else {"p": 1}
    assert (run["status"], run["remaining_steps"], run["output"]) == ("completed", 0, output)


def test_an_absent_parent_satisfies_forbidden_and_fails_required_patterns(conn: Conn) -> None:
    """Row 87; it has no key, which is not a key with null."""
    define(
        conn,
        "f",
        Step("p", required={"x": 1}),
        Step("without", ["p"], forbidden={"p": {}}),
        Step("with", ["p"], required={"p": {}}),
        Step("any", ["p"], required={}),
        Step("none", ["p"], forbidden={}),
        Step("without_null", ["p"], forbidden={"p": None}),
        Step("with_null", ["p"], required={"p": None}),
    )
    run_id = start(conn, "f", {})
    assert statuses(conn, run_id) == {
        "p": "skipped",
        "without": "started",
        "with": "skipped",
        "any": "started",
        "none": "skipped",
        "without_null": "started",
        "with_null": "skipped",
    }


def test_a_child_counts_each_of_its_parents_that_were_skipped_at_once(conn: Conn) -> None:
    """Row 88."""
    roots = [Step(slug, required={"x": 1}) for slug in ("a", "b", "c")]
    define(conn, "f", *roots, "d", Step("join", ["a", "b", "c", "d"]), Step("two", ["a", "b"]))
    run_id = start(conn, "f", {})
    state = states(conn, run_id)
    assert (state["join"]["status"], state["join"]["remaining_deps"]) == ("created", 1)
    assert (state["two"]["status"], state["two"]["remaining_deps"]) == ("started", 0)
    assert run_of(conn, run_id)["remaining_steps"] == 3
    complete(conn, claimed(conn, "f")["d", 0], 4)
    (join,) = claim(conn, "f")
    assert (join.step_slug, join.input) == ("join", {"d": 4})


def test_a_skip_that_leaves_another_condition_unmet_skips_on_in_the_same_call(conn: Conn) -> None:
    """Row 89."""
    install_realtime(conn)
    define(
        conn,
        "f",
        Step("a", required={"x": 1}),
        Step("b", ["a"], required={"a": {}}),
        Step("c", ["b"], required={"b": {}}, when_unmet="skip-cascade"),
        Step("d", ["c"], type="map"),
    )
    run_id = start(conn, "f", {})
    assert skipped(conn, run_id) == {
        "a": "condition_unmet",
        "b": "condition_unmet",
        "c": "condition_unmet",
        "d": "dependency_skipped",
    }
    order = [f"step:{slug}:skipped" for slug in "abcd"]
    assert happened(conn, run_id) == ["run:started", *order, "run:completed"]


def test_a_skipped_parent_leaves_its_child_map_empty(conn: Conn) -> None:
    """Row 89; the map with that one parent has no tasks, and the emptiness passes on."""
    define(
        conn,
        "f",
        Step("a", required={"x": 1}),
        Step("m", ["a"], type="map"),
        Step("n", ["m"], type="map"),
        Step("s", ["n"]),
    )
    run_id = start(conn, "f", {})
    assert statuses(conn, run_id) == {"a": "skipped", "m": "completed", "n": "completed", "s": "started"}
    (task,) = claim(conn, "f")
    assert task.input == {"n": []}


def test_of_several_unmet_steps_the_first_with_mode_fail_decides_alone(conn: Conn) -> None:
    """The order is that of definition, not of slugs; the others stay created."""
    install_realtime(conn)
    unmet = {"x": 1}
    define(
        conn,
        "f",
        Step("s", required=unmet),
        Step("k", required=unmet, when_unmet="skip-cascade"),
        Step("z", required=unmet, when_unmet="fail"),
        Step("a", required=unmet, when_unmet="fail"),
    )
    run_id = start(conn, "f", {})
    assert statuses(conn, run_id) == {"s": "created", "k": "created", "z": "failed", "a": "created"}
    assert happened(conn, run_id) == ["run:started", "step:z:failed", "run:failed"]


def test_cascades_go_in_the_order_of_definition(conn: Conn) -> None:
    """An unmet step downstream of an earlier cascade is skipped by that one."""
    install_realtime(conn)
    unmet = {"x": 1}
    define(
        conn,
        "f",
        Step("z", required=unmet, when_unmet="skip-cascade"),
        Step("a", required=unmet, when_unmet="skip-cascade"),
        Step("plain", required=unmet),
        Step("c", ["a", "z"]),
    )
    run_id = start(conn, "f", {})
    skips = [name for name in happened(conn, run_id) if name.endswith(":skipped")]
    assert skips == [f"step:{slug}:skipped" for slug in ("plain", "z", "c", "a")]
    assert run_of(conn, run_id)["remaining_steps"] == 0


def test_a_condition_is_evaluated_once(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", Step("a", required={"x": 1}, start_delay=60), Step("b", required={"y": 1}), "c")
    run_id = start(conn, "f", {"x": 1})
    conn.execute("update pgflow.runs set input = %s", [Jsonb({"y": 1})])
    before = picture(conn, "f")
    assert resolve(conn, run_id)
    assert picture(conn, "f") == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [("status = 'failed', failed_at = now()", False), ("status = 'completed', completed_at = now()", True)],
)
def test_an_ended_run_s_conditions_are_not_evaluated(conn: Conn, change: str, expected: bool) -> None:
    define(conn, "f", "a", Step("c", ["a"], required={"a": 1}, when_unmet="fail"))
    run_id = start(conn, "f", {})
    conn.execute("update pgflow.step_states set remaining_deps = 0")
    conn.execute(f"update pgflow.runs set {change}".encode())
    before = picture(conn, "f")
    assert resolve(conn, run_id) is expected
    assert picture(conn, "f") == before


def test_a_second_call_at_once_fails_nothing_twice(database: str) -> None:
    """The run changes under a condition, so the call that waited does nothing and says false."""
    with race(database) as sessions:
        install_realtime(sessions.a)
        define(sessions.a, "f", "a", Step("c", ["a"], required={"a": 1}, when_unmet="fail"))
        run_id = start(sessions.a, "f", {})
        sessions.a.execute("update pgflow.step_states set remaining_deps = 0")
        sessions.a.commit()
        assert not resolve(sessions.a, run_id)
        pending = sessions.b_waits_for_a(lambda b: resolve(b, run_id))
        after = picture(sessions.a, "f")
        sessions.a.commit()
        assert pending.result(timeout=10) is False
        sessions.b.commit()
        assert picture(sessions.a, "f") == after
        assert happened(sessions.a, run_id)[-2:] == ["step:c:failed", "run:failed"]
        assert archived(sessions.a, "f") == [1]


def test_a_failed_step_s_conditions_do_not_hold_back_others_of_the_turn(conn: Conn) -> None:
    """Conditions of steps that are not ready yet are not looked at."""
    define(conn, "f", "a", Step("c", ["a"], required={"a": 1}, when_unmet="fail"), Step("d", required={}))
    run_id = start(conn, "f", {})
    assert statuses(conn, run_id) == {"a": "started", "c": "created", "d": "started"}
    fail(conn, claimed(conn, "f")["a", 0])
    assert statuses(conn, run_id)["c"] == "created"


@pytest.mark.parametrize(("length", "refused"), [(48, False), (60, True)])
def test_a_chain_of_conditions_is_bounded(conn: Conn, length: int, refused: bool) -> None:
    chain = [Step("s0", required={"x": 1})]
    chain += [Step(f"s{i}", [f"s{i - 1}"], required={f"s{i - 1}": {}}) for i in range(1, length)]
    define(conn, "f", *chain)
    if refused:
        with pytest.raises(psycopg.errors.RaiseException, match="50 iterations"):
            start(conn, "f", {})
    else:
        assert run_of(conn, start(conn, "f", {}))["status"] == "completed"
