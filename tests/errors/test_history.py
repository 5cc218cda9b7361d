"""Migrations that are not what they should be: the whole error of the command or of the public function."""

from __future__ import annotations

import os
import re
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import load_project
from pgsluice.errors import InputError
from pgsluice.pipeline.fixtures import read_fixtures, split_history
from pgsluice.pipeline.history import Migration
from pgsluice.pipeline.lockfile import digest_templates, read_lock
from pgsluice.pipeline.publish import publish_files
from tests.errors.command import CONFIG, SEQUENCE
from tests.errors.failure import failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer
    from tests.errors.command import Folder

USERS: Final = "create table users (user_id bigint primary key);\n"
FIRST: Final = "migrations/app/0001_first.sql"
UNREADABLE: Final = "/proc/self/mem"
"""Opens, and gives an error when it is read, to root too."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"select 'caf\xe9';\n",
            f"error: {FIRST}:1: the file is not valid UTF-8: byte 0xe9 at offset 11\n"
            "hint: save the file as UTF-8\n",
        ),
        (
            b"select 1;\nselect nothing;\n",
            f"error: {FIRST}:2:8: the migrations of this folder do not run from the start\n"
            "  select nothing;\n"
            "         ^\n"
            '  column "nothing" does not exist (SQLSTATE 42703)\n'
            f"hint: git log -- {FIRST}\n",
        ),
    ],
)
def test_a_migration_that_does_not_run(folder: Folder, text: bytes, message: str) -> None:
    folder.write("schema/app/users.sql", USERS)
    folder.write(FIRST, text)
    assert folder.fails(2, "diff") == message


def test_a_role_that_the_dev_server_lacks(folder: Folder, weak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSLUICE_DEV", weak)
    folder.write("schema/app/users.sql", USERS)
    folder.write(FIRST, f"{USERS}grant select on users to nobody_here;\n")
    said = folder.fails(3, "diff")
    assert said.splitlines()[:2] == [
        f'error: the dev server lacks role "nobody_here", which {FIRST} names, and refuses to make it',
        "  permission denied to create role (SQLSTATE 42501)",
    ]


def test_a_migration_that_is_not_what_the_template_gives(folder: Folder, shared: DevServer) -> None:
    folder.write(CONFIG, f'postgres = ["{shared.major}", "{shared.major}"]\n{SEQUENCE}')
    folder.write("schema/app/users.sql", USERS)
    folder.ok("build", "first")
    folder.write(FIRST, (folder.root / FIRST).read_bytes() + b"-- by hand\n")
    folder.record()
    assert without_server(folder.fails(1, "check")) == (
        "error: app on <server>: 0001_first.sql is made again byte for byte\n"
        f"  {FIRST} is not what schema and template give now\n"
        "hint: pgsluice build, or pgsluice build NAME for a new migration when this one was released\n"
    )
    folder.write("schema/app/users.sql", "create table users (user_id bigint primary key, name text);\n")
    assert without_server(folder.fails(1, "check")) == (
        "error: app on <server>: the migrations lead to the schema\n"
        "  the migrations of target app do not lead to its schema\n"
        "  column public.users.name: missing\n"
        "hint: pgsluice build NAME\n"
    )


def test_majors_that_are_not_on_this_machine(folder: Folder) -> None:
    folder.write(CONFIG, f'postgres = ["97", "98"]\n{SEQUENCE}')
    assert folder.fails(3, "check", "--all-versions") == (
        "error: no PostgreSQL 97, 98 was found\n"
        "hint: install it, or narrow postgres in the project's configuration\n"
    )


def test_a_fixture_whose_place_is_not_clear(tmp_path: Path) -> None:
    path = tmp_path / "upgrades/fill/old.sql"
    path.parent.mkdir(parents=True)
    path.write_text("-- expect: accepted\nselect 1;\n")
    (fixture,) = read_fixtures(tmp_path / "upgrades", root=tmp_path)
    history = [Migration(version, "fill", tmp_path / f"{version}_fill.sql") for version in ("0001", "0002")]
    assert failure(InputError, lambda: split_history(fixture, history)) == (
        "upgrades/fill/old.sql: 2 migrations are called fill\nhint: the versions are 0001, 0002"
    )


def test_a_template_whose_name_is_no_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.sql.j2")).write_text("")
    assert failure(InputError, lambda: digest_templates(tmp_path)) == (
        f"{tmp_path}: the file's name is not valid UTF-8: 'caf\\udce9.sql.j2'"
    )


def test_a_lock_whose_text_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "pgsluice.lock").write_bytes(b"schema = '\xe9'\n")
    assert failure(InputError, lambda: read_lock(tmp_path)) == (
        f"{tmp_path}/pgsluice.lock: the file is not valid UTF-8"
    )


def test_pyproject_whose_table_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\npgsluice = 1\n")
    assert failure(InputError, lambda: load_project(tmp_path)) == (
        "pyproject.toml:2: tool.pgsluice must be a table"
    )


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / CONFIG).symlink_to(UNREADABLE)
    assert failure(InputError, lambda: load_project(tmp_path)) == (
        f"cannot read {CONFIG}: Input/output error"
    )


def test_a_file_outside_of_the_project(tmp_path: Path) -> None:
    path = tmp_path / "project/../elsewhere.sql"
    assert failure(InputError, lambda: publish_files(tmp_path / "project", {path: b""})) == (
        f"{path} lies outside of the project {tmp_path}/project"
    )


def test_no_room_for_a_file(tmp_path: Path) -> None:
    def act() -> None:
        with no_file_larger_than(10):
            publish_files(tmp_path, {tmp_path / "a.sql": b"more than ten bytes"})

    assert failure(InputError, act) == "cannot write into .pgsluice: File too large"
    assert not (tmp_path / "a.sql").exists()


def without_server(said: str) -> str:
    """What was said, with no version and path of the server in it."""
    return re.sub(r"app on PostgreSQL .*:\d+: ", "app on <server>: ", said)


@contextmanager
def no_file_larger_than(size_bytes: int) -> Iterator[None]:
    """Let the operating system refuse to write more, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
