"""`pgsluice lint`: output, exit codes, files, and what it must not need."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.project import InProcess, Project

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "schema/app/users.sql"
MIGRATION: Final = "migrations/app/0001_a.sql"
CLEAN: Final = "create table users (user_id bigint);\n"
UGLY: Final = "CREATE table users (user_id bigint);\n"
CASCADE: Final = "drop index app.i cascade;\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without files; its server cannot be reached, and the net is a proxy that is not there."""
    project = InProcess(
        tmp_path / "project",
        "postgresql://nobody@127.0.0.1:1/none",
        {"HTTPS_PROXY": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"},
    )
    project.write("pgsluice.toml", "[targets.app]\n")
    return project


def test_a_clean_project_passes(project: Project) -> None:
    project.write(SCHEMA, CLEAN)
    as_a_process = Project(project.root, project.dev, project.environment)
    assert as_a_process.ok("lint") == "1 file: nothing found\n"
    assert project.json("lint") == {
        "ok": True,
        "files": 1,
        "counts": {"error": 0, "warning": 0, "note": 0},
        "findings": [],
        "fixed": [],
        "unfixed": [],
        "outside": [],
    }


def test_errors_exit_1_and_warnings_only_when_strict(project: Project) -> None:
    project.write(MIGRATION, CASCADE.replace("index", "function"))
    assert project.run("lint").code == 0
    assert project.run("lint", "--strict").code == 1
    assert (
        project.run("lint", "--strict", "--allow", "drop-cascade", "--allow", "ban-drop-function").code == 0
    )
    project.write(SCHEMA, UGLY)
    done = project.run("lint", "--allow", "squawk/ban-drop-function")
    assert (done.code, done.stdout) == (
        1,
        f"{MIGRATION}:1:1: warning: drop function with cascade [drop-cascade]\n"
        "  recipe: name and drop what depends on it, without cascade\n"
        f"{SCHEMA}:1:1: error: keywords must be lower case [sqlfluff/CP01]\n"
        "  recipe: pgsluice lint --fix\n"
        "2 files: 1 error, 1 warning; 1 for pgsluice lint --fix\n",
    )


def test_json_names_rule_place_and_recipe(project: Project) -> None:
    project.write(SCHEMA, UGLY)
    done = project.run("lint", "--format", "json")
    assert done.code == 1
    assert json.loads(done.stdout)["findings"] == [
        {
            "rule": "sqlfluff/CP01",
            "engine": "sqlfluff",
            "severity": "error",
            "message": "keywords must be lower case",
            "file": SCHEMA,
            "line": 1,
            "column": 1,
            "end_line": None,
            "recipe": "pgsluice lint --fix",
            "fixable": True,
            "closed": False,
        }
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [("sarif", "{\n"), ("gitlab", "[\n"), ("github", "::error file=schema/app/users.sql,line=1,")],
)
def test_reports_go_to_a_file(project: Project, name: str, start: str) -> None:
    project.write(SCHEMA, UGLY)
    done = project.run("lint", "--format", name, "--output", "report")
    assert (done.code, done.stdout) == (1, "")
    assert project.read("report").startswith(start)


def test_fix_mends_and_reports_what_is_left(project: Project) -> None:
    project.write(SCHEMA, UGLY)
    project.write(MIGRATION, "SELECT  1;\n")
    assert project.ok("lint", "--fix") == f"fixed {SCHEMA}\n2 files: nothing found\n"
    assert project.read(SCHEMA) == CLEAN
    assert project.read(MIGRATION) == "SELECT  1;\n"


def test_given_files_are_linted_alone_and_others_passed_over(project: Project) -> None:
    project.write(SCHEMA, UGLY)
    project.write(MIGRATION, CASCADE)
    project.write("tests/x.sql", "nonsense")
    done = project.run("lint", MIGRATION, "tests/x.sql")
    assert done.code == 0
    assert done.stdout.splitlines()[-1].startswith("1 file: ")
    assert "; 1 outside of the targets passed over" in done.stdout
    assert SCHEMA not in done.stdout
    assert SCHEMA in project.run("lint", "schema").stdout
    assert project.fails(2, "lint", "nothing.sql").startswith("error: ")


def test_a_project_below_the_repository_is_named_from_there(tmp_path: Path) -> None:
    repository = InProcess(tmp_path / "repository")
    repository.write(".git/HEAD", "ref: refs/heads/main\n")
    repository.write("db/pgsluice.toml", "[targets.app]\n")
    repository.write(f"db/{SCHEMA}", UGLY)
    from_root = repository.run("-C", "db", "lint", f"db/{SCHEMA}", "--format", "github")
    assert from_root.stdout.startswith(f"::error file=db/{SCHEMA},line=1,")
    from_project = repository.run("-C", "db", "lint", SCHEMA)
    assert from_project.stdout.startswith(f"{SCHEMA}:1:1: error: ")


def test_without_a_project_given_files_are_linted_by_the_defaults(tmp_path: Path) -> None:
    plain = InProcess(tmp_path / "plain")
    plain.write("db/a.sql", UGLY)
    plain.write("migrations/1.sql", "SELECT 1;\nbegin;\n")
    plain.write("migrations/atlas.sum", "h1:x\n")
    done = plain.run("lint", "db", "migrations")
    assert done.code == 1
    assert "db/a.sql:1:1: error: keywords must be lower case [sqlfluff/CP01]" in done.stdout
    assert "migrations/1.sql:2:1: error: begin in a migration [transaction-control]" in done.stdout
    assert not (plain.root / ".pgsluice").exists()
    assert plain.fails(2, "lint") == (
        "error: no project is configured here, so name the files to lint\nhint: pgsluice init\n"
    )
    assert plain.fails(2, "lint", "--since", "HEAD", "db") == (
        "error: --target and --since need a project\nhint: pgsluice init\n"
    )


def test_formats_that_exclude_each_other(project: Project) -> None:
    done = project.run("lint", "--json", "--format", "sarif")
    assert done.code == 2
    assert json.loads(done.stdout)["error"]["message"] == "--json and --format sarif exclude each other"


def test_the_closed_are_shown_on_demand(project: Project) -> None:
    from pgsluice.pipeline.checksum import SUM_NAME, compute_sum

    path = project.write(MIGRATION, "begin;\n")
    (path.parent / SUM_NAME).write_bytes(compute_sum(path.parent).render())
    assert project.ok("lint") == "1 file: nothing found; 1 in closed migrations, shown by --closed\n"
    assert f"{MIGRATION}:1:1: note: begin in a migration" in project.ok("lint", "--closed")


def test_a_folder_that_cannot_be_written_is_linted_without_a_cache(project: Project) -> None:
    project.write(SCHEMA, CLEAN)
    project.write(".pgsluice", "no folder\n")
    assert project.ok("lint") == "1 file: nothing found\n"
