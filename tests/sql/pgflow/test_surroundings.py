"""What pgflow does where realtime, cron, net and vault are absent, broken, or out of a role's reach."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from .engine import (
    Step,
    claim,
    complete,
    define,
    events,
    fail,
    install_realtime,
    read,
    run_of,
    start,
    statuses,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from .engine import Conn

HERE: Final = Path(__file__).parent
GRANTS: Final = """
grant usage on schema pgflow, pgmq to {role};
grant all on all tables in schema pgflow, pgmq to {role};
grant all on all sequences in schema pgflow, pgmq to {role};
"""
RIGHTS: Final = """
grant usage on schema pgflow, pgmq to {definer}, {worker};
grant create on schema pgmq to {definer};
grant all on all tables in schema pgflow, pgmq to {definer};
grant select, insert, update on all tables in schema pgflow to {worker};
alter default privileges for role {definer} in schema pgmq
  grant select, insert, update, delete on tables to {worker};
revoke execute on function pgflow.requeue_stalled_tasks(), pgflow.cleanup_ensure_workers_logs(integer),
  pgflow.setup_ensure_workers_cron(text), pgflow.setup_requeue_stalled_tasks_cron(text) from public;
grant usage on schema pgflow to {client};
"""
CLOSED: Final = (
    "start_flow('f', '{}')",
    "create_flow('g')",
    "delete_flow_and_data('f')",
    "requeue_stalled_tasks()",
    "cleanup_ensure_workers_logs(0)",
    "setup_ensure_workers_cron()",
    "setup_requeue_stalled_tasks_cron()",
    "track_worker_function('f')",
)
PG_CRON: Final = """
insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
values (4711, 'pg_cron', current_user::regrole, 'cron'::regnamespace, false, %s)
"""
RAISING: Final = """
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true)
returns void language plpgsql as $$
begin
  insert into realtime.messages (payload, event, topic, private) values (payload, event, topic, private);
  raise exception 'partition is full' using errcode = '53100';
end;
$$;
"""


def text(conn: Conn, call: str) -> str:
    """The text that a function returns."""
    row = conn.execute(f"select pgflow.{call}".encode()).fetchone()
    assert row is not None
    return str(row[0])


def whole_run(conn: Conn, flow: str = "f") -> UUID:
    """Run a defined flow of two steps to its end."""
    run = start(conn, flow, {})
    for _ in range(2):
        (task,) = claim(conn, flow)
        complete(conn, task, {"by": task.step_slug})
    assert run_of(conn, run)["status"] == "completed"
    assert run_of(conn, run)["output"] == {"b": {"by": "b"}}
    return run


@contextmanager
def warnings_of(conn: Conn) -> Iterator[list[tuple[str, str]]]:
    """SQLSTATE and text of the warnings that the server sends in the block."""
    seen: list[tuple[str, str]] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            seen.append((diagnostic.sqlstate or "", diagnostic.message_primary or ""))

    conn.add_notice_handler(note)
    try:
        yield seen
    finally:
        conn.remove_notice_handler(note)


@contextmanager
def role(conn: Conn) -> Iterator[Identifier]:
    """A role of this transaction, without any rights."""
    name = Identifier(f"r_{uuid4().hex}")
    conn.execute(SQL("create role {}").format(name))
    yield name
    conn.execute("reset role")


def become(conn: Conn, name: Identifier) -> None:
    """Go on as the role."""
    conn.execute(SQL("set local role {}").format(name))


def test_a_flow_runs_where_nothing_of_supabase_is(conn: Conn) -> None:
    """Row 91."""
    found = conn.execute(
        "select to_regnamespace(n) from unnest('{realtime,cron,net,vault}'::text[]) n"
    ).fetchall()
    assert found == [(None,)] * 4
    define(conn, "f", "a", Step("b", ["a"]))
    with warnings_of(conn) as warnings:
        whole_run(conn)
    assert warnings == []


def test_the_set_up_calls_say_that_cron_is_absent(conn: Conn) -> None:
    """Row 91."""
    absent = "pg_cron is not installed: job {} is not scheduled"
    assert text(conn, "setup_requeue_stalled_tasks_cron()") == absent.format("pgflow_requeue_stalled_tasks")
    assert text(conn, "setup_ensure_workers_cron()") == "; ".join(
        absent.format(job) for job in ("pgflow_ensure_workers", "pgflow_cleanup_logs")
    )
    assert conn.execute("select * from pgflow.cleanup_ensure_workers_logs()").fetchall() == [(0,)]


@pytest.mark.parametrize("present", [(), ("net",), ("vault",)])
@pytest.mark.parametrize("environment", ["production", "local"])
def test_no_worker_is_pinged_where_net_or_vault_is_absent(
    conn: Conn, present: tuple[str, ...], environment: str
) -> None:
    """Row 91."""
    for name in present:
        conn.execute((HERE / f"{name}.sql").read_bytes())
    conn.execute("select set_config('pgflow.environment', %s, true)", [environment])
    conn.execute("select pgflow.track_worker_function('f')")
    assert conn.execute("select * from pgflow.ensure_workers()").fetchall() == []


@pytest.mark.parametrize("schema", ["realtime", "cron", "net", "vault"])
def test_schemas_that_only_have_the_name_change_nothing(conn: Conn, schema: str) -> None:
    conn.execute(SQL("create schema {}").format(Identifier(schema)))
    conn.execute("select pgflow.track_worker_function('f')")
    define(conn, "f", "a", Step("b", ["a"]))
    with warnings_of(conn) as warnings:
        whole_run(conn)
    assert warnings == []
    assert "is not scheduled" in text(conn, "setup_requeue_stalled_tasks_cron()")
    assert conn.execute("select * from pgflow.ensure_workers()").fetchall() == []
    assert conn.execute("select * from pgflow.cleanup_ensure_workers_logs()").fetchall() == [(0,)]


def test_a_send_that_raises_is_a_warning_and_the_transition_stands(conn: Conn) -> None:
    install_realtime(conn)
    conn.execute(RAISING)
    define(conn, "f", "a", Step("b", ["a"]))
    with warnings_of(conn) as warnings:
        run = whole_run(conn)
    names = ["run:started", *(f"step:{slug}:{what}" for slug in "ab" for what in ("started", "completed"))]
    assert warnings == [
        ("53100", f"realtime.send() failed for event {name}: partition is full")
        for name in (*names, "run:completed")
    ]
    assert events(conn, run) == []


def test_a_send_that_asserts_is_a_warning(conn: Conn) -> None:
    install_realtime(conn)
    conn.execute(
        "create or replace function"
        " realtime.send(payload jsonb, event text, topic text, private boolean default true)"
        " returns void language plpgsql as $$ begin assert false, 'never'; end $$"
    )
    define(conn, "f", "a")
    with warnings_of(conn) as warnings:
        start(conn, "f")
    assert warnings[0] == ("P0004", "realtime.send() failed for event run:started: never")


def test_a_role_without_rights_on_realtime_runs_flows(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", "a", Step("b", ["a"]))
    with role(conn) as name:
        conn.execute(SQL(GRANTS).format(role=name))
        become(conn, name)
        with warnings_of(conn) as warnings:
            run = whole_run(conn)
    assert len(warnings) == 6
    denied = "realtime.send() failed for event run:started: permission denied for schema realtime"
    assert warnings[0] == ("42501", denied)
    assert events(conn, run) == []
    assert statuses(conn, run) == {"a": "completed", "b": "completed"}


def test_an_owner_without_rights_on_cron_is_told(conn: Conn) -> None:
    conn.execute((HERE / "cron.sql").read_bytes())
    with role(conn) as name:
        conn.execute(SQL("grant usage on schema pgflow to {}").format(name))
        for function in ("setup_requeue_stalled_tasks_cron(text)", "setup_ensure_workers_cron(text)"):
            conn.execute(SQL(f"alter function pgflow.{function} owner to {{}}").format(name))
        said = text(conn, "setup_requeue_stalled_tasks_cron()")
        assert said == (
            f"role {name.as_string()[1:-1]} has no usage on schema cron:"
            " job pgflow_requeue_stalled_tasks is not scheduled"
        )
        assert text(conn, "setup_ensure_workers_cron()").count("has no usage on schema cron") == 2
    assert conn.execute("select from cron.job").fetchall() == []


@pytest.mark.parametrize(
    ("version", "scheduled"), [("1.4-1", False), ("1.5", True), ("1.6", True), ("1.10", True)]
)
def test_a_pg_cron_without_seconds_is_told_and_takes_minutes(
    conn: Conn, version: str, scheduled: bool
) -> None:
    conn.execute((HERE / "cron.sql").read_bytes())
    conn.execute("set local allow_system_table_mods = on")
    conn.execute(PG_CRON, [version])
    said = text(conn, "setup_requeue_stalled_tasks_cron()")
    job = "job pgflow_requeue_stalled_tasks"
    old = f"pg_cron {version} knows no seconds, 1.5 does: {job} is not scheduled"
    assert said == (f"{job} is scheduled: 15 seconds" if scheduled else old)
    assert text(conn, "setup_requeue_stalled_tasks_cron('* * * * *')") == f"{job} is scheduled: * * * * *"


@pytest.mark.parametrize(
    ("right", "what"),
    [
        ("select on table cron.job", "table job"),
        ("execute on function cron.schedule(text, text, text)", "function schedule"),
    ],
)
def test_a_pg_cron_that_refuses_the_owner_is_told(conn: Conn, right: str, what: str) -> None:
    conn.execute((HERE / "cron.sql").read_bytes())
    with role(conn) as name:
        conn.execute(SQL(GRANTS).format(role=name))
        conn.execute(SQL("grant usage on schema cron to {0}; grant select on cron.job to {0}").format(name))
        conn.execute(SQL("revoke {} from public, {}").format(SQL(right), name))
        conn.execute(
            SQL("alter function pgflow.setup_requeue_stalled_tasks_cron(text) owner to {}").format(name)
        )
        said = text(conn, "setup_requeue_stalled_tasks_cron()")
    assert said == (
        f"pg_cron refuses (permission denied for {what}): job pgflow_requeue_stalled_tasks is not scheduled"
    )


def test_jobs_and_their_log_belong_to_the_owner_whoever_calls(conn: Conn) -> None:
    conn.execute((HERE / "cron.sql").read_bytes())
    conn.execute("insert into cron.job_run_details (end_time) values (now() - interval '2 days')")
    owner = conn.execute("select current_user").fetchone()
    with role(conn) as name:
        conn.execute(SQL("grant usage on schema pgflow to {}").format(name))
        become(conn, name)
        text(conn, "setup_requeue_stalled_tasks_cron()")
        text(conn, "setup_ensure_workers_cron()")
        assert conn.execute("select * from pgflow.cleanup_ensure_workers_logs()").fetchall() == [(1,)]
    assert conn.execute("select distinct username from cron.job").fetchall() == [owner]
    assert conn.execute("select count(*) from cron.job").fetchone() == (3,)


def test_nobody_may_call_anything_by_default(conn: Conn) -> None:
    with role(conn) as name:
        become(conn, name)
        with pytest.raises(psycopg.errors.InsufficientPrivilege), conn.transaction():
            text(conn, "setup_requeue_stalled_tasks_cron()")


def test_definer_functions_pin_their_path(conn: Conn) -> None:
    query = """
    select p.proname::text, p.proconfig from pg_proc p
    where p.pronamespace = 'pgflow'::regnamespace and p.prosecdef order by 1
    """
    rows: dict[str, Any] = dict(conn.execute(query).fetchall())
    assert all("search_path=pg_catalog, pg_temp" in config for config in rows.values())
    assert {
        "cleanup_ensure_workers_logs",
        "setup_ensure_workers_cron",
        "setup_requeue_stalled_tasks_cron",
        "requeue_stalled_tasks",
        "start_flow_with_states",
        "get_run_with_states",
    } == set(rows)


def test_roles_apart_define_work_and_start_with_the_documented_rights(conn: Conn) -> None:
    with role(conn) as definer, role(conn) as worker, role(conn) as client:
        conn.execute(SQL(RIGHTS).format(definer=definer, worker=worker, client=client))
        become(conn, definer)
        define(conn, "f", "a", Step("b", ["a"], max_attempts=2, base_delay=0))
        become(conn, client)
        started = conn.execute("select pgflow.start_flow_with_states('f', '{}')").fetchone()
        assert started is not None
        run = started[0]["run"]["run_id"]
        for call in CLOSED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), conn.transaction():
                conn.execute(f"select pgflow.{call}".encode())
        become(conn, worker)
        complete(conn, claim(conn, "f")[0], 1)
        fail(conn, claim(conn, "f")[0])
        conn.execute("update pgflow.step_tasks set queued_at = now() - interval '1 hour'")
        claim(conn, "f")
        conn.execute(
            "update pgflow.step_tasks set started_at = now() - interval '10 min' where status = 'started'"
        )
        ids = requeued(conn)
        become(conn, worker)
        complete(conn, claim(conn, "f", ids=ids)[0], 2)
        become(conn, client)
        shown = conn.execute("select pgflow.get_run_with_states(%s)", [run]).fetchone()
        assert shown is not None
        assert (shown[0]["run"]["status"], shown[0]["run"]["output"]) == ("completed", {"b": 2})
        become(conn, definer)
        conn.execute("select pgflow.delete_flow_and_data('f')")
        assert conn.execute("select queue_name from pgmq.meta").fetchall() == []


def requeued(conn: Conn) -> list[int]:
    """Recover as the owner does: the messages that are visible again."""
    conn.execute("reset role")
    conn.execute("select pgflow.requeue_stalled_tasks()")
    return read(conn, "f")


def test_a_flow_that_a_row_policy_keeps_from_being_locked_is_an_error_and_no_loop(conn: Conn) -> None:
    define(conn, "f", "a")
    conn.execute(
        "create role pgflow_test_reader nologin;"
        "grant usage on schema pgflow, pgmq to pgflow_test_reader;"
        "grant all on all tables in schema pgflow, pgmq to pgflow_test_reader;"
        "alter table pgflow.flows enable row level security;"
        "create policy readable on pgflow.flows for select using (true);"
        "set local role pgflow_test_reader"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        start(conn, "f")
    assert caught.value.diag.message_primary == "flow f is there, but this role cannot lock it"
