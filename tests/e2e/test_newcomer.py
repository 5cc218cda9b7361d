"""The way of somebody new, from an empty folder, and every command on it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeProject
    from tests.e2e.project import Project

USERS: Final = """\
create table users (
  user_id bigint generated always as identity primary key,
  name text not null
);
"""
USERS_WITH_EMAIL: Final = USERS.replace("not null\n", "not null,\n  email text\n")
NAMES: Final = "create view names as\nselect u.name from users as u;\n"
FILL: Final = """\
{% extends "migration.sql.j2" %}

{% block backfill %}
update public.users as u set email = lower(u.name) where u.email is null;
{% endblock %}
"""
COMMANDS: Final = ("init", "demo", "build", "diff", "check", "new", "release", "verify", "dev stop")


def test_newcomer_goes_the_whole_way(own_server: Project) -> None:
    project = own_server
    assert project.ok("init").splitlines()[-1] == (
        "next: describe a table in schema/app/, one object a file, then: pgsluice build first"
    )
    project.write("schema/app/users.sql", USERS)
    project.write("schema/app/names.sql", NAMES)
    assert re.fullmatch(
        r"wrote migrations/app/\d{14}_first\.sql\n"
        r"  2 generated statements, proved on embedded PostgreSQL 18\.\d+\n",
        project.ok("build", "first"),
    )

    project.write("schema/app/users.sql", USERS_WITH_EMAIL)
    assert "ADD COLUMN email text" in project.ok("diff")
    assert project.run("diff", "--check").code == 1
    assert "schema/app was changed after the last proved build" in project.fails(1, "verify")
    project.ok("build", "second")
    assert [path.name[15:] for path in project.migrations()] == ["first.sql", "second.sql"]
    assert project.ok("verify") == "app: as built\n"
    assert project.ok("diff") == "no difference: the migrations of app lead to the schema\n"
    project.ok("diff", "--check")

    released = project.ok("release")
    assert released == (
        f"migrations/app/{project.migrations()[-1].name} is closed; "
        "the next change starts another: pgsluice build NAME\n"
    )
    project.ok("new", "fill_email")
    project.write("templates/app/fill_email.sql.j2", FILL)
    project.ok("build", "fill_email")
    assert "update public.users as u set email" in project.newest()
    project.ok("check")
    assert project.ok("dev", "stop") == "stopped the development server\n"
    assert project.ok("dev", "stop") == "no development server is running\n"


def test_build_with_nothing_to_do_changes_no_file(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    before = project.tree()
    for arguments in (("build",), ("build", "first"), ("build", "second"), ("diff",), ("verify",)):
        project.ok(*arguments)
        assert project.tree() == before, arguments
    project.ok("release")
    before = project.tree()
    project.ok("build")
    project.ok("build", "second")
    assert project.tree() == before


def test_build_before_there_is_anything_says_where_to_write(make: MakeProject) -> None:
    project = make({"schema/app/readme.txt": "nothing yet\n"})
    assert project.ok("build", "first") == (
        "nothing to do: the migrations of app lead to this schema already\n"
        "  schema/app holds no SQL file: describe a table there, one object a file\n"
    )


def test_edit_of_comments_and_white_space_writes_no_migration(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("release")
    project.write("schema/app/users.sql", "-- people\n\n" + USERS.replace("  ", "    "))
    before = project.tree()
    project.ok("verify")
    project.ok("build")
    assert project.tree() == before


def test_other_text_with_an_equal_catalog_updates_only_the_lock(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("release")
    project.write("schema/app/users.sql", USERS.replace("bigint", "int8"))
    before = project.contents()
    project.fails(1, "verify")
    assert project.ok("build") == ("nothing to do: the migrations of app lead to this schema already\n")
    after = project.contents()
    assert {name for name in after if after[name] != before.get(name)} == {"migrations/app/pgsluice.lock"}
    project.ok("verify")


def test_second_edit_rewrites_only_what_the_diff_owns(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("release")
    project.write("schema/app/users.sql", USERS_WITH_EMAIL)
    project.write("templates/app/add_email.sql.j2", FILL)
    project.ok("build", "add_email")
    first = project.newest()
    project.write("schema/app/users.sql", USERS_WITH_EMAIL.replace("email text", "email text,\n  age int"))
    project.ok("build")
    second = project.newest()
    assert [path.name for path in project.migrations()] == ["0001_first.sql", "0002_add_email.sql"]
    assert second.replace("ALTER TABLE public.users ADD COLUMN age integer;\n\n", "") == first
    assert second.count("update public.users as u set email = lower(u.name) where u.email is null;") == 1
    assert project.read("templates/app/add_email.sql.j2") == FILL


def test_open_migration_goes_when_the_edit_is_taken_back(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("release")
    before = project.contents()
    project.write("schema/app/users.sql", USERS_WITH_EMAIL)
    project.ok("build", "add_email")
    project.write("schema/app/users.sql", USERS)
    assert project.ok("build") == (
        "removed migrations/app/0002_add_email.sql: the schema of app is again what came before it\n"
    )
    assert project.contents() == before


def test_data_only_migration_goes_when_its_template_is_removed(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS_WITH_EMAIL})
    project.ok("build", "first")
    project.ok("release")
    before = project.contents()
    project.ok("new", "fill_email")
    project.write("templates/app/fill_email.sql.j2", FILL)
    project.ok("build", "fill_email")
    assert project.migrations()[-1].name == "0002_fill_email.sql"
    project.remove("templates/app/fill_email.sql.j2")
    project.fails(1, "verify")
    project.ok("build")
    (project.root / "templates/app").rmdir()
    (project.root / "templates").rmdir()
    assert project.contents() == before


def test_new_refuses_a_template_that_exists(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("new", "fill_email")
    assert project.fails(2, "new", "fill_email") == (
        "error: templates/app/fill_email.sql.j2: the template exists already\n"
        "hint: pgsluice build fill_email\n"
    )


def test_build_runs_the_upgrade_fixtures(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    fixture = project.write(
        "tests/upgrades/app/first/users.sql",
        "-- expect: accepted\n"
        "insert into public.users (name) values ('Ada');\n"
        "-- then:\n"
        "select count(*) = 1 from public.users;\n",
    )
    project.write("schema/app/users.sql", USERS + "create index users_name_idx on public.users (name);\n")
    assert "wrote " in project.ok("build", "name_index")
    project.ok("check")
    fixture.write_text(fixture.read_text().replace("= 1", "= 2"))
    project.write("schema/app/users.sql", USERS + "create index users_by_name on public.users (name);\n")
    assert "tests/upgrades/app/first/users.sql:4" in project.fails(1, "build")


def test_template_as_new_writes_it_is_refused_while_it_is_empty(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("new", "nothing_yet")
    message = "the template writes nothing, and the schema does not differ"
    assert project.fails(2, "build", "nothing_yet") == (
        f"error: templates/app/nothing_yet.sql.j2: {message}\n"
        "hint: fill its blocks, or rm templates/app/nothing_yet.sql.j2\n"
    )


def test_every_command_prints_json_that_parses(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    built = project.json("build", "first")
    assert built["outcome"] == "written"
    assert built["migration"] == "migrations/app/0001_first.sql"
    assert built["plan"]["statements"][0]["claim"] == "create table public.users"
    assert project.json("build")["outcome"] == "unchanged"
    assert project.json("diff")["statements"] == []
    assert project.json("verify") == {"ok": True, "findings": []}
    assert project.json("new", "more")["template"] == "templates/app/more.sql.j2"
    project.remove("templates/app/more.sql.j2")
    assert project.json("release")["released"] == "migrations/app/0001_first.sql"
    failed = project.run("build", "Bad Name", "--json")
    assert failed.code == 2
    assert json.loads(failed.stdout)["error"]["hint"] == "bad_name"
    assert failed.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_examples(make: MakeProject, name: str) -> None:
    text = make().ok(*name.split(), "--help")
    assert "Examples:" in text
    assert re.search(rf"^\s+pgsluice {name}", text, re.MULTILINE)


def test_demo_leaves_a_project_that_verifies(make: MakeProject) -> None:
    project = make()
    told = project.ok("demo", "shop")
    assert "ada@example.com" in told
    project.ok("-C", "shop", "verify")
    project.ok("-C", "shop", "build")
    project.ok("-C", "shop", "dev", "stop")


def test_empty_schema_is_legal(make: MakeProject) -> None:
    project = make()
    (project.root / "schema/app").mkdir(parents=True)
    project.ok("build", "first")
    assert project.migrations() == []
    project.ok("verify")
    project.ok("diff", "--check")
    project.write("schema/app/users.sql", USERS)
    project.ok("build", "first")
    project.remove("schema/app/users.sql")
    project.ok("build", "--allow-destructive")
    assert project.migrations() == []
    project.ok("verify")
