"""Deletion of a flow against everything else that uses it: one waits, none deadlocks, nothing is left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg
import pytest

from tests.sql.pgflow.engine import CLAIM, Step, add_worker, claim, complete, define, fail, read, start
from tests.sql.pgflow.test_deletion import delete, rows
from tests.sql.pgflow.watching import race

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer
    from tests.sql.pgflow.engine import Conn, Task
    from tests.sql.pgflow.watching import Race

ROUNDS: Final = 50
TASKS: Final = 4
TIMEOUT_S: Final = 20
CHAIN: Final = (Step("a", max_attempts=1, when_exhausted="skip"), Step("b", deps=["a"]))
CALLBACKS: Final[dict[str, Callable[[Conn, Task], dict[str, Any] | None]]] = {
    "complete": complete,
    "fail": fail,
}


@pytest.fixture(scope="module")
def arena(server: DevServer, template: str) -> Iterator[str]:
    """Conninfo of one database for all of these tests: each leaves no flow behind."""
    with server.clone(template) as conninfo:
        yield conninfo


@pytest.fixture
def two(arena: str) -> Iterator[Race]:
    """Two sessions; flows that the test leaves are deleted."""
    with race(arena) as sessions:
        yield sessions
    with psycopg.connect(arena) as conn:
        conn.execute("select pgflow.delete_flow_and_data(flow_slug) from pgflow.flows order by flow_slug")


def one_task(conn: Conn) -> Task:
    """Define the chain `f`, start a run, claim its first task; each in a transaction of its own."""
    define(conn, "f", *CHAIN)
    start(conn, "f")
    conn.commit()
    ids = read(conn, "f")
    conn.commit()
    (task,) = claim(conn, "f", ids=ids)
    conn.commit()
    return task


def finish(two: Race) -> None:
    """Commit B; nothing of any flow is left."""
    two.b.commit()
    assert rows(two.watcher) == []


@pytest.mark.parametrize("callback", CALLBACKS)
def test_deletion_waits_for_an_open_callback(two: Race, callback: str) -> None:
    task = one_task(two.a)
    row = CALLBACKS[callback](two.a, task)
    assert row is not None
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


@pytest.mark.parametrize("callback", CALLBACKS)
def test_a_callback_starts_the_next_step_while_deletion_waits_for_its_run(two: Race, callback: str) -> None:
    task = one_task(two.a)
    two.a.execute("select from pgflow.runs where run_id = %s for update", [task.run_id])
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    CALLBACKS[callback](two.a, task)
    started = two.a.execute("select status from pgflow.step_tasks where step_slug = 'b'").fetchall()
    assert started == [("queued",)]
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


@pytest.mark.parametrize("callback", CALLBACKS)
def test_a_callback_waits_for_an_open_deletion_and_finds_nothing(two: Race, callback: str) -> None:
    task = one_task(two.a)
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: CALLBACKS[callback](b, task))
    two.a.commit()
    assert pending.result(timeout=TIMEOUT_S) is None
    finish(two)


@pytest.mark.parametrize("table", ["runs", "step_states", "step_tasks"])
def test_deletion_locks_rows_in_the_order_of_their_key(two: Race, table: str) -> None:
    """Row 108: the row that comes second by key is not held while deletion waits for the first."""
    one_task(two.a)
    second, first = UUID(int=2), UUID(int=1)
    for run_id in (second, first):
        start(two.a, "f", run_id=run_id)
    two.a.commit()
    lock = f"select 1 from pgflow.{table} where run_id = %s and step_slug = 'a' for update".encode()
    lock = lock.replace(b" and step_slug = 'a'", b"") if table == "runs" else lock
    two.a.execute(lock, [first])
    two.b.execute("set local enable_indexscan = off")  # else an index may give the order by chance
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    assert two.watcher.execute(lock + b" skip locked", [second]).fetchall() == [(1,)]
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_a_callback_goes_on_when_the_deletion_is_rolled_back(two: Race) -> None:
    task = one_task(two.a)
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: complete(b, task))
    two.a.rollback()
    row = pending.result(timeout=TIMEOUT_S)
    assert row is not None
    assert row["status"] == "completed"


def test_deletion_waits_for_an_open_start(two: Race) -> None:
    one_task(two.a)
    start(two.a, "f")
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_a_start_waits_for_an_open_deletion_and_is_refused(two: Race) -> None:
    one_task(two.a)
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: start(b, "f"))
    two.a.commit()
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="runs_flow_slug_fkey"):
        pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_a_new_step_waits_for_an_open_deletion_and_is_refused(two: Race) -> None:
    one_task(two.a)
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: b.execute("select pgflow.add_step('f', 'c')"))
    two.a.commit()
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="steps_flow_slug_fkey"):
        pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_deletion_waits_for_an_open_claim(two: Race) -> None:
    one_task(two.a)
    start(two.a, "f")
    two.a.commit()
    ids = read(two.a, "f")
    two.a.commit()
    assert len(claim(two.a, "f", ids=ids)) == 1
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_a_claim_waits_for_an_open_deletion_and_gets_nothing(two: Race) -> None:
    one_task(two.a)
    start(two.a, "f")
    worker = add_worker(two.a)
    two.a.commit()
    ids = read(two.a, "f")
    two.a.commit()
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: b.execute(CLAIM, ["f", ids, worker]).fetchall())
    two.a.commit()
    assert pending.result(timeout=TIMEOUT_S) == []
    finish(two)


def test_recovery_leaves_out_the_tasks_of_an_open_deletion(two: Race) -> None:
    one_task(two.a)
    two.a.execute(
        "update pgflow.step_tasks"
        " set queued_at = now() - interval '1 hour', started_at = now() - interval '1 hour'"
    )
    two.a.commit()
    delete(two.a, "f")
    two.b.execute("set local lock_timeout = '5s'")
    assert two.b.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (0,)
    two.b.commit()
    two.a.commit()
    finish(two)


def test_deletion_waits_for_an_open_poll(two: Race) -> None:
    one_task(two.a)
    read(two.a, "f")
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_the_second_of_two_deletions_finds_nothing(two: Race) -> None:
    one_task(two.a)
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: delete(b, "f"))
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    finish(two)


def test_a_flow_created_during_its_deletion_is_new_and_has_a_queue(two: Race) -> None:
    one_task(two.a)
    delete(two.a, "f")
    pending = two.b_waits_for_a(lambda b: define(b, "f", "z", timeout=7))
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    two.b.commit()
    assert [kind for kind, _ in rows(two.watcher)] == ["flow", "queue", "step", "table", "table", "table"]
    assert start(two.b, "f")


@pytest.mark.parametrize("creator_first", [True, False])
def test_a_flow_that_is_to_share_the_queue_has_one_in_the_end(two: Race, creator_first: bool) -> None:
    define(two.a, "MyFlow", "a")
    two.a.commit()
    steps: list[Callable[[Conn], None]] = [
        lambda conn: define(conn, "myflow", "a"),
        lambda conn: delete(conn, "MyFlow"),
    ]
    first, second = steps if creator_first else reversed(steps)
    first(two.a)
    pending = two.b_waits_for_a(second)
    two.a.commit()
    pending.result(timeout=TIMEOUT_S)
    two.b.commit()
    assert [kind for kind, _ in rows(two.watcher)] == ["flow", "queue", "step", "table", "table", "table"]
    assert start(two.b, "myflow")


def test_callbacks_and_deletion_do_not_deadlock_in_many_rounds(arena: str) -> None:
    """Row 108, as far as it holds for every release."""
    barrier = Barrier(3, timeout=TIMEOUT_S)

    def call_back(tasks: list[Task], conn: Conn) -> list[tuple[UUID, str, int]]:
        barrier.wait()
        found = []
        for number, task in enumerate(tasks):
            row = (fail if number % 2 else complete)(conn, task)
            conn.commit()
            if row is not None:
                found.append(task.key)
        return found

    with (
        ThreadPoolExecutor(2) as pool,
        psycopg.connect(arena) as conn,
        psycopg.connect(arena) as a,
        psycopg.connect(arena) as b,
    ):
        for _ in range(ROUNDS):
            define(conn, "f", *CHAIN)
            for _ in range(TASKS):
                start(conn, "f")
            tasks = claim(conn, "f")
            conn.commit()
            pending = [
                pool.submit(call_back, half, session)
                for half, session in ((tasks[::2], a), (tasks[1::2][::-1], b))
            ]
            barrier.wait()
            delete(conn, "f")
            conn.commit()
            for one in pending:
                one.result(timeout=TIMEOUT_S)
            assert rows(conn) == []
