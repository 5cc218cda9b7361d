"""A client's temporary objects mean nothing to functions that run with their owner's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.sql.pgflow.engine import define, start

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

CLIENT: Final = "pgflow_test_client"
GRANT: Final = f"""
create role {CLIENT} nologin;
grant usage on schema pgflow to {CLIENT};
set role {CLIENT};
create table pg_temp.seen (who text);
create function pg_temp.tell(v anyelement) returns boolean language plpgsql cost 0.0001
set search_path = pg_temp as $$
begin
  insert into pg_temp.seen (who) values (current_user);
  return true;
end;
$$;
"""
CALLS: Final = (
    "select pgflow.start_flow_with_states('f', '[1]')",
    "select pgflow.get_run_with_states('00000000-0000-0000-0000-000000000001')",
    "select pgflow.requeue_stalled_tasks()",
    "select pgflow.setup_requeue_stalled_tasks_cron()",
    "select pgflow.setup_ensure_workers_cron()",
    "select * from pgflow.cleanup_ensure_workers_logs()",
)
TYPES: Final = ("uuid", "text", "jsonb", "bigint", "integer", "boolean", "timestamptz", "interval")
RELATIONS: Final = ("pg_class", "pg_proc", "pg_namespace", "pg_extension")


@pytest.mark.parametrize("call", CALLS)
def test_types_of_a_client_are_not_taken_for_the_servers(conn: Conn, call: str) -> None:
    run_something(conn)
    for name in TYPES:
        conn.execute(
            f"create domain pg_temp.{name} as pg_catalog.{SERVERS_NAME.get(name, name)}"
            f" check (pg_temp.tell(value))".encode()
        )
    conn.execute(call.encode())
    assert conn.execute("select who from pg_temp.seen").fetchall() == []


@pytest.mark.parametrize("call", CALLS)
def test_relations_of_a_client_are_not_taken_for_the_servers(conn: Conn, call: str) -> None:
    run_something(conn)
    for name in RELATIONS:
        conn.execute(
            f"create view pg_temp.{name} as select c.* from pg_catalog.{name} as c"
            " where pg_temp.tell(1)".encode()
        )
    conn.execute(call.encode())
    assert conn.execute("select who from pg_temp.seen").fetchall() == []


SERVERS_NAME: Final = {"bigint": "int8", "integer": "int4", "boolean": "bool"}


def run_something(conn: Conn) -> None:
    """A run that is under way, and a session of somebody with usage of the schema and nothing else."""
    define(conn, "f", "a")
    start(conn, "f")
    conn.execute(GRANT)
