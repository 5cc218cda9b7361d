"""Foreign keys that close a circle are split off; all others stay where they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.errors import InputError
from pgsluice.pipeline.sources import load_schema
from pgsluice.pipeline.sources.foreign_keys import split_keys

from .schema import load, order, read

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

KEYS = """
select conname, conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint where contype = 'f'
"""


def test_keys_that_close_no_circle_stay(tmp_path: Path) -> None:
    files = {
        "a.sql": "create table a (id int primary key, b int references b, own int references a);",
        "b.sql": "create table b (id int primary key);",
    }
    assert order(tmp_path, files) == [
        "create table b (id int primary key)",
        "create table a (id int primary key, b int references b, own int references a)",
    ]


def test_one_key_of_a_circle_of_three_is_split_off(tmp_path: Path, server: DevServer) -> None:
    files = {
        f"{one}.sql": f"create table {one} (id int primary key, o int references {other} on delete cascade);"
        for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
    }
    assert order(tmp_path, files) == [
        "create table a (id int primary key, o int )",
        "create table c (id int primary key, o int references a on delete cascade)",
        "create table b (id int primary key, o int references c on delete cascade)",
        "alter table a add foreign key (o) references b on delete cascade",
    ]
    names = {row[2] for row in load(server, read(tmp_path, files)) if row[0] == "constraint"}
    assert {"a_o_fkey", "b_o_fkey", "c_o_fkey"} <= names


def test_a_split_keeps_every_other_byte_of_the_table(tmp_path: Path) -> None:
    table = """create table "My S".a ( -- é, (
  constraint first foreign key ("X") references b (id) match full, -- the first
  "X" int /* , */ not null constraint "C c" references b (id)
    on delete set null deferrable initially deferred default 3,
  y text collate "C" references c check (y <> ','),
  foreign key ("X", y) references d
)"""
    keys = [
        table.index(text)
        for text in ("constraint first", 'constraint "C c"', "references c", 'foreign key ("X", y)')
    ]
    keys = [len(table[:key].encode()) for key in keys]
    rest, split = split_keys(table, keys)
    assert [key.text for key in split] == [
        'alter table "My S".a add constraint first foreign key ("X") references b (id) match full',
        'alter table "My S".a add constraint "C c" foreign key ("X") references b (id)\n'
        "    on delete set null deferrable initially deferred",
        'alter table "My S".a add foreign key (y) references c',
        'alter table "My S".a add foreign key ("X", y) references d',
    ]
    assert len(rest) == len(table)
    assert [line.rstrip() for line in rest.splitlines()] == [
        'create table "My S".a ( -- é, (',
        f"{' ' * 66} -- the first",
        '  "X" int /* , */ not null',
        f"{' ' * 53}default 3,",
        """  y text collate "C"              check (y <> ',')""",
        "",
        ")",
    ]


def test_a_partition_with_nothing_but_a_key_loses_its_parentheses() -> None:
    table = "create table a partition of p (foreign key (x) references b) default"
    rest, (key,) = split_keys(table, [table.index("foreign")])
    assert rest.split() == ["create", "table", "a", "partition", "of", "p", "default"]
    assert key.text == "alter table a add foreign key (x) references b"


def test_nameless_keys_keep_the_names_that_postgresql_would_give(tmp_path: Path, server: DevServer) -> None:
    files = {
        "a.sql": "create table a (id int primary key references c, foreign key (id) references b, "
        "foreign key (id) references d);",
        "b.sql": "create table b (id int primary key references a);",
        "c.sql": "create table c (id int primary key);",
        "d.sql": "create table d (id int primary key);",
    }
    circular = _keys(server, tmp_path, files)
    plain = {**files, "b.sql": "create table b (id int primary key);"}
    straight = _keys(server, tmp_path, plain)
    assert circular == straight | {("b_id_fkey", "b", "FOREIGN KEY (id) REFERENCES a(id)")}


def test_a_table_whose_key_needs_a_constraint_added_later_waits_for_it(
    tmp_path: Path, server: DevServer
) -> None:
    files = {
        "a.sql": "create table a (id int, b int);",
        "b.sql": "create table b (id int primary key, a int references a (id));",
        "c.sql": "alter table a add primary key (id), add foreign key (b) references b;",
    }
    load(server, read(tmp_path, files))


def test_an_error_in_a_split_key_points_at_the_key(tmp_path: Path, server: DevServer) -> None:
    files = {
        "a.sql": "create table a (id int primary key,\n  b int references b (nope));",
        "b.sql": "create table b (id int primary key references a);",
    }
    source = read(tmp_path, files)
    with (
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
        pytest.raises(InputError) as caught,
    ):
        load_schema(conn, source, search_path="public")
    assert str(caught.value) == (
        'schema/a.sql:2:9: column "nope" referenced in foreign key constraint does not exist\n'
        "    b int references b (nope));\n"
        "          ^"
    )


def _keys(server: DevServer, root: Path, files: dict[str, str]) -> set[tuple[object, ...]]:
    source = read(root, files)
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        load_schema(conn, source, search_path="public")
        return set(conn.execute(KEYS).fetchall())
