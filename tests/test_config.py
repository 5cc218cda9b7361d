"""The configuration: what is read, and each complaint word for word."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pgsluice.config import DEV_VARIABLE, Project, load_project
from pgsluice.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEV_VARIABLE, raising=False)


def configure(root: Path, text: str) -> Project:
    """Load a project whose pgsluice.toml is `text`."""
    (root / "pgsluice.toml").write_text(text, encoding="utf-8")
    return load_project(root)


def complaint(root: Path, text: str) -> str:
    """The whole error that a pgsluice.toml gives."""
    with pytest.raises(InputError) as raised:
        configure(root, text)
    return str(raised.value)


def test_an_empty_target_has_the_defaults(tmp_path: Path) -> None:
    project = configure(tmp_path, "[targets.app]\n")
    target = project.target(None)
    assert (project.root, project.dev, project.postgres) == (tmp_path, "embedded", (15, 18))
    assert target.schema_dir == tmp_path / "schema/app"
    assert target.migrations_dir == tmp_path / "migrations/app"
    assert target.templates_dir == tmp_path / "templates/app"
    assert (target.manages, target.requires, target.ignore) == (("*",), (), ())
    assert (target.lock_order, target.versioning) == ((), "timestamp")


def test_every_key_is_read(tmp_path: Path) -> None:
    project = configure(
        tmp_path,
        """
        dev = "local:/opt/pg/bin"
        postgres = ["16", "17"]
        [targets.app]
        schema = "db/model"
        migrations = "db/steps"
        templates = "db/parts"
        manages = ["app", "audit"]
        requires = ["pgmq", "sql/roles.sql"]
        ignore = ["app.scratch_*"]
        lock_order = ["app.runs"]
        versioning = "sequence"
        """,
    )
    target = project.target("app")
    assert (project.dev, project.postgres) == ("local:/opt/pg/bin", (16, 17))
    assert project.relative(target.schema_dir) == "db/model"
    assert project.relative(target.migrations_dir) == "db/steps"
    assert project.relative(target.templates_dir) == "db/parts"
    assert (target.manages, target.requires) == (("app", "audit"), ("pgmq", "sql/roles.sql"))
    assert (target.ignore, target.lock_order) == (("app.scratch_*",), ("app.runs",))
    assert target.versioning == "sequence"


def test_pyproject_is_found_from_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.pgsluice.targets.app]\n')
    (tmp_path / "src/deep").mkdir(parents=True)
    assert load_project(tmp_path / "src/deep").root == tmp_path


def test_a_pyproject_without_our_table_is_passed_over(tmp_path: Path) -> None:
    configure(tmp_path, "[targets.app]\n")
    (tmp_path / "service").mkdir()
    (tmp_path / "service/pyproject.toml").write_text("[project\nbroken")
    assert load_project(tmp_path / "service").root == tmp_path


def test_the_environment_overrides_dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEV_VARIABLE, "local:/elsewhere")
    assert configure(tmp_path, "[targets.app]\n").dev == "local:/elsewhere"


def test_no_configuration_anywhere(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        load_project(tmp_path)
    assert str(raised.value) == (
        f"no pgsluice.toml in {tmp_path} or a folder above it\n"
        "hint: pgsluice -C FOLDER, if the project is in another one; pgsluice init starts one here"
    )


def test_two_configurations_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pgsluice.targets.app]\n")
    assert complaint(tmp_path, "[targets.app]\n") == (
        "pyproject.toml:1: [tool.pgsluice] and pgsluice.toml both configure this project: keep one of them"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'dev = "embedded"\n[targets.app]\nmanagse = ["a"]\n',
            "pgsluice.toml:3: unknown key targets.app.managse, did you mean manages?",
        ),
        (
            "[targets.app]\nschema_ = 'x'\n",
            "pgsluice.toml:2: unknown key targets.app.schema_, did you mean schema?",
        ),
        (
            "zzz = 1\n[targets.app]\n",
            "pgsluice.toml:1: unknown key zzz\nhint: the keys here are dev, postgres, targets",
        ),
        (
            "[targets.app]\n\nmanages = 'public'\n",
            'pgsluice.toml:3: targets.app.manages must be a list of strings, not "public"',
        ),
        (
            "targets.app.requires = ['a', 3]\n",
            "pgsluice.toml:1: targets.app.requires.1 must be a string, not 3",
        ),
        (
            "[targets]\napp = { schema = 7 }\n",
            "pgsluice.toml:2: targets.app.schema must be a string, not 7",
        ),
        ("targets = 1\n", "pgsluice.toml:1: targets must be a table, not 1"),
        ("[targets]\napp = true\n", "pgsluice.toml:2: targets.app must be a table, not true"),
        (
            "[targets.app]\nversioning = 'date'\n",
            'pgsluice.toml:2: targets.app.versioning must be "timestamp" or "sequence", not "date"',
        ),
        (
            "dev = ''\n[targets.app]\n",
            'pgsluice.toml:1: dev must be a string that is not empty, not ""',
        ),
        (
            "postgres = ['15']\n[targets.app]\n",
            'pgsluice.toml:1: postgres must be a list of two, such as ["15", "18"], not ["15"]',
        ),
        (
            "postgres = ['15', '16', '18']\n[targets.app]\n",
            'pgsluice.toml:1: postgres must be a list of two, such as ["15", "18"], not ["15", "16", "18"]',
        ),
        (
            "postgres = [15, 18]\n[targets.app]\n",
            "pgsluice.toml:1: postgres.0 must be a string, not 15",
        ),
        (
            "postgres = ['15.2', '18']\n[targets.app]\n",
            'pgsluice.toml:1: postgres.0 must be digits in quotes, not "15.2"',
        ),
        (
            "postgres = ['18', '15']\n[targets.app]\n",
            'pgsluice.toml:1: postgres must be the lowest major first, not ["18", "15"]',
        ),
        (
            "postgres = ['12', '15']\n[targets.app]\n",
            "pgsluice.toml:1: PostgreSQL 12 is not supported; the lowest major is 15",
        ),
        ("dev = 'embedded'\n", "pgsluice.toml: no target is configured\nhint: [targets.app]"),
        (
            '[targets."a b"]\n',
            'pgsluice.toml:1: a target\'s name is made of letters, digits, _ and -, not "a b"',
        ),
        (
            "[targets.app]\nschema = '../other'\n",
            'pgsluice.toml:2: targets.app.schema must lie inside the project, not "../other"',
        ),
        (
            "[targets.app]\nmigrations = '/var/lib'\n",
            'pgsluice.toml:2: targets.app.migrations must lie inside the project, not "/var/lib"',
        ),
        (
            "[targets.app]\nmanages = []\n",
            'pgsluice.toml:2: target app manages no schema\nhint: manages = ["app"]',
        ),
        (
            "[targets.app]\nmanages = ['a', 'a']\n",
            "pgsluice.toml:2: target app names schema a twice in manages",
        ),
        (
            "[targets.app]\nmanages = ['*', 'a']\n",
            'pgsluice.toml:2: target app: "*" already stands for every schema\nhint: manages = ["*"]',
        ),
        (
            "[targets.a]\nmanages = ['a']\n[targets.b]\n",
            "pgsluice.toml:3: target b needs manages, because there are several targets\n"
            'hint: manages = ["b"]',
        ),
        (
            "[targets.a]\nmanages = ['x']\n[targets.b]\nmanages = ['y', 'x']\n",
            "pgsluice.toml:4: targets a and b both manage schema x",
        ),
        (
            "[targets.a]\nmanages = ['x']\n[targets.b]\nmanages = ['*']\n",
            "pgsluice.toml:4: targets a and b both manage every schema",
        ),
        (
            "[targets.a]\nmanages = ['a']\n[targets.b]\nmanages = ['b']\nmigrations = 'migrations/a/'\n",
            "pgsluice.toml:5: targets.a.migrations and targets.b.migrations are the same folder:"
            " migrations/a",
        ),
        (
            "[targets.a]\nschema = 'db'\nmigrations = 'db/steps'\n",
            "pgsluice.toml:3: targets.a.schema and targets.a.migrations overlap: db and db/steps",
        ),
        (
            "[targets.app]\nmanages = [\n",
            "pgsluice.toml:2:12: not valid TOML: invalid value\n  manages = [\n             ^",
        ),
        (
            "dev = embedded\n",
            "pgsluice.toml:1:7: not valid TOML: invalid value\n  dev = embedded\n        ^",
        ),
        ("\ufeff[targets.app]\n", "pgsluice.toml:1: the file starts with a byte order mark"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(tmp_path, text) == message


def test_invalid_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pgsluice.toml").write_bytes(b"dev = 'embedded'\n# \xff\n")
    with pytest.raises(InputError, match=r"^pgsluice.toml:2: the file is not valid UTF-8$"):
        load_project(tmp_path)


def test_a_link_that_leaves_the_project_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    for folder in (outside, root):
        folder.mkdir()
    os.symlink(outside, root / "schema")
    assert complaint(root, "[targets.app]\n") == (
        'pgsluice.toml:1: targets.app.schema must lie inside the project, not "schema/app"'
    )


def test_a_target_is_asked_for_by_name(tmp_path: Path) -> None:
    project = configure(tmp_path, "[targets.app]\nmanages = ['a']\n[targets.audit]\nmanages = ['b']\n")
    assert project.target("audit").name == "audit"
    with pytest.raises(InputError) as several:
        project.target(None)
    assert str(several.value) == "this project has several targets: app, audit\nhint: --target app"
    with pytest.raises(InputError) as unknown:
        project.target("audti")
    assert str(unknown.value) == "no target is called audti; there is app, audit\nhint: --target audit"
