"""Servers that run, and then refuse or break: each fault is made for real, and the whole error asserted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from pgsluice.errors import FindingError, InputError, UnreachableError
from pgsluice.pipeline.devdb import open_dev, session, templates
from pgsluice.pipeline.devdb.account import server_account
from pgsluice.pipeline.devdb.binaries import find_binaries, usable_bin_dir
from pgsluice.pipeline.devdb.requirements import bootstrap
from pgsluice.pipeline.devdb.script import create_extension
from pgsluice.pipeline.devdb.spec import EmbeddedSpec
from pgsluice.pipeline.opinion.dump import DumpScope, RunningDumps, dump
from pgsluice.pipeline.proof import connected
from tests.conftest import EMBEDDED, server_url
from tests.errors.failure import failure
from tests.pipeline.devdb.conftest import short_folder
from tests.pipeline.sources.schema import load, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

    Connection = psycopg.Connection[Any]

TERMINATED: Final = "terminating connection due to administrator command"
AGAIN: Final = "hint: run the command again; if that does not help: pgsluice dev stop"
USES: Final = "select pid from pg_stat_activity where application_name = 'pgsluice'"
REPLICA_PORT: Final = "5432"


@pytest.fixture
def own(root: Path) -> Iterator[DevServer]:
    """A server that this test may break."""
    with open_dev(EMBEDDED, root=root) as server:
        yield server


def test_no_such_template(shared: DevServer) -> None:
    def act() -> None:
        with shared.clone("no_such_template"):
            pytest.fail("cloned")

    assert failure(UnreachableError, act) == (
        "cannot create a scratch database from no_such_template: "
        'template database "no_such_template" does not exist\n'
        f"{AGAIN}"
    )


@pytest.fixture
def own_admin(own: DevServer) -> Iterator[Connection]:
    """A session of that server: sessions of other tests must not be ended."""
    with psycopg.connect(server_url(own), autocommit=True) as conn:
        yield conn


def test_a_connection_that_is_ended_by_the_administrator(
    own: DevServer, own_admin: Connection, root: Path
) -> None:
    admin, before = own_admin, pids(own_admin)
    with open_dev(server_url(own), root=root) as use:
        end(admin, pids(admin) - before)
        said = failure(UnreachableError, lambda: use.template("lost", parent=None, fill=lambda _: None))
    assert said.splitlines()[0] == f"lost the dev server: {TERMINATED}"
    assert said.splitlines()[-1] == AGAIN


def test_a_template_that_cannot_be_kept(own: DevServer, own_admin: Connection, root: Path) -> None:
    admin, before = own_admin, pids(own_admin)
    with open_dev(server_url(own), root=root) as use:
        control = pids(admin) - before

        def fill(_conninfo: str) -> None:
            end(admin, pids(admin) - before - control)

        said = failure(UnreachableError, lambda: use.template(f"kept {os.getpid()}", parent=None, fill=fill))
    first, *_, last = said.splitlines()
    assert re.sub("_[0-9a-f]{32}", "_<digest>", first) == (
        f"cannot keep pgsluice_template_<digest>: {TERMINATED}"
    )
    assert last == AGAIN


def test_an_old_template_that_cannot_be_dropped(own: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "KEPT", 0)
    monkeypatch.setattr(templates, "NEVER_EVICTED", 0)

    def subscribe(conninfo: str) -> None:
        with psycopg.connect(conninfo) as conn:
            conn.execute(
                "create subscription s connection 'dbname=x' publication p"
                " with (connect = false, enabled = false, slot_name = none)"
            )

    def act() -> None:
        own.template("one", parent=None, fill=subscribe)

    said = failure(UnreachableError, act)
    assert re.sub("pgsluice_template_[0-9a-f]{32}", "<template>", said) == (
        'cannot drop old templates: database "<template>" is being used by logical replication subscription\n'
        "  DETAIL:  There is 1 subscription.\n"
        f"{AGAIN}"
    )


def test_a_dead_scratch_database_that_a_superuser_looks_at(
    weak: str, admin: Connection, shared: DevServer, root: Path
) -> None:
    with psycopg.connect(weak, autocommit=True) as conn:
        conn.execute("create database pgsluice_scratch_00000000000000ff_1")
    with psycopg.connect(re.sub("/postgres", "/pgsluice_scratch_00000000000000ff_1", server_url(shared))):
        said = failure(UnreachableError, lambda: open_dev(weak, root=root).__enter__())
    assert said.splitlines()[0] == "cannot use the dev server: permission denied to terminate process"


def test_a_right_that_an_extension_needs(weak: str) -> None:
    with psycopg.connect(weak) as conn:
        assert failure(InputError, lambda: create_extension(conn, "file_fdw")) == (
            'cannot create extension file_fdw: permission denied to create extension "file_fdw"\n'
            "hint: Must be superuser to create this extension."
        )


def test_a_server_that_is_too_old(shared: DevServer, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "OLDEST_VERSION_NUM", 990000)
    assert failure(InputError, lambda: open_dev(server_url(shared), root=root).__enter__()) == (
        f'the dev server is PostgreSQL {shared.major}; 15 is the oldest that works\nhint: dev = "embedded"'
    )


def test_a_server_that_is_a_replica(root: Path, replica: str) -> None:
    assert failure(UnreachableError, lambda: open_dev(replica, root=root).__enter__()) == (
        "the dev server is a read-only replica\nhint: name its primary in dev = ..."
    )


def test_a_backend_that_dies_while_the_schema_loads(own: DevServer, tmp_path: Path) -> None:
    source = read(tmp_path, {"a.sql": "copy (select 1) to program 'kill -9 $PPID';"})
    said = failure(UnreachableError, lambda: load(own, source))
    assert said.splitlines()[0].startswith("the dev server went away while the schema was loading: ")
    assert "server closed the connection unexpectedly" in said


def test_a_scratch_database_out_of_reach() -> None:
    def act() -> None:
        with connected("host=/nowhere dbname=x"):
            pytest.fail("connected")

    assert re.sub("connection (failed|is bad): ", "", failure(UnreachableError, act)) == (
        'cannot connect: connection to server on socket "/nowhere/.s.PGSQL.5432" failed: No such file or '
        "directory Is the server running locally and accepting connections on that socket?"
    )


def test_a_pg_dump_that_does_not_run_through(shared: DevServer, tmp_path: Path) -> None:
    program = tmp_path / "pg_dump"
    program.write_text("#!/bin/sh\necho 'pg_dump: error: out of luck' >&2; exit 3\n")
    program.chmod(0o755)
    with shared.clone(None) as conninfo:
        scope = DumpScope(("public",))
        said = failure(FindingError, lambda: dump(program, conninfo, scope, running=RunningDumps()))
    assert said == f"{program} failed with exit code 3\n  pg_dump: error: out of luck"


def test_a_pgmq_package_without_its_sql(
    shared: DevServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "pgmq-0.0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pgmq\nVersion: 0.0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert failure(InputError, lambda: bootstrap(shared, ("pgmq",), root=tmp_path)) == (
        "the installed pgmq 0.0.1 carries no pgmq/sql/pgmq.sql\nhint: pip install pgmq --upgrade"
    )


@pytest.fixture
def replica() -> Iterator[str]:
    """A standby of no primary, as a URL: it has replayed all there is, and takes readers alone."""
    account = server_account()
    bin_dir = usable_bin_dir(find_binaries(EmbeddedSpec()), account, progress=lambda _: None)
    folder = short_folder("replica")
    if account is not None:
        account.own(folder)
    options: dict[str, Any] = account.popen_options() if account is not None else {}
    data = str(folder / "data")
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c shared_buffers=16MB"
    subprocess.run(
        [bin_dir / "initdb", "--pgdata", data, "--username=postgres", "--auth=trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **options,
    )
    subprocess.run(["touch", f"{data}/standby.signal"], check=True, **options)
    pg_ctl = (str(bin_dir / "pg_ctl"), "--pgdata", data, "--wait")
    subprocess.run(
        [*pg_ctl, "--options", settings, "--log", f"{data}/log", "start"],
        check=True,
        capture_output=True,
        cwd="/",
        **options,
    )
    yield f"postgresql://postgres@/postgres?host={str(folder).replace('/', '%2F')}"
    subprocess.run([*pg_ctl, "--mode=immediate", "stop"], check=True, capture_output=True, cwd="/", **options)
    shutil.rmtree(folder)


def pids(conn: Connection) -> frozenset[int]:
    """The processes of all uses of the server."""
    return frozenset(pid for (pid,) in conn.execute(USES).fetchall())


def end(conn: Connection, processes: frozenset[int]) -> None:
    """End sessions, as an administrator or a restart does, and wait until they are gone."""
    for pid in processes:
        assert conn.execute("select pg_terminate_backend(%s, 10000)", [pid]).fetchone() == (True,)
