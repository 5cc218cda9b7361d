"""Names and bodies that quoting, psycopg and Jinja could trip over, in every kind of object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.client import apply_migration
from tests.conftest import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject

NAMES: Final = (
    "Mixed Case",
    "select",
    "naïve 表",
    'qu"ote',
    "sin'gle",
    "back\\slash",
    "per%cent %s %(x)s",
    "co:lon :x ::y",
    "{{ braces }}",
    "{% raw %}",
    "{# comment #}",
    "$refuse$",
    "$$",
    "-- dash",
    "/* star */",
    "tab\tin",
    "semi;colon",
    "line\nbreak",
)
SCHEMA: Final = "We\"ird {{ Schéma }} {% %s :x's"
CONFIG: Final = '[targets.app]\nversioning = "sequence"\nmanages = ["We\\"ird {{ Schéma }} {% %s :x\'s"]\n'
TABLE: Final = """\
create table {s}.{t} (
  {id} bigint generated always as identity,
  {c} text default {lit} not null,
  {n} {type},
  constraint {pk} primary key ({id}),
  constraint {ck} check ({c} <> {lit} || 'x'){more}
);
create index {ix} on {s}.{t} ({c}) where {c} <> {lit};
comment on table {s}.{t} is {lit};
comment on column {s}.{t}.{c} is {lit};
alter table {s}.{t} enable row level security;
create policy {po} on {s}.{t} for select to {r} using ({c} = {lit});
grant select ({c}) on {s}.{t} to {r};
"""
OTHERS: Final = """\
create type {s}.{e} as enum ({lit}, {labels}'other');
create domain {s}.{d} as text constraint {dc} check (value <> {lit});
create type {s}.{ct} as ({a} text, b {s}.{e});
create function {s}.{f}({p} text default {lit}) returns text language plpgsql as $body$
declare v text := $q$ {{{{ not jinja }}}} {{% nor this %}} {{# nor #}} %s \\ :x $q$; -- {{{{
begin
  return v || {p} || {lit}{again};
end;
$body$;
create function {s}.{g}() returns trigger language plpgsql as $f$
begin
  perform {s}.{f}();
  return new;
end
$f$;
create trigger {tr} before insert on {s}.{t} for each row execute function {s}.{g}();
create view {s}.{v} as select {c} as {vc}, {lit} as {l} from {s}.{t};
create sequence {s}.{sq};
create statistics {s}.{st} on {c}, {n} from {s}.{t};
"""
PARTS: Final = (
    "t",
    "id",
    "c",
    "n",
    "pk",
    "ck",
    "ix",
    "po",
    "r",
    "e",
    "d",
    "dc",
    "ct",
    "a",
    "f",
    "p",
    "g",
    "tr",
    "v",
    "vc",
    "l",
    "sq",
    "st",
    "new",
    "uq",
)


@pytest.fixture
def embedded(open_server: Callable[[str], DevServer]) -> DevServer:
    """Where migrations are applied."""
    return open_server(EMBEDDED)


def test_names_of_every_kind_go_through_build_and_apply(make: MakeProject, embedded: DevServer) -> None:
    project = make(schema(edited=False), config=CONFIG)
    project.ok("build", "first")
    project.ok("diff", "--check")
    for name, text in schema(edited=True).items():
        project.write(name, text)
    proved = project.json("build", "second")
    assert len(proved["rows_in"]) == len(NAMES)
    assert proved["no_rows_in"] == []
    project.ok("diff", "--check")
    first, second = project.migrations()
    assert first.read_text("utf-8").count("{{ not jinja }}") == len(NAMES)
    with embedded.clone(None) as conninfo:
        apply_migration(conninfo, first)
        with psycopg.connect(conninfo, autocommit=True) as conn:
            for name in NAMES:
                conn.execute(statement("insert into {s}.{t} ({n}) values (7)", name))
            apply_migration(conninfo, second)
            for name in NAMES:
                row = conn.execute(statement("select {c}, {n}, {s}.{f}('') from {s}.{t}", name)).fetchone()
                assert row is not None
                assert row[:2] == (name, 7)
                assert "{{ not jinja }} {% nor this %} {# nor #} %s \\ :x" in row[2]


@pytest.mark.parametrize("name", ["$refuse$", "sin'gle", "per%cent %s %(x)s", "{{ braces }}", "back\\slash"])
def test_checks_in_preflight_name_what_they_refuse(make: MakeProject, embedded: DevServer, name: str) -> None:
    chosen = {
        key: text for key, text in schema(edited=False).items() if key in ("schema/app/a.sql", of(name))
    }
    project = make(chosen, config=CONFIG)
    project.ok("build", "first")
    project.write(of(name), schema(edited=True)[of(name)])
    project.ok("build", "second")
    first, second = project.migrations()
    with embedded.clone(None) as conninfo:
        apply_migration(conninfo, first)
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute(statement("insert into {s}.{t} ({n}) values (null)", name))
            with pytest.raises(AssertionError) as refused:
                apply_migration(conninfo, second)
            assert name in str(refused.value)
            conn.execute(statement("update {s}.{t} set {n} = 1", name))
            apply_migration(conninfo, second)


def schema(*, edited: bool) -> Mapping[str, str]:
    """Every kind of object under every name; the edit changes types, adds columns, checks and labels."""
    files = {
        "schema/app/a.sql": filled("create schema {s};\ncomment on schema {s} is {lit};\n", "{{ $$ %s {% {#")
    }
    for number, name in enumerate(NAMES):
        files[of(name)] = filled(
            TABLE,
            name,
            type="bigint not null" if edited else "integer",
            more=",\n  {new} text,\n  constraint {uq} unique ({n})" if edited else "",
        )
        files[f"schema/app/other_{number}.sql"] = filled(
            OTHERS, name, labels="{lit2}, " if edited else "", again=" || {lit}" if edited else ""
        )
    return files


def of(name: str) -> str:
    """The file of a name's table."""
    return f"schema/app/table_{NAMES.index(name)}.sql"


def filled(text: str, name: str, **parts: str) -> str:
    """A text with a name's identifiers in it; `parts` may hold identifiers themselves."""
    words = {part: quoted(f"{part} {name}") for part in PARTS}
    words |= {"s": quoted(SCHEMA), "lit": literal(name), "lit2": literal(f"{name} too")}
    return text.format(**words, **{part: inner.format(**words) for part, inner in parts.items()})


def statement(text: str, name: str) -> bytes:
    """A statement about a name's objects; nothing in it is a parameter."""
    return filled(text, name).encode()


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string in SQL."""
    return "'" + text.replace("'", "''") + "'"
