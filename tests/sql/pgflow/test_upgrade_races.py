"""The migration to 0.15.1 while workers are at work: it waits for them, they for it, and none is a victim."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    Step,
    add_worker,
    claim,
    complete,
    define,
    fail,
    run_of,
    start,
    tasks,
    wait_until_blocked,
)
from tests.sql.pgflow.releases import MIGRATIONS, release
from tests.sql.pgflow.test_recovery import requeue, stall
from tests.sql.pgflow.watching import claimed, race

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pgsluice.pipeline.devdb import DevServer
    from tests.sql.pgflow.engine import Conn

SKIP: Final = "select pgflow._cascade_force_skip_steps(%s, 'm', 'condition_unmet')"
OPEN_TASKS: Final = """
select count(*)
from pgflow.step_tasks as t
join pgflow.step_states as s using (run_id, step_slug)
join pgflow.runs as r using (run_id)
where t.status in ('queued', 'started') and (s.status = 'skipped' or r.status = 'failed')
"""
# What comes while the migration waits: task 1 is started and stalled, task 2 queued.
CALLS: Final[dict[str, Callable[[Conn, UUID, UUID], Any]]] = {
    "claim": lambda conn, _run_id, worker: claim(conn, "f", worker=worker, ids=[3]),
    "recovery": lambda conn, _run_id, _worker: requeue(conn),
    "complete": lambda conn, run_id, _worker: complete(conn, (run_id, "m", 1)),
    "fail": lambda conn, run_id, _worker: fail(conn, (run_id, "m", 1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_migration_waits_for_an_open_failure_and_then_ends_its_tasks(
    server: DevServer, call: Callable[[Conn, UUID, UUID], Any]
) -> None:
    """The failing call leaves siblings open, as 0.15.0 does; a newcomer waits behind the migration."""
    with (
        server.clone(release(server, "0.15.0")) as conninfo,
        ThreadPoolExecutor(1) as other_pool,
        race(conninfo) as sessions,
        psycopg.connect(conninfo) as newcomer,
    ):
        define(sessions.a, "f", Step("m", type="map"), max_attempts=1)
        run_id = start(sessions.a, "f", [0, 1, 2])
        worker = add_worker(sessions.a)
        work = claimed(sessions.a, "f", ids=[1, 2])
        stall(sessions.a, index=1)
        sessions.a.commit()
        fail(sessions.a, work["m", 0])
        migrating = sessions.b_waits_for_a(lambda b: b.execute(MIGRATIONS[1].read_bytes()))
        coming = other_pool.submit(call, newcomer, run_id, worker)
        migration, new = (one.info.backend_pid for one in (sessions.b, newcomer))
        wait_until_blocked(sessions.watcher, waiter=new, holder=migration)
        sessions.a.commit()
        migrating.result(timeout=10)
        sessions.b.commit()
        coming.result(timeout=10)
        newcomer.commit()
        assert run_of(sessions.a, run_id)["status"] == "failed"
        ended = [row["status"] for row in tasks(sessions.a, run_id)]
        assert ended == ["failed", "cancelled", "cancelled"]


def test_no_call_of_the_old_functions_ends_a_step_after_the_repair(server: DevServer) -> None:
    """The skip comes while the migration waits; one that has begun may end with an error, not by half."""
    with (
        server.clone(release(server, "0.15.0")) as conninfo,
        ThreadPoolExecutor(1) as other_pool,
        race(conninfo) as sessions,
        psycopg.connect(conninfo) as newcomer,
    ):
        define(sessions.a, "f", Step("m", type="map"), max_attempts=1)
        run_id, other = (start(sessions.a, "f", [0, 1]) for _ in range(2))
        work = claim(sessions.a, "f")
        sessions.a.commit()
        fail(sessions.a, next(task for task in work if task.run_id == run_id))
        migrating = sessions.b_waits_for_a(lambda b: b.execute(MIGRATIONS[1].read_bytes()))
        coming = other_pool.submit(newcomer.execute, SKIP, [other])
        migration, new = (one.info.backend_pid for one in (sessions.b, newcomer))
        wait_until_blocked(sessions.watcher, waiter=new, holder=migration)
        sessions.a.commit()
        migrating.result(timeout=10)
        sessions.b.commit()
        with suppress(psycopg.errors.UndefinedFunction):
            coming.result(timeout=10)
        newcomer.execute("commit")
        assert sessions.watcher.execute(OPEN_TASKS).fetchone() == (0,)
