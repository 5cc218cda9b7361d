"""A migration runs as under psql, and its failures name their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgsluice.errors import FindingError, UnreachableError
from pgsluice.pipeline.proof import run_rendered, seed_rows, validate_functions
from pgsluice.pipeline.statement import Phase, Plan, Statement
from tests.client import apply_migration
from tests.pipeline.templates import HEAD, RenderFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from pgsluice.pipeline.devdb import DevServer

SET_NOT_NULL = Statement(
    "alter table app.users alter column email set not null", "not null app.users.email", Phase.ENFORCE
)


@pytest.fixture
def folder(tmp_path: Path) -> RenderFolder:
    return RenderFolder(tmp_path)


@pytest.fixture
def conninfo(server: DevServer) -> Iterator[str]:
    with server.clone(None) as conninfo:
        yield conninfo


@pytest.fixture
def conn(conninfo: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute("create schema app; create table app.users (user_id int primary key, email text)")
        yield conn


def failure(conninfo: str, folder: RenderFolder, template: str, plan: Plan | None = None) -> FindingError:
    rendered = folder.render(HEAD + template, plan)
    with pytest.raises(FindingError) as caught:
        run_rendered(conninfo, rendered)
    return caught.value


def test_a_migration_is_committed(conn: Connection[Any], conninfo: str, folder: RenderFolder) -> None:
    run_rendered(
        conninfo, folder.block("postflight", "insert into app.users values (1, '%s 100%');\nselect 1;")
    )
    assert conn.execute("select email from app.users").fetchall() == [("%s 100%",)]


def test_a_failed_migration_leaves_nothing(
    conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    failure(
        conninfo,
        folder,
        "{% block backfill %}insert into app.users values (1);\nselect 1 / 0;{% endblock %}",
    )
    assert conn.execute("select count(*) from app.users").fetchone() == (0,)


def test_a_generated_statement_that_fails_names_block_number_and_remedy(
    conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    conn.execute("insert into app.users values (1, null)")
    error = failure(conninfo, folder, "", Plan((SET_NOT_NULL,)))
    assert str(error) == (
        "proof of app/add_email failed in block enforce (statement 2 of 2)\n"
        '  column "email" of relation "users" contains null values (SQLSTATE 23502)\n'
        "  alter table app.users alter column email set not null\n"
        "hint: fill them in block backfill of templates/app/add_email.sql.j2"
    )


def test_a_hand_written_statement_that_fails_names_its_template_line(
    conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    _ = conn
    error = failure(
        conninfo,
        folder,
        "{% block backfill %}\nselect 1;\n\nupdate app.accounts\nset email = '';\n{% endblock %}\n",
    )
    assert str(error) == (
        "templates/app/add_email.sql.j2:6: "
        "proof of app/add_email failed in block backfill (statement 3 of 3)\n"
        '  relation "app.accounts" does not exist (SQLSTATE 42P01)\n'
        "  update app.accounts\n"
        "         ^\n"
        "  set email = ''\n"
        "hint: change block backfill of templates/app/add_email.sql.j2"
    )


def test_a_deferred_constraint_fails_at_commit(
    conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    conn.execute("alter table app.users add unique (email) deferrable initially deferred")
    error = failure(
        conninfo,
        folder,
        "{% block backfill %}insert into app.users values (1, 'x'), (2, 'x');{% endblock %}",
    )
    assert error.message == "proof of app/add_email failed at commit (after statement 2 of 2)"
    assert error.details[1] == "Key (email)=(x) already exists."


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("select set_config('work_mem', '1MB', false);", "setting work_mem"),
        ("do $$ begin create temp table x (a int); end $$;", "temporary table x"),
        ("prepare p as select 1;", "prepared statement p"),
        ("declare c cursor with hold for select 1;", "cursor c"),
        ("listen news;", "listening on news"),
        ("select pg_advisory_lock(1);", "advisory lock"),
    ],
)
def test_session_state_left_behind_is_a_finding(
    conninfo: str, folder: RenderFolder, sql: str, left: str
) -> None:
    error = failure(conninfo, folder, f"{{% block backfill %}}{sql}{{% endblock %}}")
    assert error.message == "proof of app/add_email failed: the migration leaves session state behind"
    assert error.details == (left,)


def test_outside_a_transaction_each_statement_stands_alone(
    conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    error = failure(
        conninfo,
        folder,
        '{% set txmode = "none" %}{% block backfill %}'
        "create index concurrently i on app.users (email);\ndrop table nope;{% endblock %}",
    )
    assert error.message == "proof of app/add_email failed in block backfill (statement 2 of 2)"
    assert conn.execute("select to_regclass('app.i') is not null").fetchone() == (True,)


def test_what_runs_here_runs_the_same_under_psql(
    server: DevServer, conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    setup = "create schema app; create table app.users (user_id int primary key, email text)"
    rendered = folder.block(
        "backfill",
        "insert into app.users values (1, E'a\\\\b;\\'c'), (2, $x$ ; -- $x$); -- é; 'x\n"
        "create function app.f() returns int begin atomic select 1; select 2; end;\n"
        "do $$ begin perform 1; end $$;\n/* ; */ select app.f()",
    )
    run_rendered(conninfo, rendered)
    with server.clone(None) as other:
        with psycopg.connect(other) as there:
            there.execute(setup)
        apply_migration(other, folder.write("migration.sql", rendered.text))
        with psycopg.connect(other) as there:
            query = "select email, app.f() from app.users order by user_id"
            assert there.execute(query).fetchall() == conn.execute(query).fetchall()


def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path, folder: RenderFolder) -> None:
    with pytest.raises(UnreachableError, match="cannot connect"):
        run_rendered(f"host={tmp_path} dbname=x", folder.render())


def test_every_invalid_function_is_named(conn: Connection[Any]) -> None:
    conn.execute("""
        create type app.pair as (a int, b text);
        create function app.widened() returns app.pair language sql as $$ select 1, 'x'::text $$;
        create function app.fine(x anyelement) returns anyelement language plpgsql as 'begin return x; end';
        create function app.on_change() returns trigger language plpgsql as 'begin return new; end';
        create function app.pathed() returns bigint language sql set search_path = app
          as 'select count(*) from users';
        create procedure app.new_body(p int) begin atomic insert into app.users values (p); end;
        alter type app.pair add attribute c int;
        set check_function_bodies = off;
        create function app."Bad"(a int) returns int language plpgsql as 'declare x nope; begin end';
        create function app.unpathed() returns bigint language sql as 'select count(*) from users';
    """)
    with pytest.raises(FindingError) as caught:
        validate_functions(conn, ["app"])
    assert str(caught.value) == (
        "3 functions are invalid\n"
        '  app."Bad"(a integer): type "nope" does not exist\n'
        '  app.unpathed(): relation "users" does not exist\n'
        "  app.widened(): return type mismatch in function declared to return app.pair\n"
        "    Final statement returns too few columns.\n"
        "hint: change them with what they use: they would fail when called"
    )


def test_functions_are_validated_under_the_given_path(conn: Connection[Any]) -> None:
    conn.execute("""
        set check_function_bodies = off;
        create function app.unpathed() returns bigint language sql as 'select count(*) from users';
    """)
    validate_functions(conn, ["*"], search_path="app")
    validate_functions(conn, ["public"])
    with pytest.raises(FindingError, match=r"function app\.unpathed\(\) is invalid"):
        validate_functions(conn, ["*"])
    assert conn.execute("show search_path").fetchone() == ('"$user", public',)


HARD_TABLES = """
create type app.kind as enum ('it''s', 'b');
create type app.pair as (a int, b text);
create domain app.slug as text check (value ~ '^[a-z]+$' and length(value) >= 3);
create domain app.must as app.slug not null;
create table app.parent (
  id bigint generated always as identity primary key, slug app.must, up bigint references app.parent
);
create table app.child (
  parent_id bigint not null references app.parent,
  n int not null check (n > 50 and n < 53),
  kind app.kind, kinds app.kind[] not null,
  pair app.pair not null, json jsonb not null check (jsonb_typeof(json) = 'array'),
  span int4range not null, spans nummultirange not null, bits bit(5) not null, short varchar(2) not null,
  share numeric(3, 2) not null check (share > 0), status text not null check (status in ('queued', 'done')),
  "We""ird Name" text not null, at timestamptz not null default now(),
  twice int generated always as (n * 2) stored, id uuid not null, price money not null,
  primary key (parent_id, n)
);
create table app.parted (id int not null, day date not null, primary key (id, day)) partition by range (day);
create table app.parted_2024 partition of app.parted for values from ('2024-01-01') to ('2025-01-01')
  partition by list (id);
create table app.parted_2024_42 partition of app.parted_2024 for values in (42);
create table app.hashed (id text not null) partition by hash (id);
create table app.hashed_3 partition of app.hashed for values with (modulus 4, remainder 3);
create table app.selfish (id int primary key, up int not null references app.selfish);
create table app.hen (id int primary key, egg int);
create table app.egg (id int primary key, hen int not null references app.hen);
alter table app.hen add foreign key (egg) references app.egg;
create function app.refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end';
create function app.swallow() returns trigger language plpgsql as 'begin return null; end';
create table app.refusing (id int);
create trigger refuse before insert on app.refusing for each row execute function app.refuse();
create table app.swallowing (id int);
create trigger swallow before insert on app.swallowing for each row execute function app.swallow();
create table app.ruled (id int);
create rule forget as on insert to app.ruled do instead nothing;
create table app.pairs (a int not null, b int not null, check (a < b), check (a + b = 11));
create table app.stages (
  id int primary key, status text not null default 'created', created_at timestamptz not null default now(),
  started_at timestamptz, completed_at timestamptz, failed_at timestamptz, skipped_at timestamptz,
  planned int check (planned >= 0), remaining int, output jsonb, reason text,
  constraint known check (status in ('created', 'started', 'completed', 'failed', 'skipped')),
  constraint counted check (status <> 'completed' or remaining = 0),
  constraint counting check (remaining is null or status not in ('created', 'skipped')),
  constraint planned check (status <> 'started' or planned is not null),
  constraint kept check (output is null or status = 'completed'),
  constraint reasoned check ((reason is not null) = (status = 'skipped')),
  constraint ended_once check (num_nonnulls(completed_at, failed_at, skipped_at) <= 1),
  constraint started_later check (started_at is null or started_at >= created_at),
  constraint completed_later check (completed_at is null or completed_at >= started_at),
  constraint failed_later check (failed_at is null or failed_at >= started_at),
  constraint skipped_later check (skipped_at is null or skipped_at >= created_at)
);
create table app.empty ();
create table app."Qu o""te" ("A" int not null);
create table app.filled (id int primary key);
insert into app.filled values (7);
"""
EASY = """
child egg empty filled hashed hashed_3 hen pairs parent parted parted_2024 parted_2024_42 refusing
ruled selfish stages swallowing
"""


def test_a_row_is_made_in_tables_of_every_kind(conn: Connection[Any]) -> None:
    conn.execute(HARD_TABLES)
    tables = [("app", name) for name in (*EASY.split(), 'Qu o"te')]
    result = seed_rows(conn, tables)
    assert result.skipped == ()
    assert result.seeded == tuple(tables)
    for schema, table in tables:
        query = psycopg.sql.SQL("select count(*) from {}").format(psycopg.sql.Identifier(schema, table))
        row = conn.execute(query).fetchone()
        assert row is not None
        assert row[0] >= 1, table
    assert conn.execute("select id from app.filled").fetchall() == [(7,)]
    assert conn.execute("select status, n, twice from app.child").fetchall() == [("queued", 51, 102)]


def test_foreign_keys_hold_for_made_rows(conn: Connection[Any]) -> None:
    conn.execute(HARD_TABLES)
    seed_rows(conn, [("app", "child"), ("app", "egg"), ("app", "hen")])
    assert conn.execute("""
        select count(*) from app.child as c inner join app.parent as p on p.id = c.parent_id
    """).fetchone() == (1,)
    assert conn.execute("""
        select count(*) from app.egg as e inner join app.hen as h on h.id = e.hen
    """).fetchone() == (1,)


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        (
            "create table app.t (id int not null check (id > 5 and id < 3))",
            'new row for relation "t" violates check constraint "t_id_check"',
        ),
        (
            "create table app.t (id text not null) partition by hash (id)",
            'no partition of relation "t" found for row',
        ),
        (
            "create table app.t (id int generated always as identity primary key,"
            " up int not null references app.t)",
            "foreign key t_up_fkey needs a row that refers to itself",
        ),
        (
            "create table app.u (id int primary key, t int not null); create table app.t (id int primary key,"
            " u int not null references app.u); alter table app.u add foreign key (t) references app.t",
            "foreign key t_u_fkey: app.u has no row: foreign key u_t_fkey is part of a cycle",
        ),
        ("create view app.t as select 1", "there is no such table"),
        ("select 1", "there is no such table"),
    ],
)
def test_a_table_that_gets_no_row_is_named_with_the_reason(
    conn: Connection[Any], ddl: str, reason: str
) -> None:
    conn.execute(ddl.encode())
    result = seed_rows(conn, [("app", "t"), ("app", "users")])
    assert [(skipped.schema, skipped.table, skipped.reason) for skipped in result.skipped] == [
        ("app", "t", reason)
    ]
    assert result.seeded == (("app", "users"),)
