"""What a build refuses, and where its inputs are wrong: the whole error of the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tests.errors.command import Folder

USERS: Final = "create table users (\n  user_id bigint primary key,\n  name text,\n  age int\n);\n"
PREPARE: Final = (
    "write this change in block prepare of the migration's template: the plan starts from what it leaves"
)

NOTED: Final = """
create function note() returns event_trigger language plpgsql as $$
begin
  if exists (select from pg_class where oid = to_regclass('public.users')
    and obj_description(oid, 'pg_class') is null) then
    comment on table public.users is 'noted';
  end if;
end
$$;
create event trigger noted on ddl_command_end execute function note();
"""
"""Makes a comment on a table again whenever it is taken away."""


@pytest.fixture
def built(folder: Folder) -> Folder:
    """A project with one closed migration."""
    folder.write("schema/app/users.sql", USERS)
    folder.ok("build", "first")
    folder.ok("release")
    return folder


def test_several_columns_without_a_backfill(built: Folder) -> None:
    built.write(
        "schema/app/users.sql", USERS.replace("age int", "age int, email text not null, n int not null")
    )
    assert built.fails(4, "build", "second") == (
        "error: 2 columns are not null without a default, and rows of their tables would get no value\n"
        "  public.users.email text\n"
        "  public.users.n integer\n"
        "hint: fill them in templates/app/second.sql.j2:\n"
        '{% extends "migration.sql.j2" %}\n'
        '{% import "macros.sql.j2" as sql %}\n'
        "{% block backfill %}\n"
        '{{ sql.backfill(table="public.users", set="email = \'\'", where="email is null") }}\n'
        '{{ sql.backfill(table="public.users", set="n = 0", where="n is null") }}\n'
        "{% endblock %}\n"
    )


def test_several_losses(built: Folder) -> None:
    built.write("schema/app/users.sql", "create table users (user_id bigint primary key);")
    assert built.fails(4, "build", "second") == (
        "error: 2 changes lose data\n"
        "  column public.users.age and its values\n"
        "    ALTER TABLE public.users DROP COLUMN age\n"
        "  column public.users.name and its values\n"
        "    ALTER TABLE public.users DROP COLUMN name\n"
        "hint: --allow-destructive, or say in templates/app/second.sql.j2 that it is meant:\n"
        '{% extends "migration.sql.j2" %}\n'
        '{% import "macros.sql.j2" as sql %}\n'
        "{% block preflight %}\n"
        '{{ sql.accept_loss("column public.users.age and its values") }}\n'
        '{{ sql.accept_loss("column public.users.name and its values") }}\n'
        "{{ super() }}\n"
        "{% endblock %}\n"
    )


def test_a_kind_that_is_not_written(built: Folder) -> None:
    built.write("schema/app/language.sql", "create language other handler plpgsql_call_handler;")
    assert built.fails(4, "build", "second") == (
        "error: 1 changed object(s) are of a kind that cannot be migrated yet\n"
        "  language other\n"
        "hint: write their statements in block prepare of the migration's template; "
        "docs/reference/coverage.md lists the kinds\n"
    )


def test_a_statement_that_the_server_refuses(folder: Folder) -> None:
    folder.write("pgsluice.toml", '[targets.app]\nversioning = "sequence"\nignore = ["public.kept_*"]\n')
    folder.write("schema/app/users.sql", USERS)
    folder.write(
        "templates/app/first.sql.j2",
        '{% extends "migration.sql.j2" %}\n{% block postflight %}\n'
        "create view public.kept_names as select u.name from public.users as u;\n{% endblock %}\n",
    )
    folder.ok("build", "first")
    folder.ok("release")
    folder.write("schema/app/users.sql", USERS.replace("  name text,\n", ""))
    assert folder.fails(4, "build", "second", "--allow-destructive") == (
        "error: cannot migrate: drop column public.users.name is not accepted by the server\n"
        "  ALTER TABLE public.users DROP COLUMN name\n"
        "  the server says: cannot drop column name of table users because other objects depend on it\n"
        "  detail: view kept_names depends on column name of table users\n"
        f"hint: {PREPARE}\n"
    )


def test_a_difference_that_comes_back(folder: Folder) -> None:
    folder.write("schema/app/noted.sql", NOTED)
    folder.ok("build", "first")
    folder.ok("release")
    folder.write("schema/app/users.sql", USERS)
    assert folder.fails(4, "build", "second") == (
        "error: 1 difference(s) cannot be migrated yet\n"
        '  table public.users: comment is "noted", expected the default\n'
        "hint: write their statements in block prepare of the migration's template: "
        "the plan starts from what they leave; docs/reference/coverage.md lists the kinds\n"
    )


def test_changes_that_need_each_other(folder: Folder) -> None:
    folder.write(
        "schema/app/functions.sql",
        "create function f(x int) returns int language sql return 1;\n"
        "create function g(x int default f(1)) returns int language sql return 1;\n"
        "create or replace function f(x int default g(1)) returns int language sql return 1;\n",
    )
    assert folder.fails(4, "build", "first") == (
        "error: these changes need each other, so that no order of statements makes them\n"
        "  create function public.f(integer)\n"
        "  create function public.g(integer)\n"
        "hint: make the change in two migrations, the second one after the first has been built\n"
    )


def test_a_hint_beside_what_cannot_be_renamed(folder: Folder) -> None:
    folder.write("schema/app/hstore.sql", "-- pgsluice: renamed from store\ncreate extension hstore;\n")
    assert folder.fails(2, "build", "first") == (
        "error: schema/app/hstore.sql:1:1: extension hstore cannot be renamed by a hint\n"
        "  -- pgsluice: renamed from store\n"
        "  ^\n"
        "hint: take the hint out: the object is dropped and made anew\n"
    )


def test_a_hint_beside_what_is_gone_in_the_end(folder: Folder) -> None:
    folder.write(
        "schema/app/users.sql",
        f"-- pgsluice: renamed from people\n{USERS}alter table users rename to accounts;\n",
    )
    assert folder.fails(2, "build", "first") == (
        "error: schema/app/users.sql:1:1: the hint renames people to table users, "
        "which the schema does not have\n"
        "  -- pgsluice: renamed from people\n"
        "  ^\n"
        "hint: put the hint directly above the object's own statement, or beside the column\n"
    )


def test_a_template_waits_while_another_migration_is_open(folder: Folder) -> None:
    folder.write("schema/app/users.sql", USERS)
    folder.ok("build", "first")
    folder.write("templates/app/second.sql.j2", '{% extends "migration.sql.j2" %}\n')
    assert folder.fails(2, "build") == (
        "error: templates/app/second.sql.j2 belongs to no migration yet, and 0001_first.sql is open: "
        "which of both is to be built\n"
        "hint: pgsluice build second, or pgsluice build first\n"
    )


def test_a_migration_after_the_open_one(folder: Folder) -> None:
    folder.write("schema/app/users.sql", USERS)
    folder.ok("build", "first")
    folder.write("migrations/app/0002_second.sql", "select 1;\n")
    folder.record()
    assert folder.fails(4, "build") == (
        "error: migrations/app/0002_second.sql comes after the open migration 0001_first.sql\n"
        "hint: pgsluice release, then build the next change under a new name\n"
    )


def test_a_schema_that_was_edited_since(built: Folder) -> None:
    built.write("schema/app/users.sql", USERS.replace("age int", "age int, email text"))
    assert built.fails(1, "diff", "--check") == (
        "error: the migrations of target app do not lead to its schema\nhint: pgsluice build NAME\n"
    )
