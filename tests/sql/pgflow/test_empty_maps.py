"""Steps that become ready because a map without tasks completed: their conditions are tested like others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.sql.pgflow.engine import (
    Step,
    archived,
    claim,
    complete,
    define,
    fail,
    install_realtime,
    queued,
    run_of,
    start,
    states,
    statuses,
    tasks,
)
from tests.sql.pgflow.watching import claimed, happened

if TYPE_CHECKING:
    from uuid import UUID

    from tests.sql.pgflow.engine import Conn

MODES: Final = ("fail", "skip", "skip-cascade")
# what becomes of the step `c` and of its child `d`, by the mode of `c`
OUTCOMES: Final[dict[str, dict[str, str]]] = {
    "fail": {"c": "failed", "d": "created"},
    "skip": {"c": "skipped", "d": "started"},
    "skip-cascade": {"c": "skipped", "d": "skipped"},
}
FAILED: Final = ["step:m:completed", "step:c:failed", "run:failed"]
EVENTS: Final[dict[str, list[str]]] = {
    "fail": FAILED,
    "skip": ["step:m:completed", "step:c:skipped", "step:d:started"],
    "skip-cascade": ["step:m:completed", "step:c:skipped", "step:d:skipped", "run:completed"],
}


def emptied(conn: Conn, how: str, *below: Step) -> UUID:
    """A run whose map `m` has just completed without tasks, with the given steps below it."""
    install_realtime(conn)
    if how == "start_flow":
        define(conn, "f", Step("m", type="map"), *below)
        return start(conn, "f", [])
    parent = Step("p", when_exhausted="skip")
    define(conn, "f", parent, Step("m", ["p"], type="map"), *below, max_attempts=1)
    run_id = start(conn, "f", {})
    (task,) = claim(conn, "f")
    if how == "complete_task":
        complete(conn, task, [])
    else:
        fail(conn, task)
    return run_id


every_way = pytest.mark.parametrize("how", ["start_flow", "complete_task", "fail_task"])


@every_way
@pytest.mark.parametrize("type_", ["single", "map"])
@pytest.mark.parametrize("mode", MODES)
def test_an_unmet_step_below_an_empty_map_does_what_its_mode_says(
    conn: Conn, how: str, type_: str, mode: str
) -> None:
    """A map would have no tasks either: it is skipped or failed all the same, not completed."""
    child = Step("c", ["m"], type=type_, required={"m": [1]}, when_unmet=mode)
    run_id = emptied(conn, how, child, Step("d", ["c"]))
    got = statuses(conn, run_id)
    assert {slug: got[slug] for slug in ("m", "c", "d")} == {"m": "completed", **OUTCOMES[mode]}
    assert happened(conn, run_id)[-len(EVENTS[mode]) :] == EVENTS[mode]
    assert "step:c:completed" not in happened(conn, run_id)
    state, run = states(conn, run_id)["c"], run_of(conn, run_id)
    if mode == "fail":
        assert (run["status"], state["error_message"]) == ("failed", "Condition not met")
    else:
        assert state["skip_reason"] == "condition_unmet"
        assert run["remaining_steps"] == (1 if mode == "skip" else 0)
    assert len(queued(conn, "f")) == (1 if mode == "skip" else 0)


@every_way
@pytest.mark.parametrize("type_", ["single", "map"])
def test_a_met_step_below_an_empty_map_goes_on(conn: Conn, how: str, type_: str) -> None:
    child = Step("c", ["m"], type=type_, required={"m": []}, forbidden={"m": [1]}, when_unmet="fail")
    run_id = emptied(conn, how, child, Step("d", ["c"]))
    got = statuses(conn, run_id)
    single = type_ == "single"
    assert {slug: got[slug] for slug in ("m", "c", "d")} == {
        "m": "completed",
        "c": "started" if single else "completed",
        "d": "created" if single else "started",
    }
    (task,) = claim(conn, "f")
    assert task.input == ({"m": []} if single else {"c": []})


@every_way
def test_conditions_and_empty_maps_alternate_until_nothing_changes(conn: Conn, how: str) -> None:
    """Empty, skipped, empty again, skipped again; the last step is met and runs."""
    run_id = emptied(
        conn,
        how,
        Step("c", ["m"], required={"m": [1]}),
        Step("n", ["c"], type="map"),
        Step("o", ["n"], type="map", forbidden={"n": []}),
        Step("q", ["o"], type="map"),
        Step("s", ["q", "m"], required={"m": [], "q": []}),
    )
    expected = {"c": "skipped", "n": "completed", "o": "skipped", "q": "completed", "s": "started"}
    assert {slug: status for slug, status in statuses(conn, run_id).items() if slug in expected} == expected
    assert run_of(conn, run_id)["remaining_steps"] == 1
    assert happened(conn, run_id)[-6:] == [
        "step:m:completed",
        "step:c:skipped",
        "step:n:completed",
        "step:o:skipped",
        "step:q:completed",
        "step:s:started",
    ]


@pytest.mark.parametrize("required", [{"m": [1]}, {"m": []}])
def test_a_root_s_empty_map_with_a_condition_is_decided_by_the_condition(conn: Conn, required: Any) -> None:
    """A root map's subject is the run's input, an array, which holds no object."""
    define(conn, "f", Step("m", type="map", required=required), Step("s", ["m"]))
    run_id = start(conn, "f", [])
    assert statuses(conn, run_id) == {"m": "skipped", "s": "started"}
    assert claim(conn, "f")[0].input == {}


def test_a_failing_condition_below_an_empty_map_archives_the_message_of_the_callback(conn: Conn) -> None:
    """The row that completed stays completed, its open neighbours are cancelled."""
    child = Step("c", ["m"], required={"m": [1]}, when_unmet="fail")
    define(conn, "f", "p", "other", Step("m", ["p"], type="map"), child)
    run_id = start(conn, "f", {})
    work = claimed(conn, "f")
    row = complete(conn, work["p", 0], [])
    assert row is not None
    assert row["status"] == "completed"
    assert tasks(conn, run_id, "other")[0]["status"] == "cancelled"
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1, 2])


def test_an_empty_map_beside_a_failing_condition_is_not_completed(conn: Conn) -> None:
    """Conditions come first: a run that fails by one completes nothing any more."""
    install_realtime(conn)
    define(
        conn,
        "f",
        Step("p", when_exhausted="skip"),
        Step("m", ["p"], type="map"),
        Step("z", ["p"], required={"p": 1}, when_unmet="fail"),
        max_attempts=1,
    )
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    assert statuses(conn, run_id) == {"p": "skipped", "m": "created", "z": "failed"}
    assert happened(conn, run_id)[-3:] == ["step:p:skipped", "step:z:failed", "run:failed"]


@pytest.mark.parametrize("mode", ["skip", "skip-cascade"])
def test_a_map_that_a_skip_emptied_is_skipped_when_its_condition_is_unmet(conn: Conn, mode: str) -> None:
    define(
        conn,
        "f",
        Step("p", when_exhausted="skip"),
        Step("m", ["p"], type="map", required={"p": []}, when_unmet=mode),
        Step("n", ["m"], type="map"),
        max_attempts=1,
    )
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    end = "completed" if mode == "skip" else "skipped"
    assert statuses(conn, run_id) == {"p": "skipped", "m": "skipped", "n": end}
    assert run_of(conn, run_id)["output"] == ({"n": []} if mode == "skip" else None)


def test_the_cascade_counts_what_completes_in_all_of_its_turns(conn: Conn) -> None:
    define(conn, "f", "a", Step("m", ["a"], "map"), Step("n", ["m"], "map"))
    run_id = start(conn, "f")
    conn.execute("update pgflow.step_states set initial_tasks = 0, remaining_deps = 0 where step_slug = 'm'")
    row = conn.execute("select pgflow.cascade_complete_taskless_steps(%s)", [run_id]).fetchone()
    assert row == (2,)
    assert statuses(conn, run_id) == {"a": "started", "m": "completed", "n": "completed"}
    assert run_of(conn, run_id)["remaining_steps"] == 1
