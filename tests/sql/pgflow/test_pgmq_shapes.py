"""pgflow's core on each shape of PGMQ: 1.13 and 1.5.1, as plain SQL and as an extension."""

from __future__ import annotations

import shutil
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.pipeline.devdb import bootstrap, open_dev
from pgsluice.pipeline.devdb.account import server_account
from pgsluice.pipeline.devdb.binaries import PACKAGE, find_binaries, usable_bin_dir
from pgsluice.pipeline.devdb.cluster import cached_cluster, copy_cluster
from pgsluice.pipeline.devdb.spec import EmbeddedSpec, LocalSpec
from pgsluice.pipeline.sources import load_schema, read_schema
from tests.e2e.own_cluster import Cluster

from .engine import (
    Step,
    archived,
    claim,
    complete,
    define,
    fail,
    hidden_s,
    queued,
    run_of,
    start,
    states,
    tasks,
)
from .pgmq_shapes import NEW, OLD, add_extension, copy_server, old_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer

    from .engine import Conn

ROOT: Final = Path(__file__).parents[3]
FLOWS: Final = ("orders", "MyFlow", "camelCase_2")
SLACK_S: Final = 5.0
URL: Final = "postgresql:///postgres?host={}&port=5432&user=pgsluice_dev"
COLUMNS: Final = """
select c.relname::text, string_agg(a.attname, ' ' order by a.attnum)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where c.relnamespace = 'pgmq'::regnamespace and c.relname in ('message_record', 'q_orders', 'a_orders')
group by 1
"""
MEMBERS: Final = """
select c.relname::text
from pg_depend d join pg_class c on c.oid = d.objid
where d.classid = 'pg_class'::regclass and d.deptype = 'e'
and d.refclassid = 'pg_extension'::regclass and c.relname ~ '^[qa]_'
order by 1
"""
LEFT: Final = """
select relname::text from pg_class
where relnamespace = 'pgmq'::regnamespace and relname ~* %s and relkind in ('r', 'S')
union all
select queue_name from pgmq.meta where lower(queue_name) = lower(%s)
"""


def exercise(conn: Conn, flow: str) -> None:
    """Take a flow through all that touches its queue: twice, so that what is deleted can be made again."""
    for _ in range(2):
        define(conn, flow, "a", Step("m", ["a"], "map", base_delay=3), timeout=60, max_attempts=2)
        assert conn.execute(
            "select queue_name from pgmq.meta where lower(queue_name) = lower(%s)", [flow]
        ).fetchall() == [(flow,)]
        run = start(conn, flow, {"n": 1})
        (first,) = claim(conn, flow)
        assert hidden_s(conn, flow, first.msg_id) == pytest.approx(62, abs=SLACK_S)
        complete(conn, first, [10, 20])
        assert archived(conn, flow) == [first.msg_id]

        one, two = claim(conn, flow)
        complete(conn, one, 11)
        fail(conn, two, "again")
        assert hidden_s(conn, flow, two.msg_id) == pytest.approx(6, abs=SLACK_S)
        conn.execute("select pgmq.set_vt(%s, %s, 0)", [flow, two.msg_id])
        (two,) = claim(conn, flow)
        conn.execute(
            "update pgflow.step_tasks set queued_at = now() - interval '1 hour' where run_id = %s", [run]
        )
        conn.execute(
            "update pgflow.step_tasks set started_at = now() - interval '93 s'"
            " where run_id = %s and status = 'started'",
            [run],
        )
        assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (1,)
        assert hidden_s(conn, flow, two.msg_id) <= 0
        (two,) = claim(conn, flow)
        complete(conn, two, 21)
        assert run_of(conn, run)["output"] == {"m": [11, 21]}
        assert queued(conn, flow) == []
        assert archived(conn, flow) == [first.msg_id, one.msg_id, two.msg_id]

        failing = start(conn, flow, {})
        (task,) = claim(conn, flow)
        conn.execute("update pgflow.flows set opt_max_attempts = 1 where flow_slug = %s", [flow])
        fail(conn, task)
        assert run_of(conn, failing)["status"] == "failed"
        assert states(conn, failing)["a"]["status"] == tasks(conn, failing)[0]["status"] == "failed"
        assert queued(conn, flow) == []

        conn.execute("select pgflow.delete_flow_and_data(%s)", [flow])
        assert conn.execute(LEFT, [f"^[qa]_{flow}", flow]).fetchall() == []


def load_core(conninfo: str) -> None:
    """Load pgflow from its schema files."""
    with psycopg.connect(conninfo) as conn:
        load_schema(conn, read_schema(ROOT / "schema/pgflow", root=ROOT), search_path="pgflow")


def columns(conn: Conn) -> dict[str, str]:
    """The columns of PGMQ's record and of a queue's tables."""
    conn.execute("select pgmq.create('orders')")
    found: dict[str, str] = dict(conn.execute(COLUMNS).fetchall())
    conn.execute("select pgmq.drop_queue('orders')")
    return found


def has_last_read_at(conn: Conn) -> set[bool]:
    """Whether PGMQ's record, queues and archives know when a message was last read: one answer for all."""
    found = columns(conn)
    assert len(found) == 3
    return {"last_read_at" in text.split() for text in found.values()}


@pytest.mark.parametrize("flow", FLOWS)
def test_the_core_works_on_the_sql_of_the_package(conn: Conn, flow: str) -> None:
    assert has_last_read_at(conn) == {True}
    exercise(conn, flow)


def test_the_core_works_on_the_sql_of_1_5_1(server: DevServer, tmp_path: Path) -> None:
    (tmp_path / "pgmq-1.5.1.sql").write_text(old_sql(), encoding="utf-8")
    with server.clone(bootstrap(server, ["pgmq-1.5.1.sql"], root=tmp_path)) as conninfo:
        load_core(conninfo)
        with psycopg.connect(conninfo) as conn:
            assert has_last_read_at(conn) == {False}
            for flow in FLOWS:
                exercise(conn, flow)
                conn.commit()


def test_the_core_works_on_pgmq_as_an_extension(server: DevServer) -> None:
    with extension_server(server) as offering:
        with offering.clone(bootstrap(offering, ["pgmq"], root=ROOT)) as conninfo:
            check_extension(conninfo, OLD, members=["a_orders", "q_orders", "q_orders_msg_id_seq"])
        with offering.clone(None) as conninfo:
            with psycopg.connect(conninfo) as conn:
                conn.execute(f"create extension pgmq version '{NEW}'".encode())
            check_extension(conninfo, NEW, members=[])


def check_extension(conninfo: str, version: str, *, members: list[str]) -> None:
    """Exercise the core on a database that has PGMQ as an extension, and look at what belongs to it."""
    load_core(conninfo)
    with psycopg.connect(conninfo) as conn:
        assert conn.execute("select extversion from pg_extension where extname = 'pgmq'").fetchone() == (
            version,
        )
        assert has_last_read_at(conn) == {version == NEW}
        conn.execute("select pgflow.create_flow('orders')")
        assert [row[0] for row in conn.execute(MEMBERS)] == members
        conn.execute("select pgflow.delete_flow_and_data('orders')")
        conn.commit()
        for flow in FLOWS:
            exercise(conn, flow)
            conn.commit()


@contextmanager
def extension_server(server: DevServer) -> Iterator[DevServer]:
    """A copy of a server that offers PGMQ, both versions of it, in a folder that any account may read."""
    assert server.bin_dir is not None
    account = server_account()
    embedded = server.bin_dir.parents[1].name == PACKAGE
    binaries = find_binaries(EmbeddedSpec() if embedded else LocalSpec(server.bin_dir))
    folder = Path(tempfile.mkdtemp(prefix="pgmq-"))
    try:
        folder.chmod(0o755)
        bin_dir = copy_server(server.bin_dir, folder)
        add_extension(bin_dir)
        usable = usable_bin_dir(binaries, account, progress=print)
        cached = cached_cluster(usable, binaries.identity, account, progress=print)
        copy_cluster(cached, folder / "run/data", account)
        if account is not None:
            account.own(folder / "run")
        cluster = Cluster(folder / "run", bin_dir, account)
        cluster.start()
        try:
            with open_dev(URL.format(folder / "run"), root=folder) as offering:
                yield offering
        finally:
            cluster.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder)
