"""`pgsluice diff` with databases: the plan from one to another, with a project and without."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.client import apply_migration, psql
from tests.conftest import EMBEDDED
from tests.e2e.project import InProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject

RICH: Final = Path(__file__).parents[1] / "cases" / "schema_from_nothing_rich" / "after.sql"


@pytest.fixture
def pair(open_server: Callable[[str], DevServer]) -> Iterator[tuple[str, str]]:
    """Two empty databases of the embedded server."""
    server = open_server(EMBEDDED)
    with ExitStack() as stack:
        yield stack.enter_context(server.clone(None)), stack.enter_context(server.clone(None))


def run(conninfo: str, *statements: str) -> None:
    """Run statements."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement.encode())


def test_the_plan_of_two_databases_applies_and_leaves_nothing(
    tmp_path: Path, dev: str, pair: tuple[str, str]
) -> None:
    first, second = pair
    (folder := tmp_path / "no project").mkdir()
    outside = InProcess(folder, dev)
    for role in ("mx_owner", "mx_reader"):
        run(second, f"do $$ begin create role {role}; exception when duplicate_object then null; end $$")
    run(second, RICH.read_text(encoding="utf-8"))
    plan = outside.ok("diff", first, f"{second} password=s3cret")
    assert "s3cret" not in plan
    assert plan.startswith("set check_function_bodies = off;\n\n-- ")
    psql(first, "--single-transaction", f"--file={outside.write('plan.sql', plan)}")
    again = outside.run("diff", first, second, "--check")
    assert again.code == 0, again
    assert again.stdout.startswith("no difference: pgsluice_scratch_")


def test_a_target_says_what_is_compared(make: MakeProject, pair: tuple[str, str]) -> None:
    first, second = pair
    project = make(
        {"schema/app/app.sql": "create schema app;\n"},
        config='[targets.app]\nmanages = ["app"]\nignore = ["app.scratch_*"]\n',
    )
    run(first, "create schema app")
    run(
        second,
        "create schema app create table t (id int) create table scratch_1 (id int)",
        "create schema other create table t (id int)",
    )
    plan = project.ok("diff", first, second, "--target", "app", "--explain")
    assert "CREATE TABLE app.t" in plan
    assert "-- create table app.t" in plan
    assert "scratch_1" not in plan
    assert "other" not in plan
    assert "CREATE TABLE other.t" in project.ok("diff", first, second)


def test_check_is_a_finding_and_json_is_one_document(make: MakeProject, pair: tuple[str, str]) -> None:
    first, second = pair
    project = make({"schema/app/app.sql": "create schema app;\n"})
    run(second, "create table t (id int)")
    done = project.run("diff", first, second, "--check")
    assert done.code == 1
    assert "CREATE TABLE public.t" in done.stdout
    assert "error: pgsluice_scratch_" in done.stderr
    assert " is not as pgsluice_scratch_" in done.stderr
    done = project.run("diff", first, second, "--check", "--json")
    assert done.code == 1
    assert "error:" not in done.stderr
    found = json.loads(done.stdout)
    assert "CREATE TABLE public.t" in found["statements"][0]["sql"]
    assert found["from"] != found["to"]


def test_one_database_is_led_to_the_schema_files(make: MakeProject, pair: tuple[str, str]) -> None:
    live, _ = pair
    project = make({"schema/app/app.sql": "create schema app;\ncreate table app.t (id int);\n"})
    project.ok("build", "start")
    apply_migration(live, project.migrations()[0])
    run(live, "alter table app.t add column extra int", "drop schema if exists pgsluice")
    plan = project.ok("diff", live)
    assert "ALTER TABLE app.t DROP COLUMN extra;" in plan
    psql(live, f"--file={project.write('plan.sql', plan)}")
    assert "is as the schema of target app\n" in project.ok("diff", live)


def test_a_url_that_is_none_is_bad_input(make: MakeProject) -> None:
    project = make({"schema/app/app.sql": "create schema app;\n"})
    error = project.fails(2, "diff", "postgresql://me:s3cret@host:port/db", "dbname=x")
    assert "the database's URL is not valid" in error
    assert "s3cret" not in error
