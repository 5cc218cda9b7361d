"""Whole schemas, torn into files in any order, load to the same catalog."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgsluice.pipeline.sources import load_schema, read_schema
from tests.client import program

from .schema import load, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.devdb import DevServer

CASES: Final = Path(__file__).parents[2] / "cases"
STATES: Final = sorted(path for name in ("before", "after") for path in CASES.glob(f"[0-9]*/{name}.sql"))
RICH: Final = """
create schema app;
create type app.mood as enum ('sad', 'ok');
create type app.pair as (x int, m app.mood);
create domain app.score as int constraint positive check (app.is_positive(value));
create function app.is_positive(n int) returns boolean immutable language sql as 'select n > 0';
create function app.slug(t text) returns text immutable language sql as 'select app.lowered(t)';
create function app.lowered(t text) returns text immutable language sql as 'select lower(t)';
create function app.label(u app.users) returns text stable language sql as 'select u.name';
create function app.label(p app.posts) returns text stable return app.label(1) || p.title;
create function app.label(n int) returns text immutable return n::text;
create sequence app.numbers;
create table app.users (id bigint generated always as identity primary key, name text not null,
  mood app.mood default 'ok', favourite bigint constraint users_favourite references app.posts (id)) ;
alter table app.users add constraint users_name unique (name);
create table app.posts (id bigint primary key default nextval('app.numbers'), author bigint
  references app.users (id) on delete cascade, title text, best app.score, slug text
  generated always as (app.slug(title)) stored, reply bigint references app.posts (id)) ;
alter table app.posts add column pinned boolean default false;
create table app.events (at date not null, what app.pair) partition by range (at);
create table app.events_2024 partition of app.events for values from ('2024-01-01') to ('2025-01-01');
create table app.badges (name text references app.users (name), owner bigint references app.users);
create unique index posts_slug on app.posts (app.slug(title));
create view app.pinned as select p.id, p.title, p.pinned, u.name from app.posts as p join app.users as u
  on u.id = p.author;
create view app.names as select name from app.pinned;
create materialized view app.counts as select count(*) as n from app.names;
create unique index counts_n on app.counts (n);
create function app.touch() returns trigger language plpgsql as 'begin return new; end';
create trigger touch before update on app.posts for each row execute function app.touch();
alter table app.posts enable row level security;
create policy own on app.posts using (app.is_positive(id::int));
comment on column app.posts.pinned is 'shown first';
comment on view app.names is 'names';
comment on constraint posts_author_fkey on app.posts is 'who wrote it';
create aggregate app.total(int) (sfunc = app.plus, stype = int, initcond = '0');
create function app.plus(int, int) returns int immutable language sql as 'select $1 + $2';
create operator app.=== (leftarg = text, rightarg = int, function = app.same);
create function app.same(text, int) returns boolean immutable language sql as 'select $1 = $2::text';
grant select on app.pinned to some_reader;
grant usage on sequence app.users_id_seq to some_reader;
alter sequence app.numbers owned by app.posts.id;
"""
# A table and the change behind it (` ;`) move together: their order says what the change is for.
PARTS: Final = [part.strip() for part in re.split(r"(?<! );\n", RICH) if part.strip()]


@pytest.fixture(scope="module")
def embedded(open_server: Callable[[str], DevServer]) -> DevServer:
    return open_server("embedded")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(PARTS))), homes=st.lists(st.integers(0, 12), min_size=60, max_size=60))
def test_statements_in_any_order_over_any_files_load_the_same(
    embedded: DevServer, rich_catalog: set[tuple[object, ...]], order: list[int], homes: list[int]
) -> None:
    files: dict[str, str] = {}
    for number in order:
        name = f"{homes[number]}.sql"
        files[name] = f"{files.get(name, '')}{PARTS[number]};\n"
    with TemporaryDirectory() as folder:
        root = Path(folder)
        source = read_schema(write(root, files), root=root)
        assert load(embedded, source) == rich_catalog


@pytest.mark.parametrize("seed", range(3))
def test_the_statements_of_a_dump_load_one_a_file_in_any_order(
    embedded: DevServer, rich_catalog: set[tuple[object, ...]], tmp_path: Path, seed: int
) -> None:
    with embedded.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        rich = read_schema(write(tmp_path, {"a.sql": RICH}), root=tmp_path)
        load_schema(conn, rich, search_path="public")
        conn.commit()
        command = [str(program("pg_dump")), f"--dbname={conninfo}", "--schema-only"]
        dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    whole = read_schema(write(tmp_path, {"a.sql": dump}), root=tmp_path)
    texts = [item.text for item in whole.statements if not item.text.startswith(("SET", "SELECT"))]
    random.Random(seed).shuffle(texts)
    root = tmp_path / "torn"
    root.mkdir()
    torn = write(root, {f"{number:03}.sql": f"{text};" for number, text in enumerate(texts)})
    assert load(embedded, read_schema(torn, root=root)) == rich_catalog


@pytest.fixture(scope="module")
def rich_catalog(embedded: DevServer, tmp_path_factory: pytest.TempPathFactory) -> set[tuple[object, ...]]:
    root = tmp_path_factory.mktemp("rich")
    return load(embedded, read_schema(write(root, {"a.sql": RICH}), root=root))


@pytest.mark.parametrize("path", STATES, ids=[f"{path.parent.name}-{path.stem}" for path in STATES])
def test_the_states_of_every_diff_case_load_as_written_and_shuffled(
    path: Path, tmp_path: Path, open_server: Callable[[str], DevServer]
) -> None:
    server = open_server("embedded")
    source = read_schema(write(tmp_path, {"all.sql": path.read_text()}), root=tmp_path)
    offsets = [statement.offset for statement in source.statements]
    assert offsets == sorted(offsets)
    catalog = load(server, source)
    if any(statement.keeps_order for statement in source.statements):
        return
    texts = [statement.text for statement in source.statements]
    random.Random(path.as_posix()).shuffle(texts)
    root = tmp_path / "shuffled"
    root.mkdir()
    files = {f"{number:03}.sql": f"{text};" for number, text in enumerate(texts)}
    assert load(server, read_schema(write(root, files), root=root)) == catalog
