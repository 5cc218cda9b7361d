"""What 0.15.0 lacks, from which an upgrade has to start: as it was, not as it should have been.

Callbacks that lock messages before tasks are not repeated: they would be a deadlock and nothing to rely on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.pgflow.engine import (
    READ_VT_S,
    Step,
    add_worker,
    archived,
    claim,
    define,
    fail,
    hidden_s,
    queued,
    read,
    run_of,
    start,
    statuses,
    tasks,
)
from tests.sql.pgflow.releases import release
from tests.sql.pgflow.test_recovery import requeue, stall
from tests.sql.pgflow.test_shape import shape, step
from tests.sql.pgflow.watching import claimed, race

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer
    from tests.sql.pgflow.engine import Conn

COMPILERS: Final = (
    "select pg_catalog.pg_get_function_arguments(oid) from pg_catalog.pg_proc"
    " where pronamespace = 'pgflow'::regnamespace and proname = 'ensure_flow_compiled'"
)
COMPILE: Final = "select pgflow.ensure_flow_compiled('f', %s, allow_data_loss => %s) ->> 'status'"
COMPILE_BY_DEFAULT: Final = "select pgflow.ensure_flow_compiled('f', %s) ->> 'status'"
CALL: Final = b"select pgflow.ensure_flow_compiled('f', '{}'::jsonb, %b)"
RUNS: Final = "select count(*) from pgflow.runs"
SET_STATUS: Final = "update pgflow.step_tasks set status = %s"


@pytest.fixture(scope="module", params=["0.15.0", "0.15.1"])
def either(server: DevServer, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A release, and the conninfo of its database for all tests that roll back what they do."""
    with server.clone(release(server, request.param)) as conninfo:
        yield request.param, conninfo


@pytest.fixture(scope="module")
def shared(server: DevServer) -> Iterator[str]:
    """Conninfo of one database of 0.15.0; the fixture `conn` rolls back in it."""
    with server.clone(release(server, "0.15.0")) as conninfo:
        yield conninfo


@pytest.mark.parametrize("status", ["skipped", "cancelled"])
def test_the_states_skipped_and_cancelled_came_with_0_15_1(either: tuple[str, str], status: str) -> None:
    version, conninfo = either
    with psycopg.connect(conninfo) as conn:
        define(conn, "f", "a")
        start(conn, "f")
        if version == "0.15.0":
            with pytest.raises(psycopg.errors.CheckViolation, match="valid_status"):
                conn.execute(SET_STATUS, [status])
        else:
            conn.execute(SET_STATUS, [status])
        conn.rollback()


@pytest.mark.parametrize(
    ("mode", "ends"), [("fail", ("failed", "failed")), ("skip", ("completed", "skipped"))]
)
def test_siblings_of_an_exhausted_task_stay_open_without_a_message(
    conn: Conn, mode: str, ends: tuple[str, str]
) -> None:
    define(conn, "f", Step("m", type="map", when_exhausted=mode), max_attempts=1)
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f", ids=read(conn, "f", qty=2))
    fail(conn, work["m", 0])
    assert [row["status"] for row in tasks(conn, run_id)] == ["failed", "started", "queued"]
    assert (run_of(conn, run_id)["status"], statuses(conn, run_id)["m"]) == ends
    assert (queued(conn, "f"), archived(conn, "f")) == ([], [1, 2, 3])


def test_a_late_failure_on_a_failed_run_fails_a_started_task(conn: Conn) -> None:
    define(conn, "f", Step("m", type="map"), max_attempts=1)
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f", ids=read(conn, "f", qty=2))
    fail(conn, work["m", 0], "first")
    row = fail(conn, work["m", 1], "late")
    assert row is not None
    assert (row["status"], row["error_message"], row["failed_at"] is None) == ("failed", "late", False)
    fail(conn, (run_id, "m", 2), "late")
    last = tasks(conn, run_id)[2]
    assert (last["status"], last["error_message"], last["failed_at"]) == ("queued", None, None)


@pytest.mark.parametrize(("of_step", "of_flow", "stalled"), [(5, 60, 0), (60, 5, 1)])
def test_recovery_goes_by_the_flow_s_timeout_alone(
    conn: Conn, of_step: int, of_flow: int, stalled: int
) -> None:
    define(conn, "f", Step("a", timeout=of_step), timeout=of_flow)
    start(conn, "f")
    claim(conn, "f")
    stall(conn, "36 s")
    assert requeue(conn) == stalled


@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_recovery_revives_tasks_of_failed_runs_and_skipped_steps(conn: Conn, mode: str) -> None:
    define(conn, "f", Step("m", type="map", when_exhausted=mode), max_attempts=1)
    run_id = start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    fail(conn, work["m", 0])
    stall(conn)
    assert requeue(conn) == 1
    assert [row["status"] for row in tasks(conn, run_id)] == ["failed", "queued"]


def test_a_claim_hides_its_message_no_longer_than_the_read_did(conn: Conn) -> None:
    define(conn, "f", Step("a", timeout=600))
    start(conn, "f")
    (task,) = claim(conn, "f")
    assert 0 < hidden_s(conn, "f", task.msg_id) <= READ_VT_S


def test_both_of_two_claims_at_once_are_given_the_task(server: DevServer) -> None:
    with server.clone(release(server, "0.15.0")) as conninfo, race(conninfo) as sessions:
        define(sessions.a, "f", "a")
        run_id = start(sessions.a, "f")
        worker = add_worker(sessions.a)
        sessions.a.commit()
        assert len(claim(sessions.a, "f", worker=worker, ids=[1])) == 1
        pending = sessions.b_waits_for_a(lambda b: claim(b, "f", worker=worker, ids=[1]))
        sessions.a.commit()
        assert [task.key for task in pending.result(timeout=10)] == [(run_id, "a", 0)]
        sessions.b.commit()
        assert [row["attempts_count"] for row in tasks(sessions.a, run_id)] == [1]


def test_the_compiler_of_0_15_takes_data_loss_as_third_argument(either: tuple[str, str]) -> None:
    with psycopg.connect(either[1]) as conn:
        assert conn.execute(COMPILERS).fetchall() == [
            ("flow_slug text, shape jsonb, allow_data_loss boolean DEFAULT false",)
        ]
        define(conn, "f", "a")
        start(conn, "f")
        other = Jsonb(shape(step("b")))
        assert conn.execute(COMPILE_BY_DEFAULT, [other]).fetchone() == ("mismatch",)
        for allowed in (False, None):
            assert conn.execute(COMPILE, [other, allowed]).fetchone() == ("mismatch",)
        assert conn.execute(RUNS).fetchone() == (1,)
        assert conn.execute(COMPILE, [other, True]).fetchone() == ("recompiled",)
        assert conn.execute(RUNS).fetchone() == (0,)
        assert conn.execute(COMPILE_BY_DEFAULT, [other]).fetchone() == ("verified",)
        conn.rollback()


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        (b"'{\"a\": 1}'", psycopg.errors.InvalidTextRepresentation),
        (b"'{\"a\": 1}'::jsonb", psycopg.errors.UndefinedFunction),
    ],
)
def test_an_untyped_third_argument_is_taken_for_the_boolean(
    either: tuple[str, str], argument: bytes, error: type[psycopg.Error]
) -> None:
    with psycopg.connect(either[1]) as conn, pytest.raises(error):
        conn.execute(CALL % argument)
