"""Loading into a server: what is set while loading, and how each refusal points into a file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.rows import dict_row

from pgsluice.errors import ExitCode, InputError, UnreachableError
from pgsluice.pipeline.sources import load_schema

from .schema import load, load_refusal, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.sources import SchemaSource


def test_names_without_a_schema_go_to_the_search_path(tmp_path: Path, server: DevServer) -> None:
    source = read(tmp_path, {"a.sql": "create table t (); create schema app;"})
    catalog = load(server, source, search_path="public")
    assert ("relation", "public", "t", "r", None, None) in catalog
    files = {"b.sql": "create table u ();", "s.sql": 'create schema "My ""App""";'}
    (tmp_path / "two").mkdir()
    catalog = load(server, read(tmp_path / "two", files), search_path='My "App"')
    assert ("relation", 'My "App"', "u", "r", None, None) in catalog


def test_a_file_that_changes_settings_does_not_change_them_for_others(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "a.sql": "create schema app; set search_path = app; set check_function_bodies = on; "
        "create table t ();",
        "b.sql": "create table u (); create function f() returns int language sql as 'select nope()';",
    }
    catalog = load(server, read(tmp_path, files))
    assert ("relation", "app", "t", "r", None, None) in catalog
    assert ("relation", "public", "u", "r", None, None) in catalog


def test_nothing_of_the_settings_stays_behind(tmp_path: Path, server: DevServer) -> None:
    source = read(tmp_path, {"a.sql": "create schema app; create table t ();"})
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        before = conn.execute("select current_setting('search_path')").fetchone()
        conn.commit()
        load_schema(conn, source, search_path="app")
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert conn.execute("select current_setting('search_path')").fetchone() == before


def test_an_empty_schema_loads(tmp_path: Path, server: DevServer) -> None:
    load(server, read(tmp_path, {}))


def test_missing_roles_are_created_without_login(tmp_path: Path, server: DevServer) -> None:
    role = f'Röle "{os.getpid()}"'
    quoted = role.replace('"', '""')
    source = read(tmp_path, {"a.sql": f'create table t (); grant select on t to "{quoted}", current_user;'})
    with server.clone(None) as conninfo, psycopg.connect(conninfo, row_factory=dict_row) as conn:
        load_schema(conn, source, search_path="public")
        query = "select rolcanlogin from pg_roles where rolname = %s"
        assert conn.execute(query, [role]).fetchall() == [{"rolcanlogin": False}]
        conn.rollback()
        conn.execute(f'drop owned by "{quoted}"'.encode())
        conn.execute(f'drop role "{quoted}"'.encode())


def test_two_loads_that_need_the_same_new_role_both_succeed(tmp_path: Path, server: DevServer) -> None:
    role = f"shared_{os.getpid()}"
    source = read(tmp_path, {"a.sql": f"create table t (); alter table t owner to {role};"})
    barrier = Barrier(2, timeout=30)

    def run() -> None:
        with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
            barrier.wait()
            load_schema(conn, source, search_path="public")

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(run), pool.submit(run)]:
            done.result(timeout=60)


OF_SUPERUSERS = (
    "create function f() returns event_trigger language plpgsql as $$ begin end $$;"
    "create event trigger e on ddl_command_end execute function f(); alter event trigger e owner to {role};"
    "create foreign data wrapper w; alter foreign data wrapper w owner to {role};"
    "create publication p; alter publication p owner to {role};"
)


def test_a_role_that_stands_in_for_a_superuser_is_one(tmp_path: Path, server: DevServer) -> None:
    with server.clone(None) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        role = f"stands_in_{os.getpid()}"
        conn.execute(f"create role {role} nologin".encode())  # as an earlier load has made it
        source = read(tmp_path, {"a.sql": OF_SUPERUSERS.format(role=role)})
        load_schema(conn, source, search_path="public")
        owner = "select rolname, rolcanlogin from pg_event_trigger join pg_roles r on evtowner = r.oid"
        assert conn.execute(owner).fetchall() == [(role, False)]


def test_a_role_that_somebody_can_use_is_not_made_a_superuser(tmp_path: Path, server: DevServer) -> None:
    role = f"is_used_{os.getpid()}"
    source = read(tmp_path, {"a.sql": OF_SUPERUSERS.format(role=role)})
    with server.clone(None) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(f"create role {role} nologin; create role user_of_{role} in role {role}".encode())
        with pytest.raises(UnreachableError, match="permission denied to change owner of event trigger"):
            load_schema(conn, source, search_path="public")


def test_a_role_that_cannot_be_made_is_refused(tmp_path: Path, server: DevServer) -> None:
    source = read(tmp_path, {"a.sql": "create table t ();\nalter table t owner to pg_nobody;"})
    assert str(load_refusal(server, source)) == (
        'schema/a.sql:2: role "pg_nobody" cannot be created on the dev server\n'
        '  role name "pg_nobody" is reserved'
    )


def test_a_large_schema_loads_in_batches_and_errors_still_point_at_their_line(
    tmp_path: Path, server: DevServer
) -> None:
    tables = "".join(f"create table t{number} (é int);\n" for number in range(1, 1202))
    source = read(tmp_path, {"a.sql": f"{tables}create view v as select 'é', nope from t1;\n"})
    assert str(load_refusal(server, source)) == (
        'schema/a.sql:1202:30: column "nope" does not exist\n'
        "  create view v as select 'é', nope from t1;\n"
        "                               ^"
    )


def _message(server: DevServer, source: SchemaSource) -> str:
    error = load_refusal(server, source)
    assert isinstance(error, InputError)
    return str(error)


def test_an_unresolved_table_names_its_place_and_the_nearest_name(tmp_path: Path, server: DevServer) -> None:
    files = {
        "tables/users.sql": "create schema app;\ncreate table app.users (id int primary key, name text);",
        "views/v.sql": "create view app.v as\n  select 'é日', u.name\n  from app.usres as u;",
    }
    assert _message(server, read(tmp_path, files)) == (
        'schema/views/v.sql:3:8: relation "app.usres" does not exist\n'
        "    from app.usres as u;\n"
        "         ^\n"
        "hint: did you mean table app.users (schema/tables/users.sql:2)?"
    )


def test_an_unresolved_table_of_a_key_is_found_though_the_server_gives_no_place(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "a.sql": "create table é (\n  id int,\n  u int references userz (id)\n);\ncreate table users ();"
    }
    assert _message(server, read(tmp_path, files)) == (
        'schema/a.sql:3:20: relation "userz" does not exist\n'
        "    u int references userz (id)\n"
        "                     ^\n"
        "hint: did you mean table users (schema/a.sql:5)?"
    )


def test_an_unresolved_type_and_schema_are_refused(tmp_path: Path, server: DevServer) -> None:
    files = {"a.sql": "create type mood as enum ('a');", "b.sql": "create table t (\n  m mod\n);"}
    assert _message(server, read(tmp_path, files)) == (
        'schema/b.sql:2:5: type "mod" does not exist\n'
        "    m mod\n"
        "      ^\n"
        "hint: did you mean type mood (schema/a.sql:1)?"
    )
    (tmp_path / "two").mkdir()
    files = {"a.sql": "create schema app;", "b.sql": "\ncreate table ap.t ();"}
    assert _message(server, read(tmp_path / "two", files)) == (
        'schema/b.sql:2:14: schema "ap" does not exist\n'
        "  create table ap.t ();\n"
        "               ^\n"
        "hint: did you mean schema app (schema/a.sql:1)?"
    )


def test_an_unresolved_function_is_refused(tmp_path: Path, server: DevServer) -> None:
    files = {
        "f.sql": "create function slug(t text) returns text immutable language sql as 'select t';",
        "t.sql": "create table t (n text,\n  check (slugg(n) <> ''));",
    }
    assert _message(server, read(tmp_path, files)) == (
        "schema/t.sql:2:10: function slugg(text) does not exist\n"
        "    check (slugg(n) <> ''));\n"
        "           ^\n"
        "hint: did you mean function slug(text) (schema/f.sql:1)?"
    )


def test_an_object_that_another_file_defines_without_its_schema_is_refused(
    tmp_path: Path, server: DevServer
) -> None:
    files = {"a.sql": "create table t ();", "b.sql": "\n\ncreate table public.t ();"}
    assert _message(server, read(tmp_path, files)) == (
        'schema/b.sql:3: relation "t" already exists\n'
        "  first defined at schema/a.sql:1: table t\n"
        "hint: delete one of the two"
    )


def test_an_error_without_any_position_has_the_statements_line(tmp_path: Path, server: DevServer) -> None:
    text = "create table a (x int);\n\n  alter table a\n  drop constraint nope;"
    assert _message(server, read(tmp_path, {"a.sql": text})) == (
        'schema/a.sql:3: constraint "nope" of relation "a" does not exist'
    )


def test_detail_and_hint_of_the_server_are_passed_on(tmp_path: Path, server: DevServer) -> None:
    text = "create table a (x int primary key);\ninsert into a values (1);\ninsert into a values (1);"
    assert _message(server, read(tmp_path, {"a.sql": text})) == (
        'schema/a.sql:3: duplicate key value violates unique constraint "a_pkey"\n'
        "  Key (x)=(1) already exists."
    )


def test_an_error_inside_a_block_shows_its_query(tmp_path: Path, server: DevServer) -> None:
    text = "create table a ();\ndo $$\nbegin\n  perform 1 from nope;\nend $$;"
    assert _message(server, read(tmp_path, {"a.sql": text})) == (
        'schema/a.sql:2: relation "nope" does not exist\n'
        "  PL/pgSQL function inline_code_block line 3 at PERFORM\n"
        "  in the query: SELECT 1 from nope"
    )


def test_a_deferred_constraint_is_checked_before_the_end(tmp_path: Path, server: DevServer) -> None:
    text = (
        "create table a (x int primary key);"
        "create table b (x int references a deferrable initially deferred); insert into b values (1);"
    )
    assert _message(server, read(tmp_path, {"a.sql": text})) == (
        "the schema does not load: "
        'insert or update on table "b" violates foreign key constraint "b_x_fkey"\n'
        '  Key (x)=(1) is not present in table "a".'
    )


def test_windows_line_ends_do_not_shift_places(tmp_path: Path, server: DevServer) -> None:
    text = "create table t (\r\n  x int\r\n);\r\ncreate view v as\r\n  select y from t;\r\n"
    assert _message(server, read(tmp_path, {"a.sql": text})) == (
        'schema/a.sql:5:10: column "y" does not exist\n    select y from t;\n           ^'
    )


def test_an_extension_that_the_server_lacks_names_the_setting(
    tmp_path: Path, open_server: Callable[[str], DevServer]
) -> None:
    embedded = open_server("embedded")
    source = read(tmp_path, {"a.sql": 'create schema app;\ncreate extension "uuid-ossp" schema app;'})
    assert _message(embedded, source) == (
        'schema/a.sql:2: the dev server has no extension "uuid-ossp"\n'
        'hint: set dev to a server that has it, such as dev = "local:/usr/lib/postgresql/17/bin", '
        'or dev = "postgresql://..."'
    )
    (tmp_path / "icu").mkdir()
    text = "create collation c (provider = icu, locale = 'en');"
    assert _message(embedded, read(tmp_path / "icu", {"a.sql": text})).splitlines() == [
        "schema/a.sql:1: ICU is not supported in this build",
        'hint: set dev to a server that has it, such as dev = "local:/usr/lib/postgresql/17/bin", '
        'or dev = "postgresql://..."',
    ]


def test_a_server_that_refuses_rights_is_no_fault_of_the_input(tmp_path: Path, server: DevServer) -> None:
    role = f"plain_{os.getpid()}"
    source = read(
        tmp_path, {"a.sql": "create table t ();\ncreate event trigger e on sql_drop execute function f();"}
    )
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        conn.execute(f"create role {role}".encode())
        conn.execute(f"grant all on schema public to {role}".encode())
        conn.execute(f"set role {role}".encode())
        with pytest.raises(UnreachableError) as caught:
            load_schema(conn, source, search_path="public")
        conn.rollback()
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert str(caught.value) == (
        'schema/a.sql:2: permission denied to create event trigger "e"\n'
        "hint: Must be superuser to create an event trigger."
    )


def test_a_server_that_goes_away_is_told(tmp_path: Path, server: DevServer) -> None:
    source = read(tmp_path, {"a.sql": "select pg_terminate_backend(pg_backend_pid());"})
    with server.clone(None) as conninfo:
        conn = psycopg.connect(conninfo)
        with pytest.raises(UnreachableError):
            load_schema(conn, source, search_path="public")
        conn.close()
