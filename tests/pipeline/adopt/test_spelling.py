"""pg_dump's text as people write it."""

from __future__ import annotations

import pytest
from pglast import prettify
from pglast.parser import parse_sql_json

from pgsluice.pipeline.adopt.files import with_data
from pgsluice.pipeline.adopt.spelling import spell
from pgsluice.pipeline.sources.tree import read_trees

TEXTS = {
    "keywords, not names": (
        'CREATE TABLE app."SELECT" (\n    "User Id" bigint DEFAULT 1 NOT NULL,\n    "größe" text\n)',
        'create table app."SELECT" (\n  "User Id" bigint default 1 not null,\n  "größe" text\n)',
    ),
    "bodies and strings as they are": (
        "CREATE FUNCTION app.f() RETURNS text\n    LANGUAGE sql\n    AS $_$\n    SELECT 'A' || $1 $_$",
        "create function app.f() returns text\n  language sql\n  as $_$\n    SELECT 'A' || $1 $_$",
    ),
    "escapes and bits": (
        "COMMENT ON TABLE app.t IS E'A\\nB'",
        "comment on table app.t is E'A\\nB'",
    ),
    "the server's own layout": (
        "CREATE VIEW app.v AS\n SELECT 'X'::text AS x\n   FROM app.t",
        "create view app.v as\n select 'X'::text as x\n   from app.t",
    ),
    "commas": (
        "CREATE TABLE t (\n    a numeric(12,2),\n    b text DEFAULT 'x,y'\n)",
        "create table t (\n  a numeric(12, 2),\n  b text default 'x,y'\n)",
    ),
    "long lines": (
        f"ALTER TABLE app.t ADD CONSTRAINT {'k' * 60} FOREIGN KEY (a) REFERENCES app.u(b) ON DELETE CASCADE",
        f"alter table app.t\n  add constraint {'k' * 60} foreign key (a)\n"
        "  references app.u(b) on delete cascade",
    ),
    "tabs": ("CREATE TYPE app.c AS (\n\tx integer\n)", "create type app.c as (\n  x integer\n)"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_words_become_lower_case_and_nothing_else_changes(name: str) -> None:
    dumped, spelled = TEXTS[name]
    kind = next(read_trees(parse_sql_json(dumped))).kind
    assert spell(dumped, kind) == spelled
    assert prettify(spelled) == prettify(dumped)


def test_a_planned_statement_keeps_its_indentation() -> None:
    assert spell("CREATE TABLE t (\n  a integer\n)", "CreateStmt", relay=False) == (
        "create table t (\n  a integer\n)"
    )


def test_only_the_last_words_of_a_view_say_that_it_is_empty() -> None:
    text = "CREATE MATERIALIZED VIEW app.m AS\n SELECT 'WITH NO DATA'::text AS x\n  WITH NO DATA"
    assert with_data(text) == "CREATE MATERIALIZED VIEW app.m AS\n SELECT 'WITH NO DATA'::text AS x"
    assert with_data("CREATE MATERIALIZED VIEW app.m AS SELECT 1") == (
        "CREATE MATERIALIZED VIEW app.m AS SELECT 1"
    )
