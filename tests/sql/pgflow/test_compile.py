"""Compiling at a worker's start: `ensure_flow_compiled` and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.pgflow.engine import define, queued, start
from tests.sql.pgflow.test_shape import RICH, shape, shape_of, step
from tests.sql.pgflow.watching import picture, race

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

LOCAL_SECRET: Final = "super-secret-jwt-token-with-at-least-32-characters-long"
COMPILED: Final[dict[str, Any]] = {"status": "compiled", "differences": []}
VERIFIED: Final[dict[str, Any]] = {"status": "verified", "differences": []}

ONE: Final = shape(step("a"))
OTHER: Final = shape(step("b", stepType="map"))
DIFFERENCES: Final = [
    "Step at index 0: slug differs 'b' vs 'a'",
    "Step at index 0: type differs 'map' vs 'single'",
]


def compile_flow(conn: Conn, flow: str | None, value: dict[str, Any]) -> Any:
    """Compile a shape: status and differences."""
    row = conn.execute(
        "select pgflow.ensure_flow_compiled(flow_slug => %s, shape => %s)", [flow, Jsonb(value)]
    ).fetchone()
    assert row is not None
    return row[0]


def be_local(conn: Conn) -> None:
    """Make the rest of the transaction believe that this is a developer's machine."""
    conn.execute("select set_config('app.settings.jwt_secret', %s, true)", [LOCAL_SECRET])


def definition(conn: Conn) -> list[tuple[Any, ...]]:
    """All rows of all definitions."""
    return conn.execute(
        "select 'flow', to_jsonb(f) from pgflow.flows as f"
        " union all select 'step', to_jsonb(s) from pgflow.steps as s"
        " union all select 'dep', to_jsonb(d) from pgflow.deps as d"
        " union all select 'queue', to_jsonb(m) from pgmq.meta as m order by 1, 2"
    ).fetchall()


def test_a_missing_flow_is_created(conn: Conn) -> None:
    """Row 21."""
    assert compile_flow(conn, "f", RICH) == COMPILED
    assert shape_of(conn, "f") == RICH
    assert queued(conn, "f") == []


def test_a_flow_without_steps_is_created(conn: Conn) -> None:
    assert compile_flow(conn, "f", shape()) == COMPILED
    assert compile_flow(conn, "f", shape()) == VERIFIED


@pytest.mark.parametrize("local", [False, True])
def test_an_equal_flow_is_verified_and_not_touched(conn: Conn, local: bool) -> None:
    """Row 22."""
    compile_flow(conn, "f", RICH)
    start(conn, "f", [1])
    if local:
        be_local(conn)
    before = definition(conn), picture(conn, "f")
    assert compile_flow(conn, "f", RICH) == VERIFIED
    assert (definition(conn), picture(conn, "f")) == before


def test_an_equal_flow_is_verified_without_its_queue(conn: Conn) -> None:
    compile_flow(conn, "f", ONE)
    conn.execute("select pgmq.drop_queue('f')")
    assert compile_flow(conn, "f", ONE) == VERIFIED
    assert conn.execute("select to_regclass('pgmq.q_f')").fetchone() == (None,)


@pytest.mark.parametrize("local", [False, True])
def test_options_are_neither_compared_nor_updated(conn: Conn, local: bool) -> None:
    """Row 20."""
    options = {"maxAttempts": 2, "timeout": 10}
    compile_flow(conn, "f", {"steps": [step("a", options=options)], "options": options})
    before = definition(conn)
    if local:
        be_local(conn)
    assert compile_flow(conn, "f", {"steps": [step("a", options={"timeout": 99})]}) == VERIFIED
    assert definition(conn) == before


def test_another_shape_in_production_is_a_mismatch_and_touches_nothing(conn: Conn) -> None:
    """Row 23."""
    compile_flow(conn, "f", ONE)
    start(conn, "f", {})
    before = definition(conn), picture(conn, "f")
    assert compile_flow(conn, "f", OTHER) == {"status": "mismatch", "differences": DIFFERENCES}
    assert (definition(conn), picture(conn, "f")) == before


def test_another_shape_locally_replaces_the_flow_and_its_runs(conn: Conn) -> None:
    """Row 24."""
    compile_flow(conn, "f", ONE)
    compile_flow(conn, "g", ONE)
    start(conn, "f", {})
    other_run = start(conn, "g", {})
    be_local(conn)
    assert compile_flow(conn, "f", OTHER) == {"status": "recompiled", "differences": DIFFERENCES}
    assert shape_of(conn, "f") == OTHER
    assert queued(conn, "f") == []
    assert conn.execute("select run_id from pgflow.runs").fetchall() == [(other_run,)]
    assert len(queued(conn, "g")) == 1
    assert compile_flow(conn, "f", OTHER) == VERIFIED


def test_a_flow_that_is_recompiled_takes_the_options_of_the_new_shape(conn: Conn) -> None:
    compile_flow(conn, "f", {"steps": [step("a")], "options": {"timeout": 10}})
    be_local(conn)
    compile_flow(conn, "f", {"steps": [step("b")], "options": {"maxAttempts": 1}})
    row = conn.execute("select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows").fetchone()
    assert row == (1, 5, 60)


def test_a_bad_shape_locally_leaves_the_old_flow(conn: Conn) -> None:
    compile_flow(conn, "f", ONE)
    be_local(conn)
    start(conn, "f", {})
    before = definition(conn), picture(conn, "f")
    bad = shape(step("b"), step("c", dependencies=["nobody"]))
    with pytest.raises(psycopg.errors.ForeignKeyViolation), conn.transaction():
        compile_flow(conn, "f", bad)
    assert (definition(conn), picture(conn, "f")) == before


def test_a_flow_is_looked_up_by_its_exact_spelling(conn: Conn) -> None:
    compile_flow(conn, "MyFlow", ONE)
    assert compile_flow(conn, "myflow", OTHER) == COMPILED
    assert shape_of(conn, "MyFlow") == ONE


def test_a_flow_defined_by_hand_is_verified(conn: Conn) -> None:
    define(conn, "f", "a")
    assert compile_flow(conn, "f", ONE) == VERIFIED


def test_a_flow_without_a_slug_is_refused(conn: Conn) -> None:
    with pytest.raises(psycopg.errors.NotNullViolation):
        compile_flow(conn, None, ONE)


@pytest.mark.parametrize("third", ["true", "false", "null::boolean", "'{}'::jsonb"])
def test_a_third_argument_finds_no_function(conn: Conn, third: str) -> None:
    """Row 28."""
    with pytest.raises(psycopg.errors.UndefinedFunction):
        conn.execute(f"select pgflow.ensure_flow_compiled('f', '{{}}', {third})".encode())


def test_one_of_two_that_compile_at_once_compiles_and_the_other_verifies(database: str) -> None:
    """Row 25."""
    with race(database) as two:
        first = compile_flow(two.a, "f", RICH)
        pending = two.b_waits_for_a(lambda b: compile_flow(b, "f", RICH))
        two.a.commit()
        assert (first, pending.result(timeout=10)) == (COMPILED, VERIFIED)


def test_one_of_two_that_compile_at_once_compiles_after_the_other_failed(database: str) -> None:
    """Row 25."""
    with race(database) as two:
        compile_flow(two.a, "f", ONE)
        pending = two.b_waits_for_a(lambda b: compile_flow(b, "f", OTHER))
        two.a.rollback()
        assert pending.result(timeout=10) == COMPILED
        two.b.commit()
        assert shape_of(two.watcher, "f") == OTHER


def test_compilations_of_different_flows_do_not_wait_for_each_other(database: str) -> None:
    with race(database) as two:
        compile_flow(two.a, "f", ONE)
        two.b.execute("set local lock_timeout = '5s'")
        assert compile_flow(two.b, "g", ONE) == COMPILED
