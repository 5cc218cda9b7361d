"""The order inside of a callback and the arithmetic of its counters: each guard is removed once, and missed.

See `test_traps.py`: these are two of the seven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.sql.pgflow.engine import (
    Step,
    claim,
    complete,
    define,
    fail,
    install_realtime,
    run_of,
    start,
    states,
    statuses,
)
from tests.sql.pgflow.mutation import Guard, Mutation, prove
from tests.sql.pgflow.watching import claimed, happened

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

FAIL_TASK: Final = "pgflow.fail_task(uuid,text,integer,text)"
UNMET: Final = {"x": 1}


# the order inside of a callback


def below_a_skip(conn: Conn) -> dict[str, str]:
    """A skip leaves a map without tasks and a condition unmet that fails the run."""
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
    return statuses(conn, run_id)


def unmet_map_below_a_skip(conn: Conn) -> str:
    """A skip leaves a map without tasks whose own condition is unmet by it."""
    define(
        conn,
        "f",
        Step("p", when_exhausted="skip"),
        Step("m", ["p"], type="map"),
        Step("n", ["m"], type="map", forbidden={"m": []}),
        max_attempts=1,
    )
    run_id = start(conn, "f", {})
    fail(conn, claim(conn, "f")[0])
    return statuses(conn, run_id)["n"]


def events_of_a_completion(conn: Conn) -> list[str]:
    """What a completion tells when the child's condition is then unmet."""
    install_realtime(conn)
    define(conn, "f", "a", Step("b", ["a"], required={"a": 1}), Step("c", ["b"]))
    run_id = start(conn, "f", {})
    complete(conn, claim(conn, "f")[0], 0)
    return [name for name in happened(conn, run_id) if name.split(":")[1] in "ab"]


def child_of_a_completion(conn: Conn) -> str:
    """What becomes of a child whose condition the completion leaves unmet."""
    define(conn, "f", "a", Step("b", ["a"], required={"a": 1}))
    run_id = start(conn, "f", {})
    complete(conn, claim(conn, "f")[0], 0)
    return statuses(conn, run_id)["b"]


def events_of_a_skip(conn: Conn) -> list[str]:
    """What an exhausted task tells when its step's skip completes an empty map."""
    install_realtime(conn)
    define(conn, "f", Step("a", when_exhausted="skip"), Step("m", ["a"], type="map"), "o", max_attempts=1)
    run_id = start(conn, "f", {})
    before = len(happened(conn, run_id))
    fail(conn, claimed(conn, "f")["a", 0])
    return happened(conn, run_id)[before:]


SETTLE: Final = "pgflow._settle_ready_steps(uuid)"
ORDER: Final = (
    Guard(
        "conditions come before steps without tasks",
        below_a_skip,
        {"p": "skipped", "m": "created", "z": "failed"},
        {"p": "skipped", "m": "completed", "z": "failed"},
        Mutation(
            SETTLE,
            "begin\n",
            "begin\n  perform pgflow.cascade_complete_taskless_steps(_settle_ready_steps.run_id);\n",
        ),
    ),
    Guard(
        "steps without tasks wait for their own conditions",
        unmet_map_below_a_skip,
        "skipped",
        "completed",
        Mutation(
            "pgflow.cascade_complete_taskless_steps(uuid)",
            "and s.step_slug not in (",
            "and '' not in (",
        ),
    ),
    Guard(
        "a completed step is told before what it does to its children",
        events_of_a_completion,
        ["step:a:started", "step:a:completed", "step:b:skipped"],
        ["step:a:started", "step:b:skipped", "step:a:completed"],
        Mutation(
            "pgflow._complete_step(uuid,text)",
            "  perform pgflow._emit(\n",
            "  perform pgflow._settle_ready_steps(_complete_step.run_id);\n  perform pgflow._emit(\n",
        ),
    ),
    Guard(
        "a skipped step is told before what it does to its children",
        events_of_a_skip,
        ["step:a:skipped", "step:m:completed"],
        ["step:m:completed", "step:a:skipped"],
        Mutation(
            "pgflow._skip_failed_step(uuid,text,text)",
            "  perform pgflow._emit(\n",
            "  perform pgflow._release_dependents(_skip_failed_step.run_id, array[step_slug], 0);\n"
            "  perform pgflow._settle_ready_steps(_skip_failed_step.run_id);\n"
            "  perform pgflow._emit(\n",
        ),
    ),
    Guard(
        "ready steps start after their conditions",
        child_of_a_completion,
        "skipped",
        "started",
        Mutation(
            "pgflow.complete_task(uuid,text,integer,jsonb)",
            "v_goes_on := v_released = 0",
            "perform pgflow.start_ready_steps(complete_task.run_id);\n    v_goes_on := v_released = 0",
        ),
    ),
)


# the arithmetic of the counters


def parents_skipped_at_once(conn: Conn) -> int:
    """How many parents a child waits for when two of its three are skipped in one turn."""
    define(conn, "f", Step("a", required=UNMET), Step("b", required=UNMET), "c", Step("d", ["a", "b", "c"]))
    return int(states(conn, start(conn, "f", {}))["d"]["remaining_deps"])


def empty_parents_at_once(conn: Conn) -> str:
    """What becomes of a child of two root maps that are empty."""
    define(conn, "f", Step("a", type="map"), Step("b", type="map"), Step("d", ["a", "b"]))
    return statuses(conn, start(conn, "f", []))["d"]


def left_after_skips(conn: Conn) -> int:
    """How many steps a run has left when two of three are skipped in one turn."""
    define(conn, "f", Step("a", required=UNMET), Step("b", required=UNMET), "c")
    return int(run_of(conn, start(conn, "f", {}))["remaining_steps"])


def left_after_empty_maps(conn: Conn) -> int:
    """How many steps a run has left when two root maps are empty."""
    define(conn, "f", Step("a", type="map"), Step("b", type="map"), "c")
    return int(run_of(conn, start(conn, "f", []))["remaining_steps"])


def left_after_a_cascade(conn: Conn) -> int:
    """How many steps a run has left when a cascade skips two of three."""
    define(conn, "f", Step("a", required=UNMET, when_unmet="skip-cascade"), Step("b", ["a"]), "c")
    return int(run_of(conn, start(conn, "f", {}))["remaining_steps"])


def left_after_two_cascades(conn: Conn) -> int:
    """How many steps a run has left when two cascades share a step."""
    define(
        conn,
        "f",
        Step("a", required=UNMET, when_unmet="skip-cascade"),
        Step("b", required=UNMET, when_unmet="skip-cascade"),
        Step("d", ["a", "b"]),
        "c",
        "e",
    )
    return int(run_of(conn, start(conn, "f", {}))["remaining_steps"])


def left_after_two_failures(conn: Conn) -> int:
    """How many steps a run has left when two tasks of one of three steps fail for good."""
    define(conn, "f", Step("m", type="map", when_exhausted="skip"), "b", "c", max_attempts=1)
    run_id = start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    fail(conn, work["m", 0])
    conn.execute("update pgflow.step_tasks set status = 'started' where task_index = 1")
    fail(conn, work["m", 1])
    return int(run_of(conn, run_id)["remaining_steps"])


COUNTED: Final = "set remaining_steps = r.remaining_steps - cardinality({})"
BY_ONE: Final = "set remaining_steps = r.remaining_steps - 1"
ONE_PARENT: Final = Mutation(
    "pgflow._release_dependents(uuid,text[],integer)",
    "s.remaining_deps - child.parents_done",
    "s.remaining_deps - 1",
)
ARITHMETIC: Final = (
    Guard("each skipped parent counts", parents_skipped_at_once, 1, 2, ONE_PARENT),
    Guard("each empty parent counts", empty_parents_at_once, "started", "created", ONE_PARENT),
    Guard(
        "each skipped step counts",
        left_after_skips,
        1,
        2,
        Mutation(
            "pgflow._skip_unmet_steps(uuid,text[])",
            COUNTED.format("_skip_unmet_steps.step_slugs"),
            BY_ONE,
        ),
    ),
    Guard(
        "each empty map counts",
        left_after_empty_maps,
        1,
        2,
        Mutation(
            "pgflow.cascade_complete_taskless_steps(uuid)",
            COUNTED.format("v_completed"),
            BY_ONE,
        ),
    ),
    Guard(
        "each step of a cascade counts",
        left_after_a_cascade,
        1,
        2,
        Mutation(
            "pgflow._cascade_force_skip_steps(uuid,text,text)",
            COUNTED.format("v_skipped"),
            BY_ONE,
        ),
    ),
    Guard(
        "a step that is skipped already does not count again",
        left_after_two_cascades,
        2,
        1,
        Mutation(
            "pgflow._cascade_force_skip_steps(uuid,text,text)",
            "and s.status in ('created', 'started')",
            "and s.status in ('created', 'started', 'skipped')",
        ),
    ),
    Guard(
        "a step that is skipped already is not skipped again by a late failure",
        left_after_two_failures,
        2,
        1,
        Mutation(FAIL_TASK, "v_step_status is distinct from 'started'", "false"),
    ),
)


@pytest.mark.parametrize("guard", [*ORDER, *ARITHMETIC], ids=lambda guard: guard.name)
def test_a_guard_is_missed_when_it_is_gone(conn: Conn, guard: Guard) -> None:
    prove(conn, guard)
