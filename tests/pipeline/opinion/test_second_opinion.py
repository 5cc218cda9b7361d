"""A facet that the snapshot overlooks stops the build all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgsluice.errors import FindingError
from pgsluice.pipeline.opinion import second
from tests.pipeline.opinion.project import UserProject, blind, start_project

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

USERS = "create schema app;\ncreate table app.users (user_id int primary key, email text);\n"
COMMENT = "comment on table app.users is 'people';\n"
SCRATCH = """
create table app.scratch_users (note text);
comment on column app.scratch_users.note is 'tried out';
create function app.scratch_one() returns int language sql as 'select 1';
comment on function app.scratch_one() is 'tried out';
"""


@pytest.fixture
def project(tmp_path: Path, server: DevServer) -> UserProject:
    return start_project(tmp_path, server)


def test_a_migration_that_leaves_out_what_the_snapshot_overlooks_is_not_written(
    project: UserProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind(monkeypatch, "comment")
    with pytest.raises(FindingError) as caught:
        project.build("users", USERS + COMMENT)
    assert str(caught.value) == (
        "proof of app/users failed: pg_dump sees a difference that the catalog comparison does not\n"
        "  COMMENT TABLE app.users\n"
        "    missing\n"
        "hint: report it as a fault of pgsluice, with these lines; to go on, write the missing statements "
        "in block install of templates/app/users.sql.j2"
    )
    assert project.migrations() == []


def test_an_edit_that_the_snapshot_overlooks_is_not_taken_for_nothing_to_do(
    project: UserProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.build("users", USERS + COMMENT)
    blind(monkeypatch, "comment")
    with pytest.raises(FindingError) as caught:
        project.build("comment", USERS + COMMENT.replace("people", "persons"))
    assert str(caught.value) == (
        "the migrations of target app do not lead to its schema: pg_dump sees a difference that the "
        "catalog comparison does not\n"
        "  COMMENT TABLE app.users\n"
        "    expected: COMMENT ON TABLE app.users IS 'persons';\n"
        "    found:    COMMENT ON TABLE app.users IS 'people';\n"
        "hint: report it as a fault of pgsluice, with these lines; to go on, write the statements in a "
        "migration of your own: pgsluice new NAME"
    )
    assert project.migrations() == ["0001_users.sql"]


def test_the_order_of_columns_is_no_difference(project: UserProject) -> None:
    project.build("users", USERS)
    project.build("name", USERS.replace("email text", "name text, email text"))
    assert project.migrations() == ["0001_users.sql", "0002_name.sql"]


def test_ignored_objects_are_not_dumped(project: UserProject) -> None:
    project.build("users", USERS + SCRATCH)
    assert project.migrations() == ["0001_users.sql"]


def test_a_build_without_pg_dump_says_so(project: UserProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second, "find_pg_dump", lambda major, bin_dir: None)
    plan = project.build("users", USERS).plan
    assert plan is not None
    assert [note.partition(" of major ")[2][2:] for note in plan.notes] == [
        " not found: second opinion left out"
    ]
