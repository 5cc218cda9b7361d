"""Files without a transaction that stopped: what went with the session, what the server never did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import EMBEDDED
from tests.e2e.applying import ONLINE, Deploy, deployed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

PARTS = """
create table parent (i int) partition by list (i);
create table part partition of parent for values in (1);
create table loose (i int);
create schema s;
create index loose_idx on loose (i);
"""
KILLED = "update pgsluice.migrations set running = 'call twice()', error = null"


@pytest.fixture
def deploy(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project without migrations, and a database with a partition."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        with made.session() as conn:
            conn.execute(PARTS.encode())
        yield made


@pytest.mark.parametrize(
    "statement",
    [
        "alter table parent detach partition loose concurrently",
        "alter table parents detach partition part concurrently",
        "drop index concurrently s.loose_idx",
        "drop database there_is_no_such_database",
    ],
)
def test_statement_that_failed_is_never_taken_for_done(deploy: Deploy, statement: str) -> None:
    deploy.add("0001_first.sql", f"{ONLINE}{statement};\n")
    first = deploy.fails(1, "apply")
    assert deploy.fails(1, "apply") == first
    assert deploy.states() == ["dirty"]
    deploy.ok("apply", "--resume", "skip")
    assert deploy.states() == ["applied"]


def test_detach_that_got_half_its_locks_is_finished_by_the_next_attempt(deploy: Deploy) -> None:
    deploy.add(
        "0001_first.sql",
        f"{ONLINE}set lock_timeout = '200ms';\nalter table parent detach partition part concurrently;\n",
    )
    with deploy.session() as reader:
        reader.execute("begin")
        reader.execute("select * from part")
        process = deploy.start("apply", "--lock-timeout", "0.2", "--retries", "50")
        assert process.stderr is not None
        process.stderr.readline()  # the first attempt got no lock
        reader.execute("commit")
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stdout + stderr
    assert deploy.rows("select inhrelid from pg_inherits") == []


def test_settings_made_by_set_config_hold_after_resume(deploy: Deploy) -> None:
    begin = f"{ONLINE}select pg_catalog.set_config('search_path', 's', false);\n"
    deploy.add("0001_first.sql", f"{begin}select 1 / 0;\ncreate table t (i int);\n")
    deploy.fails(1, "apply")
    deploy.add("0001_first.sql", f"{begin}select 1;\ncreate table t (i int);\n")
    deploy.ok("apply")
    assert deploy.rows("select to_regclass('s.t') is not null") == [True]


def test_temporary_table_that_went_with_its_session_is_told(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", f"{ONLINE}create temp table t (i int);\nselect * from t, s.missing;\n")
    deploy.fails(1, "apply")
    assert (
        "note: 0001_first.sql: statement 1 made temporary relation t,"
        " which went with the session of the earlier run\n"
    ) in deploy.run("apply").stderr


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
def test_nothing_runs_before_all_refusals_are_known(deploy: Deploy, arguments: tuple[str, ...]) -> None:
    deploy.project.write(
        "pgsluice.toml",
        '[targets.zero]\nmanages = ["s"]\nversioning = "sequence"\n'
        '[targets.app]\nmanages = ["public"]\nversioning = "sequence"\n',
    )
    with deploy.session() as conn:
        conn.execute("create procedure twice() language plpgsql as 'begin commit; raise; end'")
    deploy.add("0001_first.sql", f"{ONLINE}call twice();\n")
    deploy.fails(1, "apply", "--target", "app")
    with deploy.session() as conn:
        conn.execute(KILLED.encode())
    deploy.project.write("migrations/zero/0001_zero.sql", "create table s.zero (i int);\n")
    deploy.record("zero")
    assert deploy.fails(4, "apply", *arguments) == (
        "error: statement 1 of 0001_first.sql was started and not seen to end;"
        " nobody but you can tell how far it got\n"
        "  call twice()\n"
        "hint: look at what it changed, then: pgsluice apply --resume rerun, or --resume skip\n"
    )
    assert deploy.rows("select to_regclass('s.zero') is null") == [True]


def test_file_that_stopped_and_is_gone_is_told_as_half_done(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", "select 1;\n")
    path = deploy.add("0002_second.sql", f"{ONLINE}select 1;\nselect 1 / 0;\n")
    deploy.fails(1, "apply")
    assert deploy.run("apply", "--to", "0001").stderr == (
        "note: migrations/app/0002_second.sql stopped half-way; to go on with it: pgsluice apply\n"
    )
    path.unlink()
    deploy.record()
    how = "1 of 2 statements done; statement 2 failed, and was rolled back: division by zero (SQLSTATE 22012)"
    assert deploy.files("state", "detail")[1] == ("missing", how)
    assert deploy.fails(4, "apply") == (
        "error: migrations/app/0002_second.sql stopped half-way here, and the folder lacks it\n"
        f"  {how}\n"
        "hint: git log --diff-filter=D --summary -- migrations/app/0002_second.sql\n"
    )


def test_statement_that_ended_waits_for_its_record(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", f"{ONLINE}select 1;\n")
    deploy.ok("apply")
    deploy.add("0002_second.sql", f"{ONLINE}create index concurrently i on loose (i);\n")
    with deploy.session() as holder:
        holder.execute("begin")
        holder.execute("lock table pgsluice.migrations in share mode")
        error = deploy.fails(3, "apply", "--lock-timeout", "0.2", "--retries", "0")
    assert re.fullmatch(
        r"error: the ledger cannot be written: 0 of 1 statements of 0002_second.sql are done\n"
        r"  canceling statement due to lock timeout \(SQLSTATE 55P03\)\n"
        r"  blocked by pid \d+ \(.*\): lock table pgsluice.migrations in share mode\n"
        r"hint: pgsluice apply --retries 20, or end who is in the way: select pg_terminate_backend\(\d+\);\n",
        error,
    ), error
    deploy.ok("apply")
