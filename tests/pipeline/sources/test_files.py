"""Reading schema files: what text is accepted, and how each thing that is not is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgsluice.errors import ExitCode, InputError
from pgsluice.pipeline.digest import schema_digest
from pgsluice.pipeline.sources import read_schema

from .schema import order, read, refusal, write

if TYPE_CHECKING:
    from pathlib import Path


def test_an_empty_folder_is_a_legal_schema(tmp_path: Path) -> None:
    source = read(tmp_path, {"readme.txt": "nothing", "empty.sql": "-- nothing yet\n;;\n"})
    assert source.statements == ()
    assert source.roles == ()
    assert source.renames == ()
    assert source.digest == schema_digest(tmp_path / "schema")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_schema(tmp_path / "schema" / "app", root=tmp_path)
    assert str(caught.value) == "schema folder schema/app does not exist\nhint: mkdir -p schema/app"
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema").write_text("")
    with pytest.raises(InputError) as caught:
        read_schema(tmp_path / "schema", root=tmp_path)
    assert caught.value.message == "schema folder schema is not a folder"


def test_statements_know_their_place(tmp_path: Path) -> None:
    text = "-- é /* ' */\n/* a /* nested */ comment */ create table é (id int) ; create table b ();\n"
    source = read(tmp_path, {"a/t.sql": text})
    assert [(item.text, item.file, item.line) for item in source.statements] == [
        ("create table é (id int)", "schema/a/t.sql", 2),
        ("create table b ()", "schema/a/t.sql", 2),
    ]
    assert all(text[item.offset : item.offset + len(item.text)] == item.text for item in source.statements)


def test_windows_line_ends_and_dump_guards_are_accepted(tmp_path: Path) -> None:
    text = "\\restrict 9aX\r\ncreate table a (\r\n  id int\r\n);\r\n\\unrestrict 9aX\r\n"
    (statement,) = read(tmp_path, {"a.sql": text}).statements
    assert statement.text == "create table a (\r\n  id int\r\n)"
    assert statement.line == 2


def test_backslashes_inside_literals_are_no_commands(tmp_path: Path) -> None:
    text = "create table a (t text check (t ~ '^\n\\d+$'));\ncomment on table a is $$\n\\connect x\n$$;\n"
    assert len(read(tmp_path, {"a.sql": text}).statements) == 2


def test_a_byte_order_mark_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"a.sql": b"\xef\xbb\xbfcreate table a ();"}) == (
        "schema/a.sql:1: the file starts with a byte order mark\n"
        r"hint: sed -i '1s/^\xef\xbb\xbf//' schema/a.sql"
    )


def test_invalid_utf8_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"a.sql": "-- é\ncreate table ".encode() + b"\xff ();"}) == (
        "schema/a.sql:2: the file is not valid UTF-8: byte 0xff at offset 19\nhint: save the file as UTF-8"
    )


def test_a_nul_byte_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"a.sql": "create table a ();\n-- \0"}) == (
        "schema/a.sql:2: the file holds a NUL byte"
    )


def test_a_psql_command_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"a.sql": "create table a ();\n  \\connect other\n"}) == (
        "schema/a.sql:2:3: \\connect is a command of psql, not SQL\n"
        "    \\connect other\n"
        "    ^\n"
        "hint: take the line out: schema files go to the server as they are"
    )


def test_copy_with_data_is_refused_whatever_the_data(tmp_path: Path) -> None:
    text = "create table a (t text);\nCOPY public.a (t) FROM stdin;\nit's $$ \\N\n\\.\n"
    assert refusal(tmp_path, {"a.sql": text}) == (
        "schema/a.sql:2: copy from stdin needs psql; a schema file holds no data\n"
        "hint: dump the schema alone: pg_dump --schema-only, or write the rows as insert statements"
    )


def test_a_syntax_error_names_line_and_column_behind_wide_characters(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"v.sql": "create table a ();\ncreate view v as select 'é日' as, 1;\n"}) == (
        'schema/v.sql:2:32: syntax error at or near ","\n'
        "  create view v as select 'é日' as, 1;\n"
        "                                 ^"
    )


def test_a_statement_that_is_not_finished_is_refused_at_its_end(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"v.sql": "create table a (\n  id int\n"}) == (
        "schema/v.sql:2:9: syntax error at end of input\n    id int\n          ^"
    )


def test_an_unterminated_string_is_refused_where_it_starts(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"v.sql": "select 1;\nselect 'a\n"}).splitlines()[0] == (
        "schema/v.sql:2:8: unterminated quoted string at or near \"'a"
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("begin;", "begin (transaction control) has no place in a schema file"),
        ("COMMIT;", "commit (transaction control) has no place in a schema file"),
        ("savepoint a;", "savepoint (transaction control) has no place in a schema file"),
        ("create role r;", "create role has no place in a schema file"),
        ("grant a to b;", "grant of a role to a role has no place in a schema file"),
        ("create database d;", "create database has no place in a schema file"),
        ("alter system set a = 1;", "alter system has no place in a schema file"),
        ("vacuum a;", "vacuum has no place in a schema file"),
        ("create index concurrently on a (b);", "create index concurrently has no place in a schema file"),
        ("drop index concurrently a;", "drop index concurrently has no place in a schema file"),
        ("reindex index concurrently a;", "reindex concurrently has no place in a schema file"),
    ],
)
def test_statements_that_do_not_describe_a_schema_are_refused(tmp_path: Path, sql: str, message: str) -> None:
    lines = refusal(tmp_path, {"a.sql": f"create table a ();\n{sql}"}).splitlines()
    assert lines[0] == f"schema/a.sql:2: {message}"
    assert lines[1].startswith("hint: ")


def test_or_replace_if_not_exists_and_do_are_accepted(tmp_path: Path) -> None:
    text = "create schema if not exists app; create or replace view v as select 1; do $$ begin null; end $$;"
    assert len(order(tmp_path, {"a.sql": text})) == 3


def test_a_deeply_nested_statement_is_read(tmp_path: Path) -> None:
    deep = " || ".join(["f(a)"] * 3000)
    files = {"a.sql": f"create view v as select {deep} as x from t;", "b.sql": "create table t (a text);"}
    assert [text[:13] for text in order(tmp_path, files)] == ["create table ", "create view v"]


def test_a_statement_too_deep_for_postgresql_is_refused(tmp_path: Path) -> None:
    text = f"create view v as select {'+'.join(['1'] * 50_000)} as x"
    assert refusal(tmp_path, {"a.sql": text}) == "schema/a.sql: stack depth limit exceeded"


def test_roles_named_anywhere_are_found(tmp_path: Path) -> None:
    text = """
    create schema app authorization owner_1;
    create table app.t ();
    grant select on app.t to "Reader", public, current_user;
    alter table app.t owner to owner_2;
    create policy p on app.t to member;
    alter default privileges for role maker grant select on tables to taker;
    revoke all on app.t from former;
    """
    source = read(tmp_path, {"a.sql": text})
    assert source.roles == ("Reader", "former", "maker", "member", "owner_1", "owner_2", "taker")


def test_the_order_of_files_is_that_of_their_bytes(tmp_path: Path) -> None:
    names = ["b.sql", "B.sql", "a/z.sql", "a.sql", "é.sql", "_.sql"]
    folder = write(tmp_path, {name: f'create table "{name}" ();' for name in names})
    source = read_schema(folder, root=tmp_path)
    found = [statement.file.removeprefix("schema/") for statement in source.statements]
    assert found == ["B.sql", "_.sql", "a.sql", "a/z.sql", "b.sql", "é.sql"]


def test_files_outside_the_root_keep_their_whole_path(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a.sql": "create table a ();"})
    source = read_schema(folder, root=tmp_path / "elsewhere")
    assert source.statements[0].file == (folder / "a.sql").as_posix()
