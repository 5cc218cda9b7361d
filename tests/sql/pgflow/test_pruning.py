"""The optional pruning function (row 109): what it deletes, what it keeps, whom it waits for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from .engine import (
    Step,
    add_worker,
    archived,
    claim,
    complete,
    define,
    fail,
    queued,
    run_of,
    start,
    states,
    tasks,
    wait_until_blocked,
)
from .invariants import broken

if TYPE_CHECKING:
    from uuid import UUID

    Conn = psycopg.Connection[Any]

PRUNE: Final = Path(__file__).parents[3] / "examples/pgflow/prune_data_older_than.sql"
CALL: Final = "select pgflow.prune_data_older_than(%s)"
AGE_RUN: Final = """
update pgflow.runs
set
  started_at = started_at - %(age)s::interval,
  completed_at = completed_at - %(age)s::interval,
  failed_at = failed_at - %(age)s::interval
where run_id = %(run)s
"""
GONE: Final = (0, 0, 0)
COUNT: Final = """
select
  (select count(*) from pgflow.runs where run_id = %(run)s),
  (select count(*) from pgflow.step_states where run_id = %(run)s),
  (select count(*) from pgflow.step_tasks where run_id = %(run)s)
"""
LEAVE: Final = """
update pgflow.step_tasks set message_id = (select pgmq.send(%s, jsonb_build_object()))
where run_id = %s and step_slug = 'a'
"""


@pytest.fixture
def pruning(conn: Conn) -> Conn:
    """A connection to a database that has the function."""
    conn.execute(PRUNE.read_bytes())
    return conn


@pytest.fixture
def committed(database: str) -> str:
    """Conninfo of a database of its own that has the function."""
    with psycopg.connect(database) as conn:
        conn.execute(PRUNE.read_bytes())
    return database


def prune(conn: Conn, retention: str = "7 days") -> None:
    """Prune what is older."""
    conn.execute(CALL, [retention])


def age_run(conn: Conn, run_id: UUID, age: str = "8 days") -> None:
    """Move a run into the past."""
    conn.execute(AGE_RUN, {"age": age, "run": run_id})


def age_workers(conn: Conn) -> None:
    """Silence all workers for a long time."""
    conn.execute("update pgflow.workers set last_heartbeat_at = now() - interval '30 days'")


def age_archive(conn: Conn, queue: str) -> None:
    """Move a queue's archived messages into the past."""
    conn.execute(f"update pgmq.a_{queue} set archived_at = archived_at - interval '8 days'".encode())


def rows(conn: Conn, run_id: UUID) -> tuple[int, int, int]:
    """How many rows a run has: in runs, step_states, step_tasks."""
    row = conn.execute(COUNT, {"run": run_id}).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def completed_run(conn: Conn, flow: str) -> UUID:
    """A run of a flow of one step, done."""
    run_id = start(conn, flow, {})
    for task in claim(conn, flow):
        complete(conn, task, 1)
    assert run_of(conn, run_id)["status"] == "completed"
    return run_id


def failed_run(conn: Conn, flow: str) -> UUID:
    """A run whose first task is exhausted."""
    run_id = start(conn, flow, {})
    fail(conn, claim(conn, flow)[0])
    assert run_of(conn, run_id)["status"] == "failed"
    return run_id


def leave_message(conn: Conn, run_id: UUID, flow: str) -> None:
    """Leave a message of an ended run's first task in the live queue, as 0.15.0 did."""
    conn.execute(LEAVE, [flow, run_id])


def test_old_completed_runs_go_and_young_ones_stay(pruning: Conn) -> None:
    define(pruning, "f", "a")
    old, young = completed_run(pruning, "f"), completed_run(pruning, "f")
    age_run(pruning, old)
    age_run(pruning, young, "6 days")
    prune(pruning)
    assert rows(pruning, old) == GONE
    assert rows(pruning, young) == (1, 1, 1)
    assert broken(pruning) == []


def test_old_failed_runs_go_with_steps_that_never_ran(pruning: Conn) -> None:
    define(pruning, "f", Step("a", max_attempts=1), Step("b", ["a"]), Step("c", ["b"]))
    old = failed_run(pruning, "f")
    assert states(pruning, old)["c"]["status"] == "created"
    age_run(pruning, old)
    prune(pruning)
    assert rows(pruning, old) == GONE


def test_running_runs_stay_however_old(pruning: Conn) -> None:
    define(pruning, "f", "a", Step("b", ["a"]))
    run_id = start(pruning, "f", {})
    (task,) = claim(pruning, "f")
    complete(pruning, task, 1)
    age_run(pruning, run_id, "99 days")
    prune(pruning)
    assert rows(pruning, run_id) == (1, 2, 2)
    assert broken(pruning) == []


def test_tasks_without_message_are_pruned(pruning: Conn) -> None:
    define(pruning, "f", "a", "b")
    old = completed_run(pruning, "f")
    pruning.execute("update pgflow.step_tasks set message_id = null where step_slug = 'a'")
    age_run(pruning, old)
    prune(pruning)
    assert rows(pruning, old) == GONE


def test_live_messages_of_pruned_runs_go_and_others_stay(pruning: Conn) -> None:
    for flow in ("f", "g", "MyFlow"):
        define(pruning, flow, "a")
    old = {flow: completed_run(pruning, flow) for flow in ("f", "g", "MyFlow")}
    start(pruning, "f", {})
    kept = queued(pruning, "f")
    for flow, run_id in old.items():
        leave_message(pruning, run_id, flow)
        age_run(pruning, run_id)
    prune(pruning)
    assert [queued(pruning, flow) for flow in ("f", "g", "MyFlow")] == [kept, [], []]
    assert broken(pruning) == []


def test_archives_of_all_flows_are_trimmed_by_age(pruning: Conn) -> None:
    """Also those of flows that have no run, and those of mixed case."""
    for flow in ("f", "MyFlow"):
        define(pruning, flow, "a")
        run_id = completed_run(pruning, flow)
        age_archive(pruning, flow)
    age_run(pruning, run_id)
    completed_run(pruning, "f")
    young = archived(pruning, "f")[1:]
    prune(pruning)
    assert archived(pruning, "f") == young
    assert archived(pruning, "MyFlow") == []
    assert rows(pruning, run_id) == GONE


def test_old_workers_go_and_their_tasks_forget_them(pruning: Conn) -> None:
    define(pruning, "f", "a")
    old = add_worker(pruning)
    age_workers(pruning)
    young = add_worker(pruning)
    run_id = start(pruning, "f", {})
    claim(pruning, "f", worker=old)
    prune(pruning)
    assert pruning.execute("select worker_id from pgflow.workers").fetchall() == [(young,)]
    assert [row["last_worker_id"] for row in tasks(pruning, run_id)] == [None]


@pytest.mark.parametrize("missing", ["q_f", "a_f", "q_f, pgmq.a_f"])
def test_a_flow_without_its_queue_tables_is_pruned_all_the_same(pruning: Conn, missing: str) -> None:
    define(pruning, "f", "a")
    define(pruning, "g", "a")
    old = [completed_run(pruning, flow) for flow in ("f", "g")]
    for run_id in old:
        age_run(pruning, run_id)
    age_archive(pruning, "g")
    pruning.execute(f"drop table pgmq.{missing}".encode())
    prune(pruning)
    assert [rows(pruning, run_id) for run_id in old] == [GONE, GONE]
    assert archived(pruning, "g") == []


def test_nothing_to_prune_is_no_error(pruning: Conn) -> None:
    prune(pruning)


@pytest.mark.parametrize(("retention", "shown"), [(None, "null"), ("-1 day", "-1 days")])
def test_a_null_or_negative_retention_is_refused(pruning: Conn, retention: str | None, shown: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        pruning.execute(CALL, [retention])
    assert caught.value.diag.message_primary == f"retention must not be negative or null, got {shown}"


def test_prune_waits_for_a_callback_that_archives_its_message(committed: str) -> None:
    """Row 144: the callback holds the message that the prune wants."""
    with psycopg.connect(committed) as a, psycopg.connect(committed) as b:
        define(a, "f", Step("a", max_attempts=1))
        run_id = failed_run(a, "f")
        age_run(a, run_id)
        leave_message(a, run_id, "f")
        a.commit()
        fail(a, (run_id, "a", 0))
        _run_second(committed, first=a, second=b)
        assert rows(b, run_id) == GONE
        assert queued(b, "f") == []


def test_a_late_callback_waits_for_an_open_prune(committed: str) -> None:
    """Row 144: the other way round, for a failed run's message and for a completed run."""
    with psycopg.connect(committed) as a, psycopg.connect(committed) as b, ThreadPoolExecutor(1) as pool:
        define(a, "f", Step("a", max_attempts=1))
        old = [failed_run(a, "f"), completed_run(a, "f")]
        for run_id, late in zip(old, (fail, complete), strict=True):
            age_run(a, run_id)
            leave_message(a, run_id, "f")
            a.commit()
            prune(a)
            with psycopg.connect(committed, autocommit=True) as watcher:
                pending = pool.submit(late, b, (run_id, "a", 0))
                wait_until_blocked(watcher, waiter=b.info.backend_pid, holder=a.info.backend_pid)
                a.commit()
                pending.result(timeout=30)
            b.commit()
        assert [rows(b, run_id) for run_id in old] == [GONE, GONE]
        assert queued(b, "f") == []


def test_prune_waits_for_the_claim_of_an_old_worker(committed: str) -> None:
    """The claim holds the worker's row before its tasks, as the prune does."""
    with psycopg.connect(committed) as a, psycopg.connect(committed) as b:
        define(a, "f", "a", "b")
        worker = add_worker(a)
        age_workers(a)
        run_id = start(a, "f", {})
        a.commit()
        assert len(claim(a, "f", worker=worker)) == 2
        _run_second(committed, first=a, second=b)
        assert [row["last_worker_id"] for row in tasks(b, run_id)] == [None, None]
        assert broken(b) == []


def test_prune_does_not_wait_for_a_callback_of_a_running_run(committed: str) -> None:
    """Its worker stays until the next call."""
    with psycopg.connect(committed) as a, psycopg.connect(committed) as b:
        define(a, "f", "a", Step("b", ["a"]))
        worker = add_worker(a)
        start(a, "f", {})
        (task,) = claim(a, "f", worker=worker)
        age_workers(a)
        a.commit()
        complete(a, task, 1)
        b.execute("set lock_timeout = '5s'")
        prune(b)
        assert b.execute("select from pgflow.workers").rowcount == 1
        b.commit()
        a.commit()
        prune(b)
        assert b.execute("select from pgflow.workers").rowcount == 0
        assert broken(b) == []


def test_a_deletion_waits_for_an_open_prune(committed: str) -> None:
    """The prune holds the flow's row, so the queue that it trims does not vanish."""
    with psycopg.connect(committed) as a, psycopg.connect(committed) as b:
        define(a, "f", "a")
        run_id = completed_run(a, "f")
        age_run(a, run_id)
        a.commit()
        prune(a)
        _run_second(committed, first=a, second=b, query="select pgflow.delete_flow_and_data('f')")
        assert b.execute("select from pgflow.flows").rowcount == 0


def test_prune_waits_for_an_open_deletion(committed: str) -> None:
    """The flow is gone then, and with it its queue."""
    with psycopg.connect(committed) as a, psycopg.connect(committed) as b:
        define(a, "f", "a")
        age_run(a, completed_run(a, "f"))
        a.commit()
        a.execute("select pgflow.delete_flow_and_data('f')")
        _run_second(committed, first=a, second=b)
        assert b.execute("select from pgflow.runs").rowcount == 0


def _run_second(
    conninfo: str, *, first: Conn, second: Conn, query: str = "select pgflow.prune_data_older_than('7 days')"
) -> None:
    """Let a call wait for an open transaction, commit that, and see the call end."""
    with psycopg.connect(conninfo, autocommit=True) as watcher, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(second.execute, query.encode())
        wait_until_blocked(watcher, waiter=second.info.backend_pid, holder=first.info.backend_pid)
        first.commit()
        pending.result(timeout=30)
