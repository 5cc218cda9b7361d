"""Our own rules: what each finds, what it must not find, and that PostgreSQL agrees where it can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from psycopg import errors

from pgsluice.pipeline.lint.hazards.locks import LOCK_TABLE, estimate
from pgsluice.pipeline.lint.model import FileKind
from pgsluice.pipeline.lint.script import read_script
from tests.pipeline.lint.linting import OUTSIDE, hazards, rules

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb import DevServer

ADD: Final = "alter type app.state add value 'gone';\n"
POLICY: Final = "create policy own on app.t using (true);\n"
GUARDED: Final = f"create table app.t (id int);\nalter table app.t enable row level security;\n{POLICY}"
INVOKER: Final = "create view app.v with (security_invoker = true) as select 1 as a;\n"
DEFINER: Final = (
    "create function app.f() returns int language sql security definer set search_path = '' "
    "as $$ select 1 $$;\n"
)
UNPINNED: Final = DEFINER.replace("set search_path = '' ", "")
LOCKS_HELD: Final = """
select count(distinct l.relation) from pg_locks as l
where l.pid = pg_backend_pid() and l.relation >= 16384
"""

FOUND: Final = {
    "a value used after it was added": (
        f"{ADD}update app.orders set state = 'gone' where id = 1;",
        ["2 enum-value-used"],
    ),
    "a value used in a cast": (f"{ADD}select 'gone'::app.state;", ["2 enum-value-used"]),
    "a value used in a default": (
        f"{ADD}alter table app.orders alter column state set default 'gone';",
        ["2 enum-value-used"],
    ),
    "a value used in code that runs at once": (
        f"{ADD}do $$ begin update app.orders set state = 'gone'; end $$;",
        ["2 enum-value-used"],
    ),
    "begin and commit": (
        "begin;\nselect 1;\ncommit;",
        ["1 transaction-control", "3 transaction-control"],
    ),
    "an index built concurrently": (
        "create index concurrently i on app.t (a);",
        ["1 cannot-run-in-transaction"],
    ),
    "an index dropped concurrently": (
        "drop index concurrently app.i;",
        ["1 cannot-run-in-transaction"],
    ),
    "a partition detached concurrently": (
        "alter table app.t detach partition app.p concurrently;",
        ["1 cannot-run-in-transaction"],
    ),
    "a vacuum": ("vacuum app.t;", ["1 cannot-run-in-transaction"]),
    "a setting of the session": (
        "set lock_timeout = '1s';\nreset lock_timeout;",
        ["1 set-without-local", "2 set-without-local"],
    ),
    "a local setting outside of a transaction": (
        f"{OUTSIDE}set local lock_timeout = '1s';",
        ["3 set-local-outside-transaction"],
    ),
    "the directive without an empty line": (
        "-- atlas:txmode none\nselect 1;",
        ["1 txmode-directive"],
    ),
    "the directive in another line": (
        "-- a remark\n-- atlas:txmode none\n\nselect 1;",
        ["2 txmode-directive"],
    ),
    "the directive misspelled": (
        "-- atlas:txmode  None\n\nselect 1;",
        ["1 txmode-directive"],
    ),
    "names without a schema": (
        "create table t (id int);\ninsert into t select * from app.u, v;",
        ["1 unqualified-name", "2 unqualified-name"],
    ),
    "a drop of a name without a schema": ("drop function f(int);", ["1 unqualified-name"]),
    "cascades": (
        "drop table app.t cascade;\ntruncate app.u cascade;\nalter table app.v drop column a cascade;",
        ["1 drop-cascade", "2 drop-cascade", "3 drop-cascade"],
    ),
    "a function with its owner's rights and no path": (
        DEFINER.replace("set search_path = '' ", ""),
        ["1 security-definer-path"],
    ),
    "a path that holds a schema of the caller's": (
        DEFINER.replace("''", '"$user", public'),
        ["1 security-definer-path"],
    ),
    "a path taken away": (
        f"{DEFINER}alter function app.f() reset search_path;",
        ["2 security-definer-path"],
    ),
    "all settings of an unknown function taken away": (
        "alter function app.g() reset all;",
        ["1 security-definer-path"],
    ),
    "rights given to a function without a path": (
        "alter function app.g() security definer;",
        ["1 security-definer-path"],
    ),
    "row security switched off": (
        "alter table app.t disable row level security, no force row level security;",
        ["1 row-security-lost", "1 row-security-lost"],
    ),
    "grants to everybody": (
        "grant select on app.t to public;\ngrant insert on app.t to joe, public;\n"
        "alter default privileges in schema app grant select on tables to public;",
        ["1 grant-to-public", "2 dangerous-grant-to-public", "3 dangerous-grant-to-public"],
    ),
    "a function with its owner's rights for everybody": (
        f"{DEFINER}grant execute on function app.f() to public;",
        ["2 dangerous-grant-to-public"],
    ),
    "all functions of a schema for everybody": (
        f"{DEFINER}grant execute on all functions in schema app, b to public;",
        ["2 dangerous-grant-to-public"],
    ),
    "an overload without a path beside one with a path": (
        f"{UNPINNED}{DEFINER.replace('f()', 'f(a text)')}",
        ["1 security-definer-path"],
    ),
    "an overload without a path beside one with its caller's rights": (
        f"{UNPINNED}create function app.f(a text) returns int language sql as 'select 1';",
        ["1 security-definer-path"],
    ),
    "a path pinned for another overload": (
        f"{UNPINNED}create function app.f(a text) returns int language sql as 'select 1';\n"
        "alter function app.f(text) set search_path = '';",
        ["1 security-definer-path"],
    ),
    "a function without a path under another name": (
        f"{UNPINNED}alter function app.f() rename to g;\nalter function app.g() set schema b;",
        ["1 security-definer-path"],
    ),
    "a setting of the session by a call": (
        "select pg_catalog.set_config('search_path', '', false);",
        ["1 set-without-local"],
    ),
    "a subscription": (
        "create subscription s connection 'host=x' publication p;\n"
        "alter subscription s refresh publication;\nalter subscription s add publication q;",
        ["1 cannot-run-in-transaction", "2 cannot-run-in-transaction", "3 cannot-run-in-transaction"],
    ),
    "names without a schema beside tables": (
        "comment on table t is 'x';\nalter type st owner to joe;\nalter function f(int) stable;\n"
        "alter function f(int) rename to g;",
        ["1 unqualified-name", "2 unqualified-name", "3 unqualified-name", "4 unqualified-name"],
    ),
}

NOT_FOUND: Final = {
    "a value of a type that is new": (
        "create type app.state as enum ('a');\n"
        f"{ADD}create table app.t (s app.state default 'gone'::app.state);"
    ),
    "a value that only a function's text names": (
        f"{ADD}create function app.f() returns text language sql as $$ select 'gone' $$;"
    ),
    "a value in a comment": f"{ADD}comment on type app.state is 'gone';",
    "a value used outside of a transaction": f"{OUTSIDE}{ADD}select 'gone'::app.state;",
    "a renamed value": "alter type app.state rename value 'a' to 'b';\nselect 'b'::app.state;",
    "an index built concurrently outside of a transaction": (
        f"{OUTSIDE}create index concurrently i on app.t (a);"
    ),
    "a materialized view refreshed concurrently": "refresh materialized view concurrently app.m;",
    "local settings": "set local lock_timeout = '1s';\nset transaction isolation level serializable;",
    "the directive as it must be": f"{OUTSIDE}select 1;",
    "the directive for a file in one transaction": "-- atlas:txmode file\n\nselect 1;",
    "the directive as text": "comment on table app.t is '\n-- atlas:txmode none';",
    "a name of the query's own": "with c as (select 1 as a) insert into app.t select c.a from c;",
    "a temporary table": (
        "create temp table old on commit drop as select 1 as a;\ninsert into app.t select a from old;"
    ),
    "the catalog": "select 1 from pg_class;",
    "a path pinned later in the file": (
        DEFINER.replace("set search_path = '' ", "") + "alter function app.f() set search_path = '';"
    ),
    "a body whose names are bound already": (
        "create function app.h() returns int language sql security definer begin atomic select 1; end;"
    ),
    "a path taken from a function with its caller's rights": (
        "create function app.f() returns int language sql set search_path = '' as 'select 1';\n"
        "alter function app.f() reset search_path;"
    ),
    "row security off for a while": (
        "alter table app.t disable row level security;\nupdate app.t set a = 1;\n"
        "alter table app.t enable row level security;"
    ),
    "a view that keeps its caller's rights": f"{INVOKER}drop view app.v;\n{INVOKER}",
    "a path pinned later for types spelled otherwise": (
        "create function app.f(a integer, b app.state[], out c int) returns int language sql "
        "security definer as 'select 1';\n"
        "create function app.f() returns int language sql as 'select 1';\n"
        "alter function app.f(int4, state[]) set search_path = '';"
    ),
    "a path pinned later for a name with a schema": (
        UNPINNED.replace("app.f", "public.f") + "alter function public.f set search_path = '';"
    ),
    "a function dropped again": f"{UNPINNED}drop function app.f();",
    "all functions of a schema without owner's rights": (
        "create function app.f() returns int language sql as 'select 1';\n"
        "grant execute on all functions in schema app to reader;"
    ),
    "names of the query that rows are locked by": (
        "select 1 from app.t for update of t;\nselect 1 from app.u as x for share of x skip locked;"
    ),
    "a setting of the transaction by a call": (
        "select pg_catalog.set_config('search_path', '', true), current_setting('x', false);"
    ),
    "a subscription without a slot": (
        "create subscription s connection 'host=x' publication p with (connect = false);\n"
        "alter subscription s set publication p with (refresh = false);\nalter subscription s disable;"
    ),
    "names that have no schema": (
        "comment on schema app is 'x';\ncomment on role joe is 'x';\nalter schema app owner to joe;\n"
        "comment on column app.t.a is 'x';\ncomment on function app.f(int) is 'x';"
    ),
    "grants to roles": "grant select on app.t to joe;\nrevoke all on app.t from public;",
}


@pytest.mark.parametrize("case", FOUND)
def test_a_hazard_is_found_where_it_stands(case: str) -> None:
    sql, expected = FOUND[case]
    assert rules(hazards(sql)) == expected


@pytest.mark.parametrize("case", NOT_FOUND)
def test_what_is_safe_is_no_hazard(case: str) -> None:
    assert rules(hazards(NOT_FOUND[case])) == []


def test_every_hazard_says_what_and_what_to_do() -> None:
    (finding,) = hazards(FOUND["a value used in a cast"][0])
    assert finding.message == "'gone' is used in the transaction that adds it to app.state"
    assert finding.recipe == "add the value in a migration of its own, and use it in the next one"


@pytest.mark.parametrize(
    ("now", "lost"),
    [
        ("create or replace view app.v as select 2 as a;", True),
        ("drop view app.v;\ncreate view app.v as select 2 as a;", True),
        ("alter view app.v reset (security_invoker);", True),
        ("alter view app.v set (security_invoker = off);", True),
        (
            "create view app.w as select 2 as a;\ndrop view app.v;\nalter view app.w rename to v;",
            True,
        ),
        ("create or replace view app.v with (security_invoker) as select 2 as a;", False),
        (
            "create or replace view app.v as select 2 as a;\nalter view app.v set (security_invoker = true);",
            False,
        ),
        ("drop view app.v;", False),
        ("create view app.other as select 2 as a;", False),
    ],
)
def test_a_view_of_the_history_that_loses_its_callers_rights(now: str, *, lost: bool) -> None:
    found = [finding.rule for finding in hazards(now, before=[INVOKER])]
    assert found == (["security-invoker-lost"] if lost else [])


@pytest.mark.parametrize(
    ("moved", "name"),
    [
        ("alter view app.v rename to w;", "app.w"),
        ("alter view app.v set schema b;", "b.v"),
        ("alter schema app rename to b;", "b.v"),
    ],
)
def test_a_view_keeps_its_callers_rights_under_another_name(moved: str, name: str) -> None:
    (finding,) = hazards(f"create or replace view {name} as select 2 as a;", before=[INVOKER, moved])
    assert finding.message == f"view {name} had security_invoker and loses it"
    assert hazards(moved, before=[INVOKER]) == []


def test_rights_given_up_earlier_are_not_lost_again() -> None:
    given_up = "create or replace view app.v as select 2 as a;"
    assert hazards("create or replace view app.v as select 3 as a;", before=[INVOKER, given_up]) == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("drop policy own on app.t;", ["no-policy-left"]),
        ("drop policy own on app.t;\ncreate policy other on app.t using (true);", []),
        ("drop policy own on app.t;\ndrop table app.t;", []),
        ("drop table app.t;\ncreate table app.t (id bigint);", ["row-security-lost"]),
        (
            "create table app.n (id bigint);\ndrop table app.t;\nalter table app.n rename to t;",
            ["row-security-lost"],
        ),
        (
            "create table app.n (id bigint);\nalter table app.t rename to o;\nalter table app.n rename to t;",
            ["row-security-lost"],
        ),
        ("alter table app.t rename to o;", []),
        ("alter table app.t set schema b;\ndrop policy own on b.t;", ["no-policy-left"]),
        ("alter policy own on app.t rename to other;\ndrop policy other on app.t;", ["no-policy-left"]),
        (f"alter policy own on app.t rename to other;\n{POLICY}drop policy other on app.t;", []),
        (
            "drop table app.t;\ncreate table app.t (id bigint);\n"
            f"alter table app.t enable row level security;\n{POLICY}",
            [],
        ),
    ],
)
def test_a_table_of_the_history_that_loses_its_guard(now: str, expected: list[str]) -> None:
    assert [finding.rule for finding in hazards(now, before=[GUARDED])] == expected


@pytest.mark.parametrize(
    ("moved", "name"),
    [
        ("alter table app.t rename to o;", "app.o"),
        ("alter table app.t set schema b;", "b.t"),
        ("alter schema app rename to b;", "b.t"),
    ],
)
def test_a_table_keeps_its_guard_under_another_name(moved: str, name: str) -> None:
    before = [GUARDED, moved]
    assert rules(hazards(f"drop policy own on {name};", before=before)) == ["1 no-policy-left"]
    assert hazards("create table app.t (id int);\ncreate table app.n (id int);", before=before) == []


def test_a_function_that_has_its_callers_rights_by_now_may_be_granted() -> None:
    replaced = "create or replace function app.f() returns int language sql as 'select 1';"
    grant = "grant execute on function app.f() to public;"
    assert rules(hazards(grant, before=[DEFINER, replaced])) == ["1 grant-to-public"]


def test_schema_files_are_asked_for_paths_and_grants_alone() -> None:
    sql = "create table t (id int);\n" + DEFINER.replace("set search_path = '' ", "")
    assert rules(hazards(sql, kind=FileKind.SCHEMA)) == ["2 security-definer-path"]
    grant = "grant execute on function app.f() to public;"
    assert rules(hazards(grant, kind=FileKind.SCHEMA, before=[DEFINER])) == ["1 dangerous-grant-to-public"]


def test_more_locks_than_the_lock_table_holds() -> None:
    tables = [f"create table app.t{n} (id bigint primary key, x text);" for n in range(LOCK_TABLE // 4)]
    assert hazards("\n".join(tables)) == []
    (finding,) = hazards("\n".join([*tables, "create view app.v as select 1 as a;"]))
    assert finding.message == "about 6401 locks in one transaction; here it passes 6400"
    assert rules([finding]) == ["1601 too-many-locks"]


@pytest.mark.parametrize(
    "sql",
    [
        "create table lk.a (id bigint primary key, x text)",
        "create table lk.a (id bigint generated always as identity primary key, x text unique)",
        "create table lk.a (id int, x uuid)",
        "drop table lk.old",
        "alter table lk.old add column z int",
        "create index on lk.old (x)",
        "create view lk.v as select o.id from lk.old as o",
    ],
)
def test_the_estimate_of_locks_is_what_postgres_holds(server: DevServer, sql: str) -> None:
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        conn.execute("create schema lk")
        conn.execute("create table lk.old (id bigint primary key, x text)")
        conn.commit()
        conn.execute(sql.encode())
        held = conn.execute(LOCKS_HELD).fetchone()
    assert held == (estimate(read_script("now.sql", sql).statements),)


@pytest.mark.parametrize(
    "sql",
    [
        "create index concurrently i on lk.t (a)",
        "drop index concurrently lk.i",
        "reindex table concurrently lk.t",
        "vacuum lk.t",
        "create database lk",
        "alter system set work_mem = '4MB'",
        "reindex schema lk",
    ],
)
def test_postgres_refuses_in_a_transaction_what_the_rule_says(server: DevServer, sql: str) -> None:
    assert "1 cannot-run-in-transaction" in rules(hazards(sql))
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        conn.execute("create schema lk")
        conn.execute("create table lk.t (a int)")
        with pytest.raises(errors.ActiveSqlTransaction):
            conn.execute(sql.encode())


def test_postgres_refuses_the_enum_value_that_the_rule_finds(server: DevServer) -> None:
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        conn.execute("create schema app")
        conn.execute("create type app.state as enum ('new')")
        conn.commit()
        conn.execute(ADD.encode())
        with pytest.raises(errors.UnsafeNewEnumValueUsage):
            conn.execute("select 'gone'::app.state")
