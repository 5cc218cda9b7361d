"""`init`, `new` and `release`: what they write, and what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jinja2
import pytest

from pgsluice.cli.main import main
from pgsluice.config import load_project
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.digest import schema_digest
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock, digest_templates, read_lock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A project with one open migration, as a build left it."""
    assert main(["init"]) == 0
    capsys.readouterr()
    (folder / "migrations/app").mkdir(parents=True)
    (folder / "migrations/app/0001_first.sql").write_text("select 1;\n")
    record(folder, opened="0001_first.sql")
    return folder


def record(root: Path, *, opened: str | None) -> None:
    """Write sum and lock for what is there."""
    migrations = root / "migrations/app"
    (migrations / SUM_NAME).write_bytes(compute_sum(migrations).render())
    lock = Lock(
        schema_digest(root / "schema/app"),
        digest_templates(root / "templates/app"),
        "0.1.0",
        18,
        (opened,) if opened else (),
    )
    (migrations / LOCK_NAME).write_bytes(lock.render())


def test_init_writes_a_project_that_loads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert capsys.readouterr().out == (
        "wrote pgsluice.toml\nwrote .gitattributes\nwrote schema/app/\n"
        "next: describe a table in schema/app/, one object a file, then: pgsluice build first\n"
    )
    target = load_project(folder).target("app")
    assert target.schema_dir.is_dir()
    assert (target.manages, target.versioning) == (("*",), "timestamp")
    assert (folder / ".gitattributes").read_text().splitlines() == [
        "*.sql text eol=lf",
        "*.sql.j2 text eol=lf",
        "atlas.sum text eol=lf",
        "pgsluice.lock text eol=lf",
    ]
    assert main(["verify"]) == 0


def test_init_in_another_folder_with_another_target(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "db", "--target", "shop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "root": str(folder / "db"),
        "target": "shop",
        "wrote": ["pgsluice.toml", ".gitattributes", "schema/shop/"],
    }
    assert load_project(folder / "db").target(None).name == "shop"


def test_init_keeps_what_is_there(folder: Path) -> None:
    (folder / ".gitattributes").write_bytes(b"*.png binary\n*.sql text eol=lf")
    (folder / "schema/app").mkdir(parents=True)
    (folder / "schema/app/users.sql").write_text("create table users ();\n")
    assert main(["init"]) == 0
    assert (folder / ".gitattributes").read_text().splitlines() == [
        "*.png binary",
        "*.sql text eol=lf",
        "*.sql.j2 text eol=lf",
        "atlas.sum text eol=lf",
        "pgsluice.lock text eol=lf",
    ]
    assert (folder / "schema/app/users.sql").read_text() == "create table users ();\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [("pgsluice.toml", "[targets.x]\n"), ("pyproject.toml", "[tool.pgsluice.targets.x]\n")],
)
def test_init_overwrites_nothing(
    folder: Path, name: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_text(content)
    assert main(["init"]) == 2
    assert capsys.readouterr() == ("", f"error: {name}: there is a configuration already\n")
    assert [path.name for path in folder.iterdir()] == [name]


def test_init_beside_a_pyproject_of_others(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert main(["init"]) == 0
    assert load_project(folder).target(None).name == "app"


def test_init_refuses_a_name_that_is_no_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--target", "../x"]) == 2
    assert capsys.readouterr().err == (
        'error: a target\'s name is made of letters, digits, _ and -, not "../x"\n'
    )
    assert not any(folder.iterdir())


def test_init_says_when_it_cannot_write(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "schema").write_text("a file")
    assert main(["init"]) == 2
    assert capsys.readouterr().err == f"error: cannot make {folder}/schema/app: Not a directory\n"
    assert not (folder / "pgsluice.toml").exists()


def test_new_writes_a_template_to_fill_in(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "fill_names"]) == 0
    assert capsys.readouterr().out == (
        "wrote templates/app/fill_names.sql.j2\nfill in its blocks, then: pgsluice build fill_names\n"
    )
    text = (project / "templates/app/fill_names.sql.j2").read_text()
    assert text.startswith('{% extends "migration.sql.j2" %}\n{% import "macros.sql.j2" as sql %}\n')
    jinja2.Environment(autoescape=False).parse(text)
    assert main(["verify"]) == 1
    assert capsys.readouterr().err == (
        "error: templates/app/fill_names.sql.j2 belongs to no migration yet\n"
        "hint: pgsluice build fill_names\n"
    )


def test_the_example_in_a_new_template_parses_once_it_is_moved_out(project: Path) -> None:
    assert main(["new", "fill_names"]) == 0
    text = (project / "templates/app/fill_names.sql.j2").read_text()
    shown = text.replace("{#", "").replace("#}", "")
    jinja2.Environment(autoescape=False).parse(shown)


def test_new_for_the_open_migration_adds_its_template(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "first", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "target": "app",
        "template": "templates/app/first.sql.j2",
        "next": "pgsluice build first",
    }


def test_new_refuses(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "Fill names"]) == 2
    assert capsys.readouterr().err == (
        "error: a migration's name is made of a-z, 0-9 and _, not 'Fill names'\nhint: fill_names\n"
    )
    record(project, opened=None)
    assert main(["new", "first"]) == 2
    assert capsys.readouterr().err == (
        "error: a migration of that name is closed: migrations/app/0001_first.sql\n"
        "hint: pgsluice new first_again\n"
    )
    assert main(["new", "second"]) == 0
    capsys.readouterr()
    assert main(["new", "second"]) == 2
    assert capsys.readouterr().err == (
        "error: templates/app/second.sql.j2: the template exists already\nhint: pgsluice build second\n"
    )


def test_release_closes_the_open_migration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = read_lock(project / "migrations/app")
    assert main(["release"]) == 0
    assert capsys.readouterr().out == (
        "migrations/app/0001_first.sql is closed; the next change starts another: pgsluice build NAME\n"
    )
    after = read_lock(project / "migrations/app")
    assert before is not None
    assert after is not None
    assert (before.open, after.open) == (("0001_first.sql",), ())
    assert (before.schema, before.templates) == (after.schema, after.templates)
    assert main(["verify"]) == 0
    capsys.readouterr()
    assert main(["release"]) == 2
    assert capsys.readouterr().err == (
        "error: no migration of target app is open\nhint: pgsluice build NAME\n"
    )


def test_release_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "target": "app",
        "released": "migrations/app/0001_first.sql",
        "files": ["migrations/app/0001_first.sql"],
    }


def test_release_leaves_a_file_open_that_is_not_as_built(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "migrations/app/0001_first.sql").write_text("select 2;\n")
    assert main(["release"]) == 1
    assert capsys.readouterr().err == (
        "error: 0001_first.sql is not as it was built, so it stays open\n"
        "  migrations/app/0001_first.sql was edited after it was recorded\n"
        "hint: pgsluice verify\n"
    )
    lock = read_lock(project / "migrations/app")
    assert lock is not None
    assert lock.open == ("0001_first.sql",)


def test_release_minds_neither_the_next_schema_nor_the_next_template(project: Path) -> None:
    (project / "schema/app/users.sql").write_text("create table users ();\n")
    assert main(["new", "second"]) == 0
    assert main(["release"]) == 0


def test_dev_stop_without_a_server_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "stop"]) == 0
    assert capsys.readouterr().out == "no development server is running\n"
