"""Random flows, driven at random until each run ends: what must hold always, and what the rules foretell.

`PGFLOW_EXAMPLES` is how many flows each server gets.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import scalar_row

from .engine import Step, add_worker, claim, complete, define, fail, start
from .invariants import broken
from .model import FLOW_MAX_ATTEMPTS, OPEN, Key, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    import psycopg

    Conn = psycopg.Connection[Any]

EXAMPLES: Final = int(os.environ.get("PGFLOW_EXAMPLES", "45"))
FLOW: Final = "random_flow"
NO_MESSAGE: Final = 2**62
MOST_ROUNDS: Final = 100
# Failing ends a run at once, so what goes on is drawn more often.
MODES: Final = ("skip", "skip-cascade", "fail", "skip", "skip")
ARRAYS: Final[tuple[list[Any], ...]] = ([None, [2]], ["a", {"a": 1}, False], [1], [])
ODD: Final[tuple[Any, ...]] = (
    None,
    {"a": 1},
    False,
    True,
    0,
    2**53 + 1,
    "",
    "a",
    {},
    {"a": [1, 2], "b": None},
)
PATTERNS: Final[tuple[dict[str, Any], ...]] = ({"a": 1}, {}, {"a": [2]}, {"b": None})

SNAPSHOT: Final = """
select jsonb_build_object(
  'run', jsonb_build_array(r.status, r.output),
  'steps', (
    select jsonb_object_agg(s.step_slug, jsonb_build_array(s.status, s.skip_reason, s.output))
    from pgflow.step_states as s where s.run_id = r.run_id
  ),
  'tasks', coalesce((
    select jsonb_object_agg(
      t.step_slug || ' ' || t.task_index,
      jsonb_build_array(
        t.status, t.attempts_count, t.requeued_count, t.permanently_stalled_at is not null, t.output
      )
    )
    from pgflow.step_tasks as t where t.run_id = r.run_id
  ), '{}')
)
from pgflow.runs as r where r.run_id = %s
"""
MESSAGES: Final = "select step_slug, task_index, message_id from pgflow.step_tasks where run_id = %s"
AGE: Final = """
update pgflow.step_tasks
set
  queued_at = queued_at - interval '1 day',
  started_at = started_at - interval '1 day',
  requeued_count = greatest(requeued_count, %s)
where run_id = %s and step_slug = %s and task_index = %s
"""


def often(values: Sequence[Any], others: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Mostly one of the values, else one of the others."""
    return st.integers(0, 4).flatmap(lambda number: st.sampled_from(values if number else others))


@st.composite
def flows(draw: st.DrawFn) -> tuple[list[Step], Any]:
    """A flow and an input that it takes."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 4)) * 2):
        known = [step.slug for step in steps]
        kind = draw(st.sampled_from(("single", "map")))
        count = min(len(known), draw(st.sampled_from((1, 0) if kind == "map" else (1, 2, 3, 0))))
        deps = draw(st.permutations(known))[:count]
        steps.append(
            Step(
                f"s{number}",
                deps,
                type=kind,
                max_attempts=draw(st.sampled_from((1, 0, 2, None))),
                required=draw(patterns(deps)),
                forbidden=draw(patterns(deps)),
                when_unmet=draw(st.sampled_from(MODES)),
                when_exhausted=draw(st.sampled_from(MODES)),
            )
        )
    is_mapped = any(step.type == "map" and not step.deps for step in steps)
    return steps, draw(st.sampled_from(ARRAYS) if is_mapped else often(ODD, ARRAYS))


def patterns(deps: Sequence[str]) -> st.SearchStrategy[dict[str, Any] | None]:
    """No pattern, or one that the step's input may well contain."""
    if not deps:
        return often((None,), PATTERNS)
    parts = st.dictionaries(st.sampled_from(deps), often(([], [1], None), ODD), max_size=2)
    return st.integers(0, 4).flatmap(lambda number: st.none() if number else parts)


PICK: Final = st.integers(0, 30)
OUTPUT: Final = often(ARRAYS, ODD)
OPERATIONS: Final = st.one_of(
    st.tuples(st.just("complete"), PICK, OUTPUT),
    st.tuples(st.just("fail"), PICK),
    st.tuples(st.just("claim_all")),
    st.tuples(st.just("fail"), PICK),
    st.tuples(st.just("complete"), PICK, OUTPUT),
    st.tuples(st.just("recover"), PICK, st.booleans()),
    st.tuples(st.just("complete_any"), PICK, often(ODD, ARRAYS)),
    st.tuples(st.just("fail_any"), PICK),
)


class Driver:
    """One run in the database and in memory, told the same."""

    def __init__(self, conn: Conn, worker: UUID, steps: list[Step], value: Any) -> None:
        """Define the flow and start the run."""
        self.conn = conn
        self.worker = worker
        define(conn, FLOW, *steps, max_attempts=FLOW_MAX_ATTEMPTS)
        self.run = Run(steps, value)
        self.run_id = start(conn, FLOW, value)
        self.check("start")

    def do(self, operation: tuple[Any, ...]) -> None:
        """One operation on a task that its number picks: an open one, claimed if need be, or any."""
        name, *values = operation
        keys = self.run.task_keys(*(() if name.endswith("any") else OPEN))
        if not keys:
            return
        key = keys[values[0] % len(keys)] if values else keys[0]
        if name == "claim_all":
            self.claim(self.run.task_keys())
        elif not name.endswith("any") and key in self.run.task_keys("queued"):
            self.claim([key])
        if name == "recover":
            self.recover(key, is_last=values[1])
        elif name.startswith("complete"):
            self.complete(key, values[1])
        elif name.startswith("fail"):
            self.fail(key)
        self.check(operation)

    def claim(self, keys: Iterable[Key]) -> None:
        """Claim by the messages of tasks, whatever their states, and one of no task."""
        ids = {(slug, index): one for slug, index, one in self.conn.execute(MESSAGES, [self.run_id])}
        asked = [*map(ids.__getitem__, keys), NO_MESSAGE]
        seen = claim(self.conn, FLOW, worker=self.worker, ids=asked)
        claimed = sorted(self.run.claim(key for key in ids if ids[key] in asked))
        assert [(task.step_slug, task.task_index, task.input, task.flow_input) for task in seen] == [
            (*key, self.run.input_of(key), self.run.flow_input_of(key)) for key in claimed
        ]

    def complete(self, key: Key, output: Any) -> None:
        """A result, in time or late."""
        complete(self.conn, (self.run_id, *key), output)
        self.run.complete(key, output)

    def fail(self, key: Key) -> None:
        """An exception, in time or late."""
        fail(self.conn, (self.run_id, *key))
        self.run.fail(key)

    def recover(self, key: Key, *, is_last: bool) -> None:
        """A recovery that finds one task whose worker is silent."""
        task = self.run.task(key)
        assert task is not None
        if is_last:
            task.recoveries = 3
        self.conn.execute(AGE, [task.recoveries, self.run_id, *key])
        cursor = self.conn.cursor(row_factory=scalar_row)
        assert cursor.execute("select pgflow.requeue_stalled_tasks()").fetchone() == self.run.recover([key])

    def finish(self) -> None:
        """Let a worker do all that is left, then tell everything once more."""
        for _ in range(MOST_ROUNDS):
            if self.run.status != "started":
                break
            self.do(("claim_all",))
            for key in self.run.task_keys("started"):
                self.complete(key, [1])
            self.check("finish")
        assert self.run.status != "started"
        for key in self.run.task_keys():
            self.fail(key)
            self.complete(key, [])
        self.claim(self.run.task_keys())
        self.check("replay")

    def check(self, operation: object) -> None:
        """The database says what the memory says, and nothing that must hold is broken."""
        cursor = self.conn.cursor(row_factory=scalar_row)
        seen = cursor.execute(SNAPSHOT, [self.run_id]).fetchone()
        run = self.run
        expected = {
            "run": [run.status, run.output],
            "steps": {slug: [state.status, state.reason, state.output] for slug, state in run.steps.items()},
            "tasks": {
                f"{slug} {index}": [task.status, task.attempts, task.recoveries, task.is_stalled, task.output]
                for slug, state in run.steps.items()
                for index, task in enumerate(state.tasks)
            },
        }
        assert seen == expected, operation
        assert broken(self.conn) == [], operation


@pytest.fixture
def worker(conn: Conn) -> UUID:
    """A worker, in a transaction that holds an empty flow with its queue."""
    define(conn, FLOW, max_attempts=FLOW_MAX_ATTEMPTS)
    return add_worker(conn, FLOW)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(flow=flows(), operations=st.lists(OPERATIONS, min_size=10, max_size=30))
def test_a_random_flow_keeps_the_invariants_and_ends_as_the_rules_say(
    conn: Conn, worker: UUID, flow: tuple[list[Step], Any], operations: list[tuple[Any, ...]]
) -> None:
    """A run is compared after every operation, its inputs at every claim."""
    with conn.transaction(force_rollback=True):
        driver = Driver(conn, worker, *flow)
        for operation in operations:
            driver.do(operation)
            if driver.run.status != "started":
                break
        driver.finish()
