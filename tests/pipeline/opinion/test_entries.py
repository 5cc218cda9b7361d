"""The entries of a dump, and what is no difference between two of them."""

from __future__ import annotations

import pytest

from pgsluice.pipeline.opinion.entries import compare_entries, parse_dump

END = "--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict token\n"


def entry(name: str, kind: str, body: str, *, schema: str = "app", owner: str = "postgres") -> str:
    """One entry as `pg_dump` prints it."""
    return f"--\n-- Name: {name}; Type: {kind}; Schema: {schema}; Owner: {owner}\n--\n\n{body}\n\n\n"


def difference(expected: str, actual: str) -> list[tuple[str, tuple[str, ...]]]:
    """What differs between two dumps of these entries."""
    head = "--\n-- PostgreSQL database dump\n--\n\n\\restrict token\n\nSET row_security = off;\n\n"
    return list(compare_entries(parse_dump(head + expected + END), parse_dump(head + actual + END)))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("CREATE TABLE app.t (\n  a int,\n  b int\n);", "CREATE TABLE app.t (\n  b int,\n  a int\n);"),
        ("CREATE TABLE app.t (\n)\nWITH (a='1', b='2');", "CREATE TABLE app.t (\n)\nWITH (b='2', a='1');"),
        (
            "CREATE TABLE app.t (\n    a integer NOT NULL\n);",
            "CREATE TABLE app.t (\n    a integer CONSTRAINT t_a_not_null1 NOT NULL\n);",
        ),
        ("CREATE TABLE app.t (\n);", "CREATE TABLE app.t (\n);\n\n\nSET default_tablespace = fast;"),
    ],
    ids=["order of columns", "order of options", "automatic name", "setting for the next entry"],
)  # fmt: skip
def test_no_difference(expected: str, actual: str) -> None:
    assert difference(entry("t", "TABLE", expected), entry("t", "TABLE", actual)) == []


def test_a_name_written_by_hand_is_a_difference() -> None:
    expected = entry("t", "TABLE", "CREATE TABLE app.t (\n    a integer CONSTRAINT needed NOT NULL\n);")
    actual = entry("t", "TABLE", "CREATE TABLE app.t (\n    a integer NOT NULL\n);")
    assert difference(expected, actual) == [
        ("TABLE app.t", ("expected: a integer CONSTRAINT needed NOT NULL", "found:    a integer NOT NULL"))
    ]


def test_every_byte_of_a_function_counts() -> None:
    body = "CREATE FUNCTION app.f() RETURNS void\n    LANGUAGE sql\n    AS $$\n-- {}\nselect 1;\n{}$$;"
    expected = entry("f()", "FUNCTION", body.format("first", "\n"))
    assert difference(expected, entry("f()", "FUNCTION", body.format("second", "\n"))) == [
        ("FUNCTION app.f()", ("expected: -- first", "found:    -- second"))
    ]
    assert difference(expected, entry("f()", "FUNCTION", body.format("first", ""))) != []


def test_the_order_of_labels_counts() -> None:
    expected = entry("mood", "TYPE", "CREATE TYPE app.mood AS ENUM (\n    'sad',\n    'ok',\n    'glad'\n);")
    actual = entry("mood", "TYPE", "CREATE TYPE app.mood AS ENUM (\n    'ok',\n    'sad',\n    'glad'\n);")
    assert difference(expected, actual) == [("TYPE app.mood", ("the same lines in another order",))]


def test_owner_and_presence_count() -> None:
    mine, theirs = (entry("t", "TABLE", "CREATE TABLE app.t (\n);", owner=owner) for owner in ("me", "you"))
    assert difference(mine, theirs) == [("TABLE app.t", ("expected: owner me", "found:    owner you"))]
    assert difference(mine, "") == [("TABLE app.t", ("missing",))]
    assert difference("", mine) == [("TABLE app.t", ("not expected",))]


def test_entries_about_an_object_are_named_after_it() -> None:
    text = entry("COLUMN t.a", "COMMENT", "...") + entry("TABLE t", "ACL", "...")
    assert list(parse_dump(text + entry("app", "SCHEMA", "...", schema="-"))) == [
        "COMMENT COLUMN app.t.a",
        "ACL TABLE app.t",
        "SCHEMA app",
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("scratch_f(integer)", "FUNCTION"),
        ("FUNCTION scratch_f(a integer)", "COMMENT"),
        ("CONSTRAINT positive ON scratch_t", "COMMENT"),
        ("TABLE scratch_t", "ACL"),
        ("scratch_mood", "TYPE"),
    ],
)
def test_ignored_objects_stay_out(name: str, kind: str) -> None:
    kept = entry("f()", "FUNCTION", "...")
    assert list(parse_dump(kept + entry(name, kind, "..."), ignore=["app.scratch_*"])) == ["FUNCTION app.f()"]
