"""Events as realtime gets them: one for each transition, whole, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from .engine import Step, claim, complete, define, events, fail, install_realtime, start, states

if TYPE_CHECKING:
    from uuid import UUID

    from .engine import Conn, Task

PAGE: Final = Path(__file__).parents[3] / "docs/reference/pgflow-events.md"
RUN: Final = {"event_type", "run_id", "flow_slug", "status"}
STEP: Final = {"event_type", "run_id", "step_slug", "status"}
STARTED: Final = STEP | {"started_at", "remaining_tasks", "remaining_deps"}
COMPLETED: Final = STEP | {"output", "completed_at"}
TASKLESS: Final = COMPLETED | {"started_at", "remaining_tasks", "remaining_deps"}
FAILED: Final = STEP | {"error_message", "failed_at"}
SKIPPED: Final = STEP | {"skip_reason", "skipped_at", "flow_slug"}
SKIPPED_BY_HANDLER: Final = STEP | {"skip_reason", "skipped_at", "error_message"}
RUN_STARTED: Final = RUN | {"input", "remaining_steps", "started_at"}
RUN_COMPLETED: Final = RUN | {"output", "completed_at"}
RUN_FAILED: Final = RUN | {"failed_at", "error_message"}
DOCUMENTED: Final = {
    "run:started": RUN_STARTED,
    "run:completed": RUN_COMPLETED,
    "run:failed": RUN_FAILED,
    "step:<slug>:started": STARTED,
    "step:<slug>:completed": COMPLETED,
    "step:<slug>:failed": FAILED,
    "step:<slug>:skipped": SKIPPED,
}


def test_documented_keys_are_those_of_the_tests() -> None:
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    common = {"event_type", "run_id", "status"}
    assert {name: common | set(re.findall(r"`(\w+)`", keys)) for name, _, keys in rows} == DOCUMENTED
    assert [kind for _, kind, _ in rows] == [name.replace("<slug>:", "") for name in DOCUMENTED]


@pytest.fixture
def live(conn: Conn) -> Conn:
    """A connection to a database that has realtime."""
    install_realtime(conn)
    return conn


def names(conn: Conn, run_id: UUID, *, after: int = 0) -> list[str]:
    """The names of a run's events, without the first ones."""
    return [str(event["event"]) for event in events(conn, run_id)][after:]


def check(conn: Conn, run_id: UUID, expected: list[tuple[str, set[str]]]) -> list[dict[str, Any]]:
    """Compare the run's events with names and keys; check what all have in common; return the payloads."""
    sent = events(conn, run_id)
    assert [(event["event"], set(event["payload"])) for event in sent] == expected
    for event in sent:
        payload = event["payload"]
        kind, *slug, what = event["event"].split(":")
        assert payload["event_type"] == f"{kind}:{what}"
        assert payload["status"] == ("started" if what == "started" else what)
        assert [payload["step_slug"]] == slug if slug else "step_slug" not in payload
        assert payload["run_id"] == str(run_id)
        assert event["topic"] == f"pgflow:run:{run_id}"
        assert event["private"] is False
    return [event["payload"] for event in sent]


def only(tasks: list[Task], step: str) -> Task:
    """The one task of a step."""
    (task,) = [task for task in tasks if task.step_slug == step]
    return task


def stored(conn: Conn, run_id: UUID, step: str) -> dict[str, Any]:
    """The step's state as JSON."""
    query = "select to_jsonb(s) from pgflow.step_states s where run_id = %s and step_slug = %s"
    row = conn.execute(query, [run_id, step]).fetchone()
    assert row is not None
    assert isinstance(row[0], dict)
    return row[0]


def test_a_whole_flow_tells_of_each_transition_once(live: Conn) -> None:
    """Row 90."""
    define(live, "f", "root", Step("many", ["root"], "map"), Step("last", ["many"]))
    run = start(live, "f", {"n": 1})
    complete(live, claim(live, "f")[0], [1, 2])
    for task in reversed(claim(live, "f")):
        complete(live, task, {"i": task.task_index})
    complete(live, claim(live, "f")[0], "done")
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            ("step:root:started", STARTED),
            ("step:root:completed", COMPLETED),
            ("step:many:started", STARTED),
            ("step:many:completed", COMPLETED),
            ("step:last:started", STARTED),
            ("step:last:completed", COMPLETED),
            ("run:completed", RUN_COMPLETED),
        ],
    )
    assert payloads[0]["input"] == {"n": 1}
    assert payloads[0]["remaining_steps"] == 3
    assert payloads[0]["flow_slug"] == payloads[-1]["flow_slug"] == "f"
    assert [payload["remaining_tasks"] for payload in payloads if "remaining_tasks" in payload] == [1, 2, 1]
    assert payloads[4]["output"] == [{"i": 0}, {"i": 1}]
    assert payloads[-1]["output"] == {"last": "done"}
    for payload in (payloads[2], payloads[4], payloads[6]):
        assert (
            payload.items()
            <= (stored(live, run, payload["step_slug"]) | {"event_type": "step:completed"}).items()
        )


def test_steps_without_tasks_tell_of_their_start_in_the_end(live: Conn) -> None:
    """Row 90."""
    define(live, "f", Step("m", type="map"), Step("n", ["m"], "map"), Step("last", ["n"]))
    run = start(live, "f", [])
    complete(live, claim(live, "f")[0], None)
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            ("step:m:completed", TASKLESS),
            ("step:n:completed", TASKLESS),
            ("step:last:started", STARTED),
            ("step:last:completed", COMPLETED),
            ("run:completed", RUN_COMPLETED),
        ],
    )
    for payload in payloads[1:3]:
        assert payload["output"] == []
        assert payload["remaining_tasks"] == payload["remaining_deps"] == 0
        assert (
            payload.items()
            <= (stored(live, run, payload["step_slug"]) | {"event_type": "step:completed"}).items()
        )


def test_a_flow_without_steps_tells_of_start_and_end(live: Conn) -> None:
    define(live, "f")
    run = start(live, "f", {})
    payloads = check(live, run, [("run:started", RUN_STARTED), ("run:completed", RUN_COMPLETED)])
    assert payloads[1]["output"] is None


def test_the_last_failed_attempt_fails_the_step_then_the_run(live: Conn) -> None:
    """Row 90."""
    define(live, "f", "a", "b", Step("c", ["a"]), max_attempts=1)
    run = start(live, "f", {})
    fail(live, only(claim(live, "f"), "a"), "boom")
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            ("step:a:started", STARTED),
            ("step:b:started", STARTED),
            ("step:a:failed", FAILED),
            ("run:failed", RUN_FAILED),
        ],
    )
    assert payloads[3].items() <= (stored(live, run, "a") | {"event_type": "step:failed"}).items()
    assert payloads[3]["error_message"] == "boom"
    assert "boom" in payloads[4]["error_message"]
    assert payloads[4]["flow_slug"] == "f"


def test_a_type_violation_fails_the_run_then_the_step(live: Conn) -> None:
    """Row 90."""
    define(live, "f", "a", Step("m", ["a"], "map"))
    run = start(live, "f", {})
    complete(live, claim(live, "f")[0], {"no": "array"})
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            ("step:a:started", STARTED),
            ("run:failed", RUN_FAILED - {"error_message"}),
            ("step:a:failed", FAILED),
        ],
    )
    message = "[TYPE_VIOLATION] Map step m expects array input but dependency a produced object"
    assert payloads[3]["error_message"] == message


def test_an_unmet_condition_fails_the_step_then_the_run(live: Conn) -> None:
    """Row 90."""
    define(live, "f", Step("a", required={"x": 1}, when_unmet="fail"), "b")
    run = start(live, "f", {})
    payloads = check(
        live,
        run,
        [("run:started", RUN_STARTED), ("step:a:failed", FAILED), ("run:failed", RUN_FAILED)],
    )
    assert [payload.get("error_message") for payload in payloads] == [None, *["Condition not met"] * 2]


def test_an_unmet_condition_skips_before_anything_starts(live: Conn) -> None:
    """Row 90."""
    define(live, "f", "a", Step("b", required={"x": 1}), Step("c", ["b"]))
    run = start(live, "f", {})
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            ("step:b:skipped", SKIPPED),
            ("step:a:started", STARTED),
            ("step:c:started", STARTED),
        ],
    )
    assert payloads[1].items() <= (stored(live, run, "b") | {"event_type": "step:skipped"}).items()
    assert payloads[1]["skip_reason"] == "condition_unmet"


def test_a_skip_after_a_failure_tells_of_the_error(live: Conn) -> None:
    """Row 90."""
    define(live, "f", Step("a", when_exhausted="skip"), Step("b", ["a"]), max_attempts=1)
    run = start(live, "f", {})
    fail(live, claim(live, "f")[0], "boom")
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            ("step:a:started", STARTED),
            ("step:a:skipped", SKIPPED_BY_HANDLER),
            ("step:b:started", STARTED),
        ],
    )
    assert payloads[2].items() <= (stored(live, run, "a") | {"event_type": "step:skipped"}).items()
    assert payloads[2]["skip_reason"] == "handler_failed"
    assert payloads[2]["error_message"] == "boom"


@pytest.mark.parametrize("cause", ["condition", "handler"])
def test_a_cascade_tells_of_parents_before_children(live: Conn, cause: str) -> None:
    """Row 90: the slugs are in no order that would do by chance."""
    required = {"x": 1} if cause == "condition" else None
    define(
        live,
        "f",
        Step("z", required=required, when_unmet="skip-cascade", when_exhausted="skip-cascade"),
        Step("y", ["z"]),
        Step("b", ["z"]),
        Step("c", ["y", "b"]),
        Step("a", ["c"]),
        max_attempts=1,
    )
    run = start(live, "f", {})
    first: list[tuple[str, set[str]]] = [("step:z:skipped", SKIPPED)]
    if cause == "handler":
        fail(live, claim(live, "f")[0], "boom")
        first = [("step:z:started", STARTED), ("step:z:skipped", SKIPPED_BY_HANDLER)]
    payloads = check(
        live,
        run,
        [
            ("run:started", RUN_STARTED),
            *first,
            *((f"step:{slug}:skipped", SKIPPED) for slug in ("y", "b", "c", "a")),
            ("run:completed", RUN_COMPLETED),
        ],
    )
    reasons = [payload["skip_reason"] for payload in payloads if "skip_reason" in payload]
    reason = "condition_unmet" if cause == "condition" else "handler_failed"
    assert reasons == [reason, *["dependency_skipped"] * 4]


def test_the_parents_event_precedes_what_it_decides(live: Conn) -> None:
    """Row 90: completion, then the child that its output skips, then the map that is left without input."""
    define(
        live,
        "f",
        "a",
        Step("b", ["a"], required={"a": {"ok": True}}),
        Step("m", ["b"], "map"),
        Step("z", ["m"]),
    )
    run = start(live, "f", {})
    complete(live, claim(live, "f")[0], {"ok": False})
    assert names(live, run, after=2) == [
        "step:a:completed",
        "step:b:skipped",
        "step:m:completed",
        "step:z:started",
    ]


def test_claims_retries_and_partial_maps_tell_nothing(live: Conn) -> None:
    define(live, "f", Step("m", type="map"), base_delay=0)
    run = start(live, "f", [1, 2])
    told = len(events(live, run))
    first, second = claim(live, "f")
    complete(live, first, 1)
    fail(live, second)
    claim(live, "f")
    assert len(events(live, run)) == told
    complete(live, second, 2)
    assert names(live, run, after=told) == ["step:m:completed", "run:completed"]


def test_repeated_and_late_callbacks_tell_nothing(live: Conn) -> None:
    """Row 90."""
    define(live, "f", "a", Step("b", when_exhausted="skip"), "c", max_attempts=1)
    run = start(live, "f", {})
    tasks = claim(live, "f")
    a, b, c = (only(tasks, slug) for slug in ("a", "b", "c"))
    calls = ((complete, a), (fail, b), (fail, c))
    for call, task in calls:
        call(live, task)
        told = len(events(live, run))
        for again in (complete, fail):
            again(live, task)
        assert len(events(live, run)) == told
    assert states(live, run)["c"]["status"] == "failed"
    for task in tasks:
        complete(live, task)
        fail(live, task)
    assert names(live, run, after=4) == [
        "step:a:completed",
        "step:b:skipped",
        "step:c:failed",
        "run:failed",
    ]
