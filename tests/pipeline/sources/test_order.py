"""The order of statements: what each needs comes before it, all else stays as written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgsluice.pipeline.sources import read_schema

from .schema import load, order, read, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

# Files named after their objects: every first file needs what only later files define.
BY_OBJECT: dict[str, Mapping[str, str]] = {
    "schema": {"a.sql": "create table z.t ();", "b.sql": "create schema z;"},
    "column types": {
        "a.sql": "create table t (a e, b d[], c r, f other);",
        "b.sql": "create domain d as int check (is_fine(value));",
        "c.sql": "create type e as enum ('x');",
        "d.sql": "create function is_fine(n int) returns boolean immutable language sql as 'select true';",
        "e.sql": "create table other (x int);",
        "h.sql": "create function gauge(a other.x%type) returns setof e language sql as 'select null::e';",
        "f.sql": "create type r as range (subtype = int4, subtype_diff = gap);",
        "g.sql": "create function gap(int, int) returns float8 immutable language sql as 'select 1.0';",
    },
    "defaults, checks, generated": {
        "a.sql": "create table t (a int default f(), b int check (b > g(a)), "
        "c int generated always as (h(b)) stored);",
        "f.sql": "create function f() returns int language sql as 'select 1';",
        "g.sql": "create function g(int) returns int immutable language sql as 'select 1';",
        "h.sql": "create function h(int) returns int immutable language sql as 'select 1';",
    },
    "sequence in a default": {
        "a.sql": "create table t (a int default nextval('app.\"S\"'));",
        "b.sql": 'create schema app; create sequence app."S";',
    },
    "owned sequence": {"a.sql": "create sequence s owned by t.a;", "b.sql": "create table t (a int);"},
    "view over view": {
        "a.sql": "create view a as select * from b;",
        "b.sql": "create view b as select x from c;",
        "c.sql": "create table c (x int);",
    },
    "view of an altered table": {
        "a.sql": "create view a as select added from t;",
        "b.sql": "create table t (); alter table t add column added int;",
    },
    "view of a table altered elsewhere": {
        "a.sql": "create view a as select added from t;",
        "b.sql": "create table t ();",
        "c.sql": "alter table t add column added int;",
    },
    "key of an altered table": {
        "a.sql": "create table a (x int references t (y));",
        "b.sql": "create table t (y int);",
        "c.sql": "alter table t add unique (y);",
    },
    "key of an indexed table": {
        "a.sql": "create table a (x int references t (y));",
        "t.sql": "create table t (y int); create unique index on t (y);",
    },
    "bodies": {
        "a.sql": "create index i on t (a_outer(n));",
        "b.sql": "create function a_outer(t text) returns text immutable language sql "
        "as 'select public.b_inner(t)';",
        "c.sql": "create function b_inner(t text) returns text immutable language sql as 'select lower(t)';",
        "t.sql": "create table t (n text);",
    },
    "bodies behind a view": {
        "a.sql": "create materialized view a as select x from b;",
        "b.sql": "create view b as select f() as x;",
        "f.sql": "create function f() returns bigint language plpgsql as "
        "$$ begin return (select count(*) from public.t); end $$;",
        "t.sql": "create table t ();",
    },
    "parsed bodies": {
        "a.sql": "create function a() returns int begin atomic select b(); end;",
        "b.sql": "create function b() returns int return 1;",
    },
    "overloads": {
        "a.sql": "create view a as select f('x'::text) as x, f(1) as y;",
        "b.sql": "create function f(int) returns int language sql as 'select 1';",
        "c.sql": "create function f(text) returns int return f(1);",
    },
    "overload on the table that uses the other": {
        "a.sql": "create function f(t) returns int language sql as 'select 1';",
        "b.sql": "create function f(int, int default 2) returns int immutable language sql as 'select 1';",
        "t.sql": "create table t (a int check (f(a) > 0));",
    },
    "triggers": {
        "a.sql": "create trigger g after insert on t execute function f();",
        "f.sql": "create function f() returns trigger language plpgsql as 'begin return new; end';",
        "t.sql": "create table t ();",
        "s.sql": "alter table t disable trigger g; comment on trigger g on t is 'x';",
    },
    "policies, rules, statistics": {
        "a.sql": "create policy p on t using (f(x));",
        "b.sql": "create rule r as on insert to t do also insert into log default values;",
        "c.sql": "create statistics s on x, y from t; comment on statistics s is 'x';",
        "f.sql": "create function f(int) returns boolean language sql as 'select true';",
        "log.sql": "create table log (x int);",
        "t.sql": "create table t (x int, y int);",
        "u.sql": "alter policy p on t using (true); comment on policy p on t is 'x';",
    },
    "comments and grants": {
        "a.sql": "comment on column t.x is 'x'; comment on function f(int) is 'f'; "
        "comment on index t_pkey is 'k'; comment on constraint c on t is 'c'; comment on type e is 'e';",
        "b.sql": "grant select (x) on t to some_reader; grant execute on function f to some_reader; "
        "grant usage on type e to some_reader; grant usage on schema app to some_reader; "
        "grant usage on sequence t_y_seq, t_z_seq to some_reader;",
        "e.sql": "create type e as enum ('x');",
        "f.sql": "create function f(int) returns int language sql as 'select 1';",
        "s.sql": "create schema app;",
        "t.sql": "create table t (x int primary key, y serial, "
        "z int generated always as identity, constraint c check (x > 0));",
    },
    "owners": {
        "a.sql": "alter function f owner to some_owner; alter type e owner to some_owner; "
        "alter view v owner to some_owner; alter domain d owner to some_owner;",
        "d.sql": "create domain d as int;",
        "e.sql": "create type e as (x int);",
        "f.sql": "create function f() returns int language sql as 'select 1';",
        "v.sql": "create view v as select 1 as x;",
    },
    "partitions": {
        "a.sql": "create table a partition of p for values from (1) to (2);",
        "b.sql": "alter table p attach partition c for values from (2) to (3);",
        "c.sql": "create table c (x int);",
        "p.sql": "create table p (x int) partition by range (x);",
    },
    "inheritance, like and typed tables": {
        "a.sql": "create table a () inherits (p);",
        "b.sql": "create table b (like p including all);",
        "c.sql": "create table c of kind;",
        "k.sql": "create type kind as (x int);",
        "p.sql": "create table p (x int);",
    },
    "operators": {
        "a.sql": "create view a as select 1 where 'x'::text === 1;",
        "b.sql": "create operator === (leftarg = text, rightarg = int, function = eq);",
        "f.sql": "create function eq(text, int) returns boolean immutable language sql as 'select true';",
    },
    "casts": {
        "a.sql": "create view a as select row(1)::pair::int as x;",
        "c.sql": "create cast (pair as int) with function first(pair);",
        "f.sql": "create function first(p pair) returns int immutable language sql as 'select p.x';",
        "p.sql": "create type pair as (x int);",
    },
    "aggregates": {
        "a.sql": "create view a as select total(x) from (values (1)) as v (x);",
        "b.sql": "create aggregate total(int) (sfunc = plus, stype = int);",
        "p.sql": "create function plus(int, int) returns int immutable language sql as 'select $1 + $2';",
    },
    "collations": {
        "a.sql": "create table a (t text collate plain);",
        "c.sql": "create collation plain (locale = 'C');",
    },
    "text search": {
        "a.sql": "create index i on t (to_tsvector('app_words', x));",
        "b.sql": "create function words(text) returns tsvector immutable language sql as "
        "$$ select to_tsvector('words'::regconfig, $1) $$;",
        "c.sql": "alter text search configuration words drop mapping for word;",
        "d.sql": "create text search configuration words (copy = simple);",
        "e.sql": "create text search configuration app_words (copy = simple);",
        "t.sql": "create table t (x text);",
    },
    "foreign data": {
        "a.sql": "create foreign table a (x int) server s;",
        "m.sql": "create user mapping for current_user server s;",
        "s.sql": "create server s foreign data wrapper w;",
        "w.sql": "create foreign data wrapper w;",
    },
    "publications": {
        "a.sql": "create publication p for table t, tables in schema app;",
        "s.sql": "create schema app;",
        "t.sql": "create table t (x int primary key);",
    },
    "with": {
        "a.sql": "create view a as with b as (select * from b) select * from b;",
        "b.sql": "create table b (x int);",
    },
    "quoted names": {
        "a.sql": 'create view "V.dot" as select "T é".* from "My ""S"""."T é";',
        "b.sql": 'create table "My ""S"""."T é" ("日" int);',
        "c.sql": 'create schema "My ""S""";',
    },
    "index of a cluster and of a replica identity": {
        "a.sql": "alter table t cluster on i; alter table t replica identity using index i;",
        "b.sql": "create unique index i on t (x);",
        "t.sql": "create table t (x int not null);",
    },
    "publication of all tables of a schema": {
        "a.sql": "create publication p; alter publication p add tables in schema s;",
        "b.sql": "create publication q for tables in schema s;",
        "s.sql": "create schema s;",
    },
    "operator class with a family of its name": {
        "a.sql": "create operator family own using hash;"
        "create operator class own for type int using hash family own as operator 1 =, "
        "function 1 hashint4(int);",
        "t.sql": "create table t (x int); create index i on t using hash (x own);",
    },
    "grants on all tables": {
        "a.sql": "grant select on all tables in schema public to some_reader;",
        "t.sql": "create table t ();",
    },
}


@pytest.mark.parametrize("name", BY_OBJECT)
def test_files_named_after_objects_load(name: str, tmp_path: Path, server: DevServer) -> None:
    source = read(tmp_path, BY_OBJECT[name])
    catalog = load(server, source)
    turned = {f"{99 - number}{file}": text for number, (file, text) in enumerate(BY_OBJECT[name].items())}
    (tmp_path / "turned").mkdir()
    assert load(server, read(tmp_path / "turned", turned)) == catalog


def test_a_file_that_loads_as_written_stays_as_written(tmp_path: Path) -> None:
    text = """
    create function early() returns int language sql as $$ select late() from late_table $$;
    create table b (x int);
    create view late_view as select x from b;
    create table a (x int, y int default early());
    alter table b add column z int;
    create function late() returns int language sql as 'select 1';
    create table late_table ();
    comment on table b is 'b';
    create schema later;
    alter default privileges in schema later grant select on tables to public;
    """
    source = read(tmp_path, {"all.sql": text})
    offsets = [statement.offset for statement in source.statements]
    assert offsets == sorted(offsets)


def test_within_a_file_the_written_order_decides_as_far_as_needs_allow(tmp_path: Path) -> None:
    text = "create view v as select x from t; create table z (); create table t (x int); create table y ();"
    assert order(tmp_path, {"a.sql": text}) == [
        "create table t (x int)",
        "create view v as select x from t",
        "create table z ()",
        "create table y ()",
    ]


def test_an_alteration_comes_before_the_users_in_other_files(tmp_path: Path) -> None:
    files = {
        "t.sql": "create table t (x int); create view v as select * from t; alter table t add y int;",
        "a.sql": "create view a as select y from t;",
    }
    texts = order(tmp_path, files)
    table, view, alteration, user = (
        "create table t (x int)",
        "create view v as select * from t",
        "alter table t add y int",
        "create view a as select y from t",
    )
    assert texts[0] == table
    assert texts.index(alteration) < texts.index(user)
    assert sorted(texts) == sorted((table, view, alteration, user))


def test_default_privileges_of_a_file_of_their_own_reach_every_object(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "a.sql": "create table app.a ();",
        "schema.sql": "create schema app;",
        "z.sql": "alter default privileges in schema app grant select on tables to some_reader;",
        "zz.sql": "create table app.b ();",
    }
    source = read(tmp_path, files)
    assert [item.file for item in source.statements][:2] == ["schema/schema.sql", "schema/z.sql"]
    granted = {row[2] for row in load(server, source) if row[0] == "relation" and row[5] is not None}
    assert granted == {"a", "b"}


def test_default_privileges_amid_a_file_reach_what_follows_in_it(tmp_path: Path) -> None:
    text = (
        "create table a (); "
        "alter default privileges grant select on tables to some_reader; "
        "create table b ();"
    )
    assert [item.split()[0:3] for item in order(tmp_path, {"a.sql": text})] == [
        ["create", "table", "a"],
        ["alter", "default", "privileges"],
        ["create", "table", "b"],
    ]


def test_a_partition_is_attached_before_its_own_partitions_are(tmp_path: Path) -> None:
    files = {
        "leaf.sql": "create table leaf (id int not null); alter table only mid attach partition leaf default;"
        "alter table only leaf add constraint leaf_pkey primary key (id);"
        "alter index mid_pkey attach partition leaf_pkey;",
        "mid.sql": "create table mid (id int not null) partition by range (id);"
        "alter table only root attach partition mid default;"
        "alter table only mid add constraint mid_pkey primary key (id);"
        "alter index root_pkey attach partition mid_pkey;",
        "root.sql": "create table root (id int not null) partition by list (id);"
        "alter table root alter column id add generated always as identity;"
        "alter table only root add constraint root_pkey primary key (id);",
    }
    placed = order(tmp_path, files)
    attached = [text for text in placed if text.startswith("alter table only") and " attach " in text]
    assert attached == [
        "alter table only root attach partition mid default",
        "alter table only mid attach partition leaf default",
    ]


def test_a_key_of_a_partitioned_table_is_whole_before_others_refer_to_it(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "items.sql": "create table items (id int);"
        "alter table items add constraint items_fk foreign key (id) references orders;",
        "orders.sql": "create table orders (id int not null) partition by range (id);"
        "alter table only orders add constraint orders_pkey primary key (id);",
        "orders_all.sql": "create table orders_all (id int not null) partition by range (id);"
        "alter table only orders attach partition orders_all default;"
        "alter table only orders_all add constraint orders_all_pkey primary key (id);"
        "alter index orders_pkey attach partition orders_all_pkey;",
        "orders_one.sql": "create table orders_one (id int not null);"
        "alter table only orders_all attach partition orders_one default;"
        "alter table only orders_one add constraint orders_one_pkey primary key (id);"
        "alter index orders_all_pkey attach partition orders_one_pkey;",
    }
    assert order(tmp_path, files)[-1].startswith("alter table items add constraint items_fk")
    load(server, read(tmp_path, files))


def test_event_triggers_of_a_file_of_their_own_come_last(tmp_path: Path, server: DevServer) -> None:
    files = {
        "a.sql": "create event trigger e on ddl_command_end execute function f();",
        "f.sql": "create function f() returns event_trigger language plpgsql as "
        "$$ begin raise exception 'fired'; end $$;",
        "t.sql": "create table t ();",
    }
    source = read(tmp_path, files)
    assert source.statements[-1].file == "schema/a.sql"
    load(server, source)


def test_extensions_come_first(tmp_path: Path) -> None:
    files = {
        "a.sql": "create table a (x some_type);",
        "ext.sql": "create extension some_ext schema app;",
        "s.sql": "create schema app;",
    }
    assert [text.split()[1] for text in order(tmp_path, files)] == ["schema", "extension", "table"]


def test_a_file_with_imperative_statements_keeps_its_order_and_stays_together(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "a.sql": "create table a (x int references c (y));",
        "b.sql": "create table b (x int); insert into b values (1); create table c (y int unique); "
        "set search_path = ''; alter table public.b rename to d;",
        "c.sql": "create view v as select x from d;",
    }
    source = read(tmp_path, files)
    assert [item.file[7] for item in source.statements] == ["b", "b", "b", "b", "b", "a", "c"]
    assert [item.keeps_order for item in source.statements] == [True] * 5 + [False] * 2
    load(server, source)


def test_the_same_schema_may_be_asked_for_in_each_file(tmp_path: Path) -> None:
    files = {
        "a.sql": "create table app.a (); create schema if not exists app;",
        "b.sql": "create schema if not exists app; create table app.b ();",
    }
    assert [text.split()[1] for text in order(tmp_path, files)] == ["schema", "table", "schema", "table"]


def test_a_schema_statement_with_its_elements_defines_them(tmp_path: Path, server: DevServer) -> None:
    files = {
        "a.sql": "create view v as select x from app.t;",
        "b.sql": "create schema app create table t (x int) create view w as select x from t;",
    }
    load(server, read(tmp_path, files))


def test_names_that_others_define_are_not_looked_for(tmp_path: Path) -> None:
    files = {"a.sql": "create view a as select 1 from pgmq.t;", "t.sql": "create table t ();"}
    assert order(tmp_path, files)[0] == "create table t ()"
    source = read_schema(tmp_path / "schema", root=tmp_path, known={"pgmq"})
    assert [item.file for item in source.statements] == ["schema/a.sql", "schema/t.sql"]


def test_views_that_need_each_other_are_refused_with_both_places(tmp_path: Path) -> None:
    files = {
        "a.sql": "create table t ();\ncreate view app.a as select * from app.b;",
        "b.sql": "create view app.b as select * from app.c;",
        "c.sql": "\ncreate view app.c as select * from app.a;",
    }
    assert refusal(tmp_path, files) == (
        "schema/a.sql:2: these statements need each other, so that no order loads them\n"
        "  schema/a.sql:2: view app.a needs view app.b\n"
        "  schema/b.sql:1: view app.b needs view app.c\n"
        "  schema/c.sql:2: view app.c needs view app.a\n"
        "hint: take the use out of one of them, or write it as a statement of its own that comes later"
    )


def test_a_table_and_the_function_of_its_check_that_need_each_other_are_refused(tmp_path: Path) -> None:
    files = {
        "f.sql": "create function f() returns setof t language sql as 'select * from t';",
        "t.sql": "create table t (x int check ((select count(*) from f()) > x));",
    }
    assert refusal(tmp_path, files).splitlines()[1:3] == [
        "  schema/f.sql:1: function f() needs table t",
        "  schema/t.sql:1: table t needs function f()",
    ]


def test_functions_that_call_each_other_in_quoted_bodies_are_no_cycle(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "a.sql": "create function a(n int) returns int immutable language sql as "
        "'select case when n > 0 then public.b(n - 1) else 0 end';",
        "b.sql": "create function b(n int) returns int immutable language plpgsql as "
        "'begin return public.a(n - 1); end';",
        "t.sql": "create table t (x int); create index i on t (a(x));",
    }
    load(server, read(tmp_path, files))


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ("create table app.t ();", "create table app.t ();", "table app.t"),
        ("create view v as select 1 as x;", "create or replace view v as select 2 as x;", "view v"),
        ("create type e as enum ('a');", "create type e as (a int);", "type e"),
        ("create index i on app.t (x);", "create index i on app.u (x);", "index app.i"),
        (
            "create function f(a int, out b int) language sql as 'select 1';",
            "create function f(c integer) returns text language sql as 'select 2';",
            "function f(int4)",
        ),
        (
            "create trigger g after insert on t execute function f();",
            "create trigger g after update on t execute function f();",
            "trigger g on t",
        ),
        ("create policy p on app.t;", "create policy p on app.t;", "policy p on app.t"),
        ("create schema s;", "create schema s;", "schema s"),
        ("create cast (a as b) without function;", "create cast (a as b) without function;", "cast (a as b)"),
    ],
)
def test_an_object_defined_in_two_files_is_refused(
    tmp_path: Path, first: str, second: str, name: str
) -> None:
    assert refusal(tmp_path, {"a.sql": f"\n{first}", "b.sql": second}) == (
        f"schema/b.sql:1: {name} is defined twice\n"
        f"  first defined at schema/a.sql:2: {name}\n"
        "hint: delete one of the two"
    )


def test_overloads_and_same_names_in_other_tables_or_schemas_are_no_repetition(tmp_path: Path) -> None:
    files = {
        "a.sql": "create function f(int) returns int language sql as 'select 1'; create table app.t ();"
        "create trigger g after insert on a execute function f();",
        "b.sql": "create function f(int[]) returns int language sql as 'select 1'; create table app2.t ();"
        "create trigger g after insert on b execute function f();",
    }
    assert len(order(tmp_path, files)) == 6
