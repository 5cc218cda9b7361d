"""PGMQ as somebody else's schema: its upgrade is generated, proved, and applied to live queues."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.client import apply_migration, dump_schema, pgsluice
from tests.conftest import SERVERS, server_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pgsluice.pipeline.devdb import DevServer

EXAMPLE: Final = Path(__file__).parents[1] / "examples/pgmq"
RELEASES: Final = {"1.1.3": "1.11.1", "1.1.4": "1.13.0"}  # version of the package: PGMQ's own
ONLY_PGMQ: Final = ("--schema=pgmq", "--exclude-table=pgmq.[qa]_*")

# Queues as met in production: plain, mixed case, unlogged; messages that wait, are read, archived, deleted.
LIVE: Final = """
select pgmq.create('orders');
select pgmq.create('Mixed');
select pgmq.create_unlogged('fast');
select pgmq.send('orders', jsonb_build_object('n', n)) from generate_series(1, 20) as n;
select pgmq.send('orders', '{"n": 21}', '{"x-pgmq-group": "g"}'::jsonb);
select pgmq.send('orders', null::jsonb);
select pgmq.send('Mixed', '{"delayed": true}', 3600);
select pgmq.send('fast', '[1, 2]');
select pgmq.read('orders', 600, 3);
select pgmq.archive('orders', 4);
select pgmq.delete('orders', 5::bigint);
select pgmq.enable_notify_insert('orders', 1000);
select pgmq.create_fifo_index('orders');
select pgmq.bind_topic('order.*', 'orders');
"""
TABLES: Final = (
    "pgmq.meta",
    "pgmq.notify_insert_throttle",
    "pgmq.topic_bindings",
    "pgmq.q_orders",
    "pgmq.a_orders",
    "pgmq.q_mixed",
    "pgmq.a_mixed",
    "pgmq.q_fast",
    "pgmq.a_fast",
    "pgmq.q_orders_msg_id_seq",
    "pgmq.q_mixed_msg_id_seq",
    "pgmq.q_fast_msg_id_seq",
)


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The SQL of each release, written by the example's script from the package index."""
    folder = tmp_path_factory.mktemp("pgmq-states")
    for package, release in RELEASES.items():
        subprocess.run(
            [sys.executable, EXAMPLE / "states.py", package, folder / f"{release}.sql"],
            check=True,
            timeout=300,
        )
    return {release: folder / f"{release}.sql" for release in RELEASES.values()}


@pytest.fixture(scope="session", params=SERVERS)
def upgrade(
    request: pytest.FixtureRequest,
    states: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    open_server: Callable[[str], DevServer],
) -> tuple[Path, Path]:
    """The baseline of 1.11.1 and the upgrade to 1.13.0, both generated on one of the servers."""
    project = tmp_path_factory.mktemp("pgmq-project")
    shutil.copy(EXAMPLE / "pgsluice.toml", project)
    schema = project / "schema/pgmq/pgmq.sql"
    schema.parent.mkdir(parents=True)
    dev = server_url(open_server(request.param))
    for release, name in (("1.11.1", "first"), ("1.13.0", "second")):
        shutil.copy(states[release], schema)
        done = pgsluice(project, "build", name, dev=dev)
        assert done.returncode == 0, done.stderr + done.stdout
    first, second = sorted((project / "migrations/pgmq").glob("*.sql"))
    return first, second


def test_upgrade_keeps_every_queue_and_message(upgrade: tuple[Path, Path], server: DevServer) -> None:
    with server.clone(None) as conninfo:
        live_database(conninfo, upgrade[0])
        before = rows(conninfo, TABLES)
        queues = dump_schema(conninfo, "--table=pgmq.[qa]_*")
        apply_migration(conninfo, upgrade[1])
        assert rows(conninfo, TABLES) == before
        assert dump_schema(conninfo, "--table=pgmq.[qa]_*") == queues


def test_upgraded_catalog_equals_a_fresh_install(
    upgrade: tuple[Path, Path], states: dict[str, Path], server: DevServer
) -> None:
    with server.clone(None) as upgraded, server.clone(None) as fresh:
        live_database(upgraded, upgrade[0])
        apply_migration(upgraded, upgrade[1])
        apply_migration(fresh, states["1.13.0"])
        assert dump_schema(upgraded, *ONLY_PGMQ) == dump_schema(fresh, *ONLY_PGMQ)


def test_functions_of_the_new_release_work_on_the_old_queues(
    upgrade: tuple[Path, Path], server: DevServer
) -> None:
    with server.clone(None) as conninfo:
        live_database(conninfo, upgrade[0])
        apply_migration(conninfo, upgrade[1])
        with psycopg.connect(conninfo, autocommit=True) as conn:
            metrics = conn.execute(
                "select queue_name, queue_length, total_messages, default_partition_length"
                " from pgmq.metrics_all() order by queue_name"
            ).fetchall()
            assert metrics == [("Mixed", 1, 1, None), ("fast", 1, 1, None), ("orders", 20, 22, None)]
            grouped = conn.execute(
                "select message from pgmq.read_grouped_head_with_poll('orders', 30, 5, max_poll_seconds => 1)"
            ).fetchall()
            assert ({"n": 21},) in grouped
            sent = conn.execute("select pgmq.send_topic('order.new', '{\"n\": 23}')").fetchone()
            assert sent == (1,)
            popped = conn.execute("select msg_id from pgmq.pop('fast')").fetchall()
            assert popped == [(1,)]
            versions = conn.execute(
                "select to_regprocedure('pgmq.create_partitioned(text,text,text)'),"
                " to_regprocedure('pgmq.create_partitioned(text,text,text,int)') is not null"
            ).fetchone()
            assert versions == (None, True)


def test_upgrade_touches_only_what_differs(upgrade: tuple[Path, Path]) -> None:
    text = upgrade[1].read_text(encoding="utf-8").lower()
    assert "drop type" not in text
    assert "drop table" not in text
    assert "pgmq.q_" not in text
    assert text.count("create or replace function") + text.count("create function") <= 4


def live_database(conninfo: str, baseline: Path) -> None:
    """Install 1.11.1 by its generated baseline and put it to use."""
    apply_migration(conninfo, baseline)
    with psycopg.connect(conninfo) as conn:
        conn.execute(LIVE)


def rows(conninfo: str, tables: Sequence[str]) -> dict[str, list[str]]:
    """Every row of the tables and sequences, as text."""
    with psycopg.connect(conninfo) as conn:
        return {
            table: [
                row for (row,) in conn.execute(f"select row(t.*)::text from {table} as t order by 1".encode())
            ]
            for table in tables
        }
