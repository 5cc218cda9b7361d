"""`apply` on servers that go away, come back, only read, or are reached through a pooler."""

from __future__ import annotations

import queue
import re
import signal
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.pipeline.live.database import shown
from tests.e2e.applying import ONLINE, WAITING, Deploy, ended, wait_for
from tests.e2e.own_cluster import own_cluster
from tests.e2e.pooler import Sessions, TransactionPooler
from tests.e2e.project import SEQUENCE, Project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.own_cluster import Cluster

CLEAN: Final = "drop schema if exists pgsluice cascade; drop table if exists t, u"
ONE_CONNECTION: Final = """
create role {role} login connection limit 1;
grant all on schema public, pgsluice to {role};
grant all on pgsluice.migrations to {role};
alter table t owner to {role};
"""
HOLD: Final = "lock table t in access share mode"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One server for this module; each test leaves it running."""
    with own_cluster() as made:
        yield made


@pytest.fixture
def deploy(tmp_path: Path, cluster: Cluster) -> Deploy:
    """A project with one migration applied and one pending."""
    project = Project(tmp_path)
    project.write("pgsluice.toml", SEQUENCE)
    made = Deploy(project, cluster.url)
    with made.session() as conn:
        conn.execute(CLEAN)
    made.add("0001_first.sql", "create table t (i int);\n")
    made.ok("apply")
    made.add("0002_second.sql", "create table u (i int);\nalter table t add j int;\n")
    return made


def test_server_that_is_gone_for_good_is_exit_3(deploy: Deploy, cluster: Cluster) -> None:
    cluster.stop()
    try:
        done = deploy.run("apply", database=f"{deploy.url} connect_timeout=1")
    finally:
        cluster.start()
    assert done.code == 3, str(done)
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.endswith(" …")] == [
        f"error: cannot connect to {shown(deploy.url)}",
        f'  connection is bad: connection to server on socket "{cluster.folder}/.s.PGSQL.5432" failed:'
        " No such file or directory",
        "  Is the server running locally and accepting connections on that socket?",
        f"hint: psql 'user=pgsluice_dev dbname=postgres host={cluster.folder} port=5432'"
        " --command 'select 1'",
    ]


def test_server_that_is_back_after_seconds_is_waited_for(deploy: Deploy, cluster: Cluster) -> None:
    cluster.stop()
    process = deploy.start("apply")
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
    finally:
        cluster.start()
    assert line.startswith(f"{shown(deploy.url)} does not answer; trying again in ")
    done = ended(process)
    assert done.code == 0, str(done)
    assert deploy.states() == ["applied", "applied"]


def test_crash_of_the_server_in_a_transaction_leaves_nothing(deploy: Deploy, cluster: Cluster) -> None:
    with deploy.session() as reader, deploy.session() as watcher:
        reader.execute(f"begin; {HOLD}".encode())
        process = deploy.start("apply", "--lock-timeout", "60")
        wait_for(watcher, WAITING, like="alter%")
        cluster.stop(signal.SIGQUIT)
        cluster.start()
    done = ended(process)
    assert done.code == 3, str(done)
    assert "was lost in 0002_second.sql\n" in done.stderr
    assert "  0002_second.sql was rolled back, nothing of it is in the database\n" in done.stderr
    assert deploy.states() == ["applied", "pending"]
    deploy.ok("apply")


def test_crash_of_the_server_in_a_step_is_resumed_there(deploy: Deploy, cluster: Cluster) -> None:
    deploy.add(
        "0002_second.sql", ONLINE + "create table u (i int);\ncreate index concurrently t_i on t (i);\n"
    )
    with deploy.session() as writer, deploy.session() as watcher:
        writer.execute("begin; insert into t values (1)")
        process = deploy.start("apply")
        wait_for(watcher, WAITING, like="create index%")
        cluster.stop(signal.SIGQUIT)
        cluster.start()
    done = ended(process)
    assert done.code == 3, str(done)
    assert "  1 of 2 statements done; statement 2 (create index concurrently t_i on t (i)) was started," in (
        done.stderr
    )
    deploy.ok("apply")
    assert deploy.rows("select indisvalid from pg_index where indexrelid = 't_i'::regclass") == [True]


def test_standby_is_refused_but_tells_its_status(deploy: Deploy, cluster: Cluster) -> None:
    cluster.stop()
    standby = cluster.folder / "data/standby.signal"
    standby.touch()
    try:
        cluster.start()
        assert deploy.fails(3, "apply") == (
            f"error: {shown(deploy.url)} is a standby: nothing can be written there\n"
            "hint: name the primary; with several hosts in the URL: target_session_attrs=read-write\n"
        )
        assert deploy.states() == ["applied", "pending"]
    finally:
        cluster.stop()
        standby.unlink()
        cluster.start()


@pytest.mark.parametrize("order", [queue.Queue, queue.LifoQueue])
def test_transaction_pooler_is_found_out_before_anything_runs(
    deploy: Deploy, cluster: Cluster, order: type[Sessions]
) -> None:
    sessions = order()
    with TransactionPooler(cluster.folder / ".s.PGSQL.5432", sessions) as pooler:
        error = deploy.fails(3, "apply", database=pooler.url)
        assert deploy.rows("select pid from pg_locks where locktype = 'advisory'") == []
    assert error == (
        "error: this connection changes its server session between transactions, so no lock holds\n"
        "  a pooler in transaction mode stands between, or a migration gave the lock back\n"
        "hint: connect to the server directly, or to the pooler's port for sessions\n"
    )
    assert deploy.states() == ["applied", "pending"]


def test_server_without_a_spare_connection_blinds_the_watcher_alone(deploy: Deploy) -> None:
    role = "pgsluice_test_one"
    with deploy.session() as owner, deploy.session() as reader:
        owner.execute(ONE_CONNECTION.format(role=role).encode())
        try:
            with reader.transaction():
                reader.execute(HOLD)
                url = deploy.url.replace("user=pgsluice_dev", f"user={role}")
                done = deploy.run("apply", "--lock-timeout", "3", "--retries", "0", database=url)
        finally:
            owner.execute(f"drop owned by {role}; drop role {role}".encode())
    assert done.code == 3, str(done)
    assert "  blocked by a session that was not seen: connection failed: " in done.stderr
    assert f'FATAL:  too many connections for role "{role}"\n' in done.stderr
    assert done.stderr.endswith("hint: pgsluice apply --retries 20\n")


def test_prepared_transaction_in_the_way_is_named_with_its_end(deploy: Deploy) -> None:
    with deploy.session() as conn:
        conn.execute("begin")
        conn.execute(HOLD)
        conn.execute("prepare transaction 'shop''s'")
        error = deploy.fails(3, "apply", "--lock-timeout", "0.5", "--retries", "0")
        conn.execute("rollback prepared 'shop''s'")
    found = re.fullmatch(
        r"error: migrations/app/0002_second.sql:2: statement 2 of 2 got no lock in 1 attempt;"
        r" rolled back, nothing of this file is in the database\n"
        r"  canceling statement due to lock timeout \(SQLSTATE 55P03\)\n  alter table t add j int\n"
        r"  blocked by transaction 'shop''s' \(pgsluice_dev, prepared for \d+ s\)\n"
        r"hint: pgsluice apply --retries 20, or end who is in the way: rollback prepared 'shop''s';\n",
        error,
    )
    assert found, error
    deploy.ok("apply")
