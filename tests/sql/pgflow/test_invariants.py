"""The check of invariants finds each kind of damage; without damage it finds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from .engine import Step, claim, complete, define, fail, start
from .invariants import broken

if TYPE_CHECKING:
    from uuid import UUID

    import psycopg

    Conn = psycopg.Connection[Any]

M: Final = "step_slug = 'm'"
N: Final = "step_slug = 'n'"
QUEUED: Final = "status = 'queued'"
SKIP: Final = "status = 'skipped', skip_reason = 'dependency_skipped', skipped_at = now()"
# Table, assignments and condition of an update, or a whole statement; a part of what is then found.
DAMAGES: Final = (
    ("runs", "remaining_steps = 2", "true", "remaining_steps is 2, but 3 steps have not ended"),
    ("runs", "output = '1'", "true", "is started with output 1, its leaves make "),
    ("runs", "failed_at = now()", "true", "is started, completed at , failed at 2"),
    ("runs", "status = 'failed', failed_at = now()", "true", "is failed with 0 failed steps"),
    ("runs", "status = 'completed', completed_at = now()", "true", "is completed with 3 steps not ended"),
    ("step_states", "remaining_deps = 1", M, "remaining_deps is 1, 0 parents have not ended"),
    ("step_states", "remaining_tasks = 1", M, "remaining_tasks is 1, 1 of 3 tasks are completed"),
    ("step_states", "initial_tasks = 2", M, "initial_tasks is 2, tasks are 3"),
    ("step_states", "initial_tasks = 2", N, "initial_tasks is 2, which its input does not give"),
    ("step_states", "output = '2'", "step_slug = 'a'", "output is 2, its tasks make [1, 2, 3]"),
    ("step_states", "failed_at = now()", M, "(started): times are 2"),
    ("step_states", "remaining_deps = 0", N, "no parent is missing"),
    ("step_states", "status = 'started', initial_tasks = 1", N, "is started before its parents ended"),
    ("step_states", SKIP, N, "is skipped (dependency_skipped) against its definition or parents"),
    ("step_states", "skip_reason = 'handler_failed'", "step_slug = 'x'", "though its condition is unmet"),
    ("step_states", "skip_reason = 'handler_failed'", "step_slug = 'x'", "with 0 failed tasks"),
    ("steps", "when_unmet = 'fail'", "step_slug = 'x'", "(condition_unmet) against its definition"),
    (
        "steps",
        "when_unmet = 'skip-cascade'",
        "step_slug = 'x'",
        "is created below a parent whose skip cascades",
    ),
    ("steps", """required_input_pattern = '{"b": 1}'""", M, "though its condition is unmet"),
    ("steps", "required_input_pattern = null", "step_slug = 'x'", "though its condition is met"),
    ("deps", "step_slug = 'a'", N, "deps_count is 1, edges are 0"),
    ("step_tasks", "status = 'cancelled'", QUEUED, "is cancelled, its step started, its run started"),
    ("step_tasks", "started_at = now()", QUEUED, "(queued): times are 2"),
    ("step_tasks", "attempts_count = 9", QUEUED, "9 attempts of 3 with 0 recoveries"),
    ("step_tasks", "requeued_count = 4", QUEUED, "attempts of 3 with 4 recoveries"),
    ("step_tasks", "message_id = 1", "true", "message 1 of queue f announces 4 tasks"),
    ("step_tasks", "permanently_stalled_at = now()", QUEUED, "is 1 times live, 0 times archived"),
)
STATEMENTS: Final = (
    (f"select pgmq.archive('f', message_id) from pgflow.step_tasks where {QUEUED}", "0 times live, 1 times"),
    (f"select pgmq.delete('f', message_id) from pgflow.step_tasks where {QUEUED}", "0 times live, 0 times"),
    ("delete from pgmq.a_f", "0 times live, 0 times archived"),
    ("select pgmq.send('f', '{}')", "announces no open task: {}"),
    ("drop table pgmq.a_f", "flow f has no queue or no archive"),
)


@pytest.fixture
def run_id(conn: Conn) -> UUID:
    """A run with a step of each kind: completed, skipped, started with tasks in three states, created."""
    define(
        conn,
        "f",
        "a",
        Step("x", required={"no": 1}),
        Step("m", ["a"], type="map"),
        Step("n", ["m"], type="map"),
        Step("c", ["x", "n"]),
    )
    run = start(conn, "f", {})
    complete(conn, claim(conn, "f")[0], [1, 2, 3])
    done, failed, _ = claim(conn, "f")
    complete(conn, done, 1)
    fail(conn, failed)
    return run


def test_an_undamaged_run_has_no_findings(conn: Conn, run_id: UUID) -> None:
    assert broken(conn) == []
    assert broken(conn, run_id) == []


def test_a_changed_row_is_found(conn: Conn, run_id: UUID) -> None:
    for table, assignments, condition, finding in DAMAGES:
        with conn.transaction(force_rollback=True):
            conn.execute(f"update pgflow.{table} set {assignments} where {condition}".encode())
            found = broken(conn, run_id)
        assert any(finding in one for one in found), (assignments, found)


@pytest.mark.usefixtures("run_id")
def test_a_missing_or_strange_message_is_found(conn: Conn) -> None:
    for statement, finding in STATEMENTS:
        with conn.transaction(force_rollback=True):
            conn.execute(statement.encode())
            found = broken(conn)
        assert any(finding in one for one in found), (statement, found)


def test_a_trimmed_archive_is_no_finding_where_archives_are_trimmed(conn: Conn, run_id: UUID) -> None:
    conn.execute("delete from pgmq.a_f")
    assert broken(conn, run_id, archives_kept=False) == []


def test_another_run_is_not_looked_at(conn: Conn, run_id: UUID) -> None:
    other = start(conn, "f", {})
    conn.execute("update pgflow.runs set remaining_steps = 9 where run_id = %s", [other])
    assert broken(conn, run_id) == []
    assert len(broken(conn)) == 1
