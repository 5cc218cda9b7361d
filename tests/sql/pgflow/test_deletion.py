"""Deleting a flow with all its data: what goes, and what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    Step,
    archived,
    claim,
    complete,
    define,
    fail,
    queued,
    read,
    run_of,
    start,
    statuses,
)

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

# every row of the engine, but those of workers, that the flow's slug is in
ROWS: Final = """
select 'flow', to_jsonb(x)::text from pgflow.flows as x
union all select 'step', to_jsonb(x)::text from pgflow.steps as x
union all select 'dep', to_jsonb(x)::text from pgflow.deps as x
union all select 'run', to_jsonb(x)::text from pgflow.runs as x
union all select 'state', to_jsonb(x)::text from pgflow.step_states as x
union all select 'task', to_jsonb(x)::text from pgflow.step_tasks as x
union all select 'queue', to_jsonb(x)::text from pgmq.meta as x
union all
select 'table', relname::text from pg_catalog.pg_class
where relnamespace = 'pgmq'::regnamespace and relname ~ '^[qa]_' and relkind in ('r', 'S')
order by 1, 2
"""
LOSE_MESSAGE: Final = """
with sent as (
  select run_id, step_slug, task_index, pgmq.delete(%s, message_id)
  from pgflow.step_tasks
  where run_id = %s and task_index = 2
)
update pgflow.step_tasks as t
set message_id = null
from sent as s
where (t.run_id, t.step_slug, t.task_index) = (s.run_id, s.step_slug, s.task_index)
"""
MODES: Final = (
    Step("root"),
    Step("each", type="map", deps=["root"]),
    Step("never", required={"x": 1}),
    Step("optional", deps=["root"], max_attempts=1, when_exhausted="skip"),
    Step("last", deps=["each", "optional"]),
)


def delete(conn: Conn, flow: str | None) -> None:
    """Delete a flow and its data."""
    conn.execute("select pgflow.delete_flow_and_data(p_flow_slug => %s)", [flow])


def rows(conn: Conn) -> list[tuple[str, str]]:
    """Every definition, run, state and task, and every queue with its tables and sequences."""
    return conn.execute(ROWS).fetchall()


def fill(conn: Conn, flow: str) -> None:
    """Define a flow, and leave runs of it in every state."""
    define(conn, flow, *MODES, max_attempts=1)
    started, failed, completed, retried = (start(conn, flow, {}) for _ in range(4))
    for task in claim(conn, flow):
        if task.run_id == failed:
            fail(conn, task)
        elif task.run_id == completed:
            complete(conn, task, [])
        elif task.run_id == started:
            complete(conn, task, [1, 2, 3])
    for task in claim(conn, flow):
        if task.step_slug == "optional":
            fail(conn, task)
        elif task.task_index == 0:
            complete(conn, task)
    for task in claim(conn, flow):
        if task.run_id == completed:
            complete(conn, task)
    conn.execute(LOSE_MESSAGE, [flow, started])
    assert run_of(conn, failed)["status"] == "failed"
    assert run_of(conn, completed)["status"] == "completed"
    assert set(statuses(conn, started).values()) == {"completed", "started", "skipped", "created"}
    assert statuses(conn, retried)["root"] == "started"


def test_nothing_of_a_flow_is_left_and_other_flows_are_intact(conn: Conn) -> None:
    fill(conn, "g")
    before = rows(conn), queued(conn, "g"), archived(conn, "g")
    fill(conn, "f")
    assert rows(conn) != before[0]
    delete(conn, "f")
    assert (rows(conn), queued(conn, "g"), archived(conn, "g")) == before


def test_a_deleted_flow_can_be_defined_again(conn: Conn) -> None:
    fill(conn, "f")
    before = len(queued(conn, "f")), len(archived(conn, "f"))
    delete(conn, "f")
    fill(conn, "f")
    assert (len(queued(conn, "f")), len(archived(conn, "f"))) == before
    assert min(queued(conn, "f") + archived(conn, "f")) == 1


@pytest.mark.parametrize("slug", ["myflow", "MYFLOW", "nobody", "", None])
def test_a_slug_that_no_flow_has_touches_nothing(conn: Conn, slug: str | None) -> None:
    fill(conn, "MyFlow")
    conn.execute("select pgmq.create('nobody')")
    before = rows(conn), queued(conn, "MyFlow")
    delete(conn, slug)
    assert (rows(conn), queued(conn, "MyFlow")) == before


@pytest.mark.parametrize("spelling", ["MyFlow", "myflow", "MYFLOW"])
def test_the_queue_goes_in_whatever_spelling_it_has(conn: Conn, spelling: str) -> None:
    before = rows(conn)
    conn.execute("select pgmq.create(%s)", [spelling])
    fill(conn, "MyFlow")
    delete(conn, "MyFlow")
    assert rows(conn) == before


def test_every_entry_of_the_queue_goes(conn: Conn) -> None:
    before = rows(conn)
    fill(conn, "MyFlow")
    conn.execute(
        "insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('myflow', false, false),"
        " ('MYFLOW', false, false)"
    )
    delete(conn, "MyFlow")
    assert rows(conn) == before


def test_a_queue_without_an_entry_goes_too(conn: Conn) -> None:
    before = rows(conn)
    fill(conn, "MyFlow")
    conn.execute("delete from pgmq.meta")
    delete(conn, "MyFlow")
    assert rows(conn) == before


@pytest.mark.parametrize("slug", ["MyFlow", "s" * 128])
def test_a_flow_without_a_queue_is_deleted(conn: Conn, slug: str) -> None:
    before = rows(conn)
    conn.execute("insert into pgflow.flows (flow_slug) values (%s)", [slug])
    delete(conn, slug)
    assert rows(conn) == before


def test_an_entry_without_tables_goes(conn: Conn) -> None:
    before = rows(conn)
    define(conn, "MyFlow", "a")
    conn.execute("select pgmq.drop_queue('myflow')")
    assert conn.execute("select queue_name from pgmq.meta").fetchall() == [("MyFlow",)]
    delete(conn, "MyFlow")
    assert rows(conn) == before


@pytest.mark.parametrize(("first", "second"), [("MyFlow", "myflow"), ("myflow", "MyFlow")])
def test_a_queue_that_two_flows_share_goes_with_the_second(conn: Conn, first: str, second: str) -> None:
    before = rows(conn)
    fill(conn, "MyFlow")
    define(conn, "myflow", "a")
    runs = {flow: start(conn, flow, {}) for flow in ("MyFlow", "myflow")}
    done = archived(conn, "myflow")

    delete(conn, first)
    assert conn.execute("select queue_name from pgmq.meta").fetchall() == [("MyFlow",)]
    left = conn.execute("select message ->> 'flow_slug' from pgmq.q_myflow").fetchall()
    assert set(left) == {(second,)}
    assert archived(conn, "myflow") == done
    conn.execute("update pgmq.q_myflow set vt = now() - interval '1 s'")
    tasks = claim(conn, second, ids=read(conn, second))
    assert runs[second] in {task.run_id for task in tasks}

    delete(conn, second)
    assert rows(conn) == before


def test_an_archive_whose_queue_is_gone_goes_too(conn: Conn) -> None:
    fill(conn, "f")
    conn.execute("drop table pgmq.q_f")
    delete(conn, "f")
    assert conn.execute("select to_regclass('pgmq.a_f')").fetchone() == (None,)


def test_a_queue_that_the_caller_cannot_drop_keeps_the_flow(conn: Conn) -> None:
    fill(conn, "f")
    conn.execute(
        "create role pgflow_test_definer nologin;"
        "grant usage on schema pgflow, pgmq to pgflow_test_definer;"
        "grant all on all tables in schema pgflow to pgflow_test_definer;"
        "grant all on pgmq.meta to pgflow_test_definer"
    )
    before = rows(conn)
    conn.execute("set local role pgflow_test_definer")
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught, conn.transaction():
        delete(conn, "f")
    conn.execute("reset role")
    assert caught.value.diag.message_primary == "queue of flow f exists, but this role cannot drop it"
    assert rows(conn) == before
