"""Rename hints: what each stands beside, and the refusal of those that stand beside nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .schema import read, refusal

if TYPE_CHECKING:
    from pathlib import Path

HINT = "-- pgsluice: renamed from"


def renames(root: Path, text: str) -> list[tuple[str, str | None, str | None, str, str, int | None]]:
    found = read(root, {"a.sql": text}).renames
    return [(item.kind, item.schema, item.table, item.old, item.new, item.location.line) for item in found]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("create table app.t ();", ("table", "app", None, "t")),
        ("create view v as select 1 as x;", ("view", None, None, "v")),
        ("create materialized view v as select 1 as x;", ("materialized view", None, None, "v")),
        ("create sequence app.s;", ("sequence", "app", None, "s")),
        ("create index i on app.t (a);", ("index", "app", None, "i")),
        ("create type app.e as enum ('a');", ("type", "app", None, "e")),
        ("create domain d as int;", ("domain", None, None, "d")),
        ("create function app.f() returns int language sql as 'select 1';", ("function", "app", None, "f")),
        ("create procedure app.p() language sql as 'select 1';", ("procedure", "app", None, "p")),
        ("create schema s;", ("schema", None, None, "s")),
        ("create trigger g after insert on app.t execute function f();", ("trigger", "app", "t", "g")),
        ("create policy p on t;", ("policy", None, "t", "p")),
    ],
)
def test_a_hint_above_a_statement_renames_its_object(
    tmp_path: Path, sql: str, expected: tuple[str, str | None, str | None, str]
) -> None:
    kind, schema, table, new = expected
    found = renames(tmp_path, f"create table other ();\n\n{HINT} old_name\n-- what it is\n{sql}")
    assert found == [(kind, schema, table, "old_name", new, 3)]


def test_hints_in_a_table_rename_columns_and_constraints(tmp_path: Path) -> None:
    text = f"""create table app.t (
  é int default 1, -- an é
  b int not null, {HINT} was_b
  {HINT} "Was C"
  -- what c is
  c numeric(10, 2),
  constraint d check (b > 0) {HINT} was_d
);
"""
    assert renames(tmp_path, text) == [
        ("column", "app", "t", "was_b", "b", 3),
        ("column", "app", "t", "Was C", "c", 4),
        ("constraint", "app", "t", "was_d", "d", 7),
    ]


def test_hints_in_types_rename_attributes_and_labels(tmp_path: Path) -> None:
    text = f"""create type pair as (
  a int, {HINT} was_a
  b int
);
create type mood as enum (
  'sad',
  {HINT} 'it''s fine'
  'ok'
);
"""
    assert renames(tmp_path, text) == [
        ("attribute", None, "pair", "was_a", "a", 2),
        ("label", None, "mood", "it's fine", "ok", 7),
    ]


def test_a_hint_behind_a_statement_belongs_to_it(tmp_path: Path) -> None:
    text = f"create view v as select 1 as x; {HINT} Was_V\ncreate view w as select 1 as x;"
    assert renames(tmp_path, text) == [("view", None, None, "was_v", "v", 1)]


def test_a_hint_inside_a_body_is_text(tmp_path: Path) -> None:
    text = f"create function f() returns int language sql as $$\n{HINT} x\nselect 1 $$;"
    assert renames(tmp_path, text) == []


@pytest.mark.parametrize(
    "text",
    [
        f"create table t ();\n{HINT} old\n",
        f"{HINT} old\ngrant select on t to public;",
        f"create view v as\n{HINT} old\nselect 1 as x;",
        f"create table t (\n  a int\n  {HINT} old\n);",
    ],
)
def test_a_hint_beside_nothing_is_refused(tmp_path: Path, text: str) -> None:
    lines = refusal(tmp_path, {"a.sql": text}).splitlines()
    assert lines[0].endswith(": the rename hint stands beside nothing that has a name")
    assert lines[1].strip() == f"{HINT} old"
    assert lines[3] == (
        "hint: put it on the line above the renamed object, or at the end of the renamed column's line"
    )


def test_what_lint_reads_is_no_hint(tmp_path: Path) -> None:
    text = (
        "-- pgsluice: allow grant-to-public: all may look\ngrant select on t to public;\ncreate table t ();\n"
    )
    assert renames(tmp_path, text) == []


@pytest.mark.parametrize(
    "words", ["renamd from x", "renamed from", "renamed from a.b", "renamed from a b", "allows x"]
)
def test_an_unknown_directive_is_refused(tmp_path: Path, words: str) -> None:
    text = f"create table a (); -- pgsluice: {words}\n"
    assert refusal(tmp_path, {"a.sql": text}) == (
        f"schema/a.sql:1:20: unknown directive: -- pgsluice: {words}\n"
        f"  create table a (); -- pgsluice: {words}\n"
        "                     ^\n"
        "hint: -- pgsluice: renamed from old_name, or -- pgsluice: allow rule-of-lint"
    )
