"""What a build refuses for safety, and that the words it prints are the way on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.client import apply_migration
from tests.conftest import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject
    from tests.e2e.project import Project

USERS: Final = "create table users (\n  user_id bigint primary key,\n  name text,\n  age int\n);\n"
EMAIL_REQUIRED: Final = USERS.replace("age int", "age int,\n  email text not null")
WITHOUT_AGE: Final = USERS.replace(",\n  age int", "")
YEARS: Final = USERS.replace("age int", "years int")
EXTENDS: Final = '{% extends "migration.sql.j2" %}\n{% import "macros.sql.j2" as sql %}\n'
ROW: Final = "insert into users (user_id, name, age) values (1, 'Ada', 36)"


@pytest.fixture
def built(make: MakeProject) -> Project:
    """A project with one closed migration."""
    project = make({"schema/app/users.sql": USERS})
    project.ok("build", "first")
    project.ok("release")
    return project


@pytest.fixture
def embedded(open_server: Callable[[str], DevServer]) -> DevServer:
    """Where migrations are applied."""
    return open_server(EMBEDDED)


def test_not_null_without_a_backfill_prints_a_block_that_works(built: Project, embedded: DevServer) -> None:
    built.write("schema/app/users.sql", EMAIL_REQUIRED)
    said = built.fails(4, "build", "add_email")
    assert said == (
        "error: column public.users.email is not null without a default, "
        "and rows of public.users would get no value\n"
        "  public.users.email text\n"
        "hint: fill it in templates/app/add_email.sql.j2:\n"
        '{% extends "migration.sql.j2" %}\n'
        '{% import "macros.sql.j2" as sql %}\n'
        "{% block backfill %}\n"
        '{{ sql.backfill(table="public.users", set="email = \'\'", where="email is null") }}\n'
        "{% endblock %}\n"
    )
    built.write(*pasted(said))
    built.ok("build", "add_email")
    with embedded.clone(None) as conninfo:
        assert rows_after(conninfo, built, "select name, email from users") == [("Ada", "")]


def test_lost_column_needs_a_word(built: Project) -> None:
    built.write("schema/app/users.sql", WITHOUT_AGE)
    said = built.fails(4, "build", "drop_age")
    assert said.startswith(
        "error: this change loses data\n  column public.users.age and its values\n"
        "    ALTER TABLE public.users DROP COLUMN age\n"
        "hint: --allow-destructive, or say in templates/app/drop_age.sql.j2 that it is meant:\n"
    )
    built.ok("build", "drop_age", "--allow-destructive")
    built.write("templates/app/drop_age.sql.j2", pasted(said)[1])
    built.ok("build")
    assert "-- This loss of data is meant: column public.users.age" in built.newest()
    assert "DROP COLUMN age" in built.newest()


def test_lost_column_stays_refused_when_the_open_migration_is_built_again(built: Project) -> None:
    built.write("schema/app/users.sql", WITHOUT_AGE)
    built.ok("build", "drop_age", "--allow-destructive")
    built.ok("build")
    built.write("schema/app/users.sql", WITHOUT_AGE.replace("name text", "name text,\n  email text"))
    built.fails(4, "build")
    built.ok("build", "--allow-destructive")


def test_suspected_rename_is_refused_even_with_the_flag(built: Project, embedded: DevServer) -> None:
    built.write("schema/app/users.sql", YEARS)
    said = built.fails(4, "build", "years", "--allow-destructive")
    assert "it looks renamed to" in said
    directive = re.search(r"-- pgsluice: renamed from \w+", said)
    assert directive is not None
    built.write("schema/app/users.sql", YEARS.replace("  years", f"  {directive[0]}\n  years"))
    built.ok("build", "years")
    assert "RENAME COLUMN age TO years" in built.newest()
    with embedded.clone(None) as conninfo:
        assert rows_after(conninfo, built, "select name, years from users") == [("Ada", 36)]


def test_suspected_rename_that_is_none_is_said_in_the_template(built: Project) -> None:
    built.write("schema/app/users.sql", YEARS)
    said = built.fails(4, "build", "years")
    assert "--allow-destructive" not in said
    built.write(*pasted(said))
    built.ok("build", "years")
    assert "DROP COLUMN age" in built.newest()


def test_renamed_table_keeps_its_rows(built: Project, embedded: DevServer) -> None:
    built.write(
        "schema/app/users.sql",
        "-- pgsluice: renamed from users\n" + USERS.replace("table users", "table people"),
    )
    built.ok("build", "people")
    with embedded.clone(None) as conninfo:
        assert rows_after(conninfo, built, "select name, age from people") == [("Ada", 36)]


def test_edited_closed_migration_is_refused(built: Project) -> None:
    path = built.migrations()[0]
    path.write_text(path.read_text("utf-8") + "\n-- a word more\n", "utf-8")
    built.write("schema/app/users.sql", WITHOUT_AGE)
    assert built.fails(4, "build", "second", "--allow-destructive").startswith(
        "error: the migrations of target app are not as they were recorded\n"
        "  migrations/app/0001_first.sql was edited after it was recorded\n"
    )


def test_migration_added_out_of_order_is_refused(built: Project) -> None:
    built.write("migrations/app/0000_early.sql", "create table early (x int);\n")
    built.write("schema/app/users.sql", WITHOUT_AGE)
    said = built.fails(4, "build", "second", "--allow-destructive")
    assert "migrations/app/0000_early.sql" in said


def test_block_that_names_a_table_that_is_gone_fails_at_its_line(built: Project) -> None:
    built.write("schema/app/users.sql", USERS.replace("age int", "age int,\n  email text"))
    built.write(
        "templates/app/add_email.sql.j2",
        EXTENDS + "{% block backfill %}\n\nupdate public.people\nset email = '';\n{% endblock %}\n",
    )
    assert built.fails(1, "build", "add_email") == (
        "error: templates/app/add_email.sql.j2:5: "
        "proof of app/add_email failed in block backfill (statement 3 of 3)\n"
        '  relation "public.people" does not exist (SQLSTATE 42P01)\n'
        "  update public.people\n"
        "         ^\n"
        "  set email = ''\n"
        "hint: change block backfill of templates/app/add_email.sql.j2\n"
    )


def test_block_that_changes_what_the_schema_does_not_say_fails(built: Project) -> None:
    built.write(
        "templates/app/more.sql.j2",
        EXTENDS + "{% block install %}\n{{ super() }}\ncreate table public.more (x int);\n{% endblock %}\n",
    )
    said = built.fails(1, "build", "more")
    assert said.startswith("error: proof of app/more failed: the migrated catalog is not the schema's\n")
    assert "public.more: not expected" in said


def test_own_statement_in_prepare_replaces_the_generated_one(built: Project, embedded: DevServer) -> None:
    built.write("schema/app/users.sql", USERS.replace("age int", "age text"))
    built.write(
        "templates/app/age_as_text.sql.j2",
        EXTENDS
        + "{% block prepare %}\n"
        + "alter table public.users alter column age type text using age || ' years';\n"
        + "{{ super() }}\n{% endblock %}\n",
    )
    built.ok("build", "age_as_text")
    assert built.newest().lower().count("alter table") == 1
    with embedded.clone(None) as conninfo:
        assert rows_after(conninfo, built, "select age from users") == [("36 years",)]


def test_template_that_leaves_a_block_without_super_keeps_its_statements(built: Project) -> None:
    built.write("schema/app/users.sql", USERS.replace("age int", "age int,\n  email text"))
    built.write("templates/app/add_email.sql.j2", EXTENDS + "{% block expand %}\nselect 1;\n{% endblock %}\n")
    done = built.run("build", "add_email")
    assert done.code in (1, 2), str(done)
    assert "templates/app/add_email.sql.j2" in done.stderr


def test_new_check_on_rows_that_break_it_is_refused_before_anything(
    built: Project, embedded: DevServer
) -> None:
    built.write(
        "schema/app/users.sql", USERS.replace("age int", "age int,\n  constraint old check (age > 40)")
    )
    built.ok("build", "old_only")
    with embedded.clone(None) as conninfo:
        with pytest.raises(AssertionError, match=r"violate|break|check"):
            rows_after(conninfo, built, "select 1")
        with psycopg.connect(conninfo) as conn:
            assert conn.execute("select name, age from users").fetchall() == [("Ada", 36)]


def pasted(said: str) -> tuple[str, str]:
    """The template's path and the block that a refusal prints, as somebody would paste them."""
    head, _, block = said.partition("hint: ")[2].partition("\n")
    path = re.search(r"templates/\S+\.sql\.j2", head)
    assert path is not None
    return path[0], block


def rows_after(conninfo: str, project: Project, query: str) -> list[tuple[object, ...]]:
    """Apply the first migration, insert a row, apply the others as documented, and query."""
    first, *others = project.migrations()
    apply_migration(conninfo, first)
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(ROW)
        for path in others:
            apply_migration(conninfo, path)
        return conn.execute(query.encode()).fetchall()


def test_hint_with_a_name_that_the_table_never_had_is_bad_input(make: MakeProject) -> None:
    project = make({"schema/app/t.sql": "create table t (curr text, b int);\n"})
    project.ok("build", "first")
    project.write(
        "schema/app/t.sql",
        "create table t (\n  currency text, -- pgsluice: renamed from currr\n  b int\n);\n",
    )
    assert project.fails(2, "build", "second") == (
        "error: schema/app/t.sql:2:18: the hint renames currr to currency, "
        "but public.t has no column currr\n"
        "    currency text, -- pgsluice: renamed from currr\n"
        "                   ^\n"
        "hint: its columns are b, curr\n"
    )
    project.write(
        "schema/app/t.sql",
        "create table t (\n  currency text, -- pgsluice: renamed from curr\n  b int\n);\n",
    )
    project.ok("build", "second")
    project.ok("check")
