"""`status` tells what a database has, and writes nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pgsluice.pipeline.live.database import shown
from tests.conftest import EMBEDDED
from tests.e2e.applying import ONLINE, Deploy, deployed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer


@pytest.fixture
def deploy(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project with two migrations, and a database without any."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        made.add("0001_first.sql", "create table t (i int);\n")
        made.add("0002_second.sql", ONLINE + "create table u ();\nselect 1 / 0;\n")
        yield made


def test_status_of_a_database_without_a_ledger_is_pending(deploy: Deploy) -> None:
    assert deploy.ok("status") == (
        f"{shown(deploy.url)}\n"
        "app: 2 pending\n"
        "  pending       0001_first.sql\n"
        "  pending       0002_second.sql\n"
    )
    assert deploy.rows("select to_regnamespace('pgsluice')::text") == [None]


def test_check_fails_while_something_is_pending(deploy: Deploy) -> None:
    assert deploy.run("status", "--check").code == 1
    deploy.ok("apply", "--to", "0001")
    deploy.project.remove("migrations/app/0002_second.sql")
    assert deploy.run("status", "--check").code == 0


def test_file_that_stopped_half_way_is_dirty_with_its_statement(deploy: Deploy) -> None:
    deploy.run("apply")
    done = deploy.run("status")
    assert done.code == 4
    assert re.fullmatch(
        f"{re.escape(shown(deploy.url))}\n"
        "app: 1 applied, 1 dirty\n"
        r"  applied       0001_first.sql   \S+ \S+ UTC by pgsluice_dev\n"
        "  dirty         0002_second.sql  1 of 2 statements done; statement 2 failed, and was rolled back:"
        r" division by zero \(SQLSTATE 22012\)\n",
        done.stdout,
    ), done.stdout


def test_run_at_work_is_told_and_its_file_is_no_problem(deploy: Deploy) -> None:
    deploy.run("apply")
    with deploy.session() as other:
        other.execute("select pg_advisory_lock(8099569364512629605)")
        pid = other.info.backend_pid
        result = json.loads(deploy.ok("status", "--json"))
    assert result["running"]["pid"] == pid
    assert [file["state"] for file in result["targets"][0]["files"]] == ["applied", "dirty"]


def test_statement_of_a_run_at_work_may_be_running_now(deploy: Deploy) -> None:
    deploy.run("apply")
    with deploy.session() as other:
        other.execute("update pgsluice.migrations set error = null where finished_at is null")
        other.execute("select pg_advisory_lock(8099569364512629605)")
        status = deploy.ok("status")
    assert status.endswith("1 of 2 statements done; statement 2 may be running now\n")


def test_baseline_is_told_apart_from_what_ran(deploy: Deploy) -> None:
    deploy.ok("baseline", "0001", "--allow-drift")
    assert deploy.states() == ["baseline", "pending"]


def test_a_folder_that_apply_would_refuse_is_told(deploy: Deploy) -> None:
    deploy.project.write("migrations/app/0001_first.sql", "create table edited ();\n")
    said = deploy.ok("status").splitlines()
    assert said[-1] == (
        "note: apply would refuse: migrations/app/0001_first.sql was edited after it was recorded"
    )
    assert json.loads(deploy.ok("status", "--json"))["notes"] == [said[-1].removeprefix("note: ")]
