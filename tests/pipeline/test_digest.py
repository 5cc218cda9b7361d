"""Digests: what counts as a change of SQL text or of a schema folder, and what does not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pglast.parser import ParseError, scan

from pgsluice.errors import InputError
from pgsluice.pipeline.digest import BrokenTextError, schema_digest, sql_digest, tokens

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "create table app.t (id int, name text default 'a  b');"


@pytest.mark.parametrize(
    "same",
    [
        "create  table app.t(id int,name text default 'a  b') ;",
        "-- a table\ncreate table app.t (id int, /* the /* real */ name */ name text default 'a  b');",
        "create table app.t (\r\n  id int,\r\n  name text default 'a  b'\r\n);\r\n",
        "\\restrict 3fX\ncreate table app.t (id int, name text default 'a  b');\n\\unrestrict 3fX\n",
    ],
)
def test_comments_whitespace_line_ends_and_dump_guards_do_not_count(same: str) -> None:
    assert sql_digest(same) == sql_digest(TABLE)


@pytest.mark.parametrize(
    "other",
    [
        "create table app.t (id int, name text default 'a b');",
        "create table app.t (id bigint, name text default 'a  b');",
        "-- pgsluice: renamed from s\ncreate table app.t (id int, name text default 'a  b');",
        "\\connect x\ncreate table app.t (id int, name text default 'a  b');",
    ],
)
def test_constants_names_directives_and_psql_commands_count(other: str) -> None:
    assert sql_digest(other) != sql_digest(TABLE)


def test_a_directive_counts_by_its_words_and_its_place() -> None:
    before = "create table t (a int, -- pgsluice: renamed from x\n b int);"
    assert sql_digest(before) == sql_digest(before.replace("-- pgsluice: ", "--  pgsluice:   "))
    assert sql_digest(before) != sql_digest("create table t (a int, b int -- pgsluice: renamed from x\n);")


def test_what_lint_is_allowed_does_not_count() -> None:
    text = "grant usage on schema app to public;"
    assert sql_digest(f"-- pgsluice: allow grant-to-public: all may look\n{text}") == sql_digest(text)
    assert sql_digest(f"-- pgsluice:allow-file grant-to-public\n{text}") == sql_digest(text)
    assert sql_digest(f"-- pgsluice: allowed grant-to-public\n{text}") != sql_digest(text)


def test_a_body_in_dollar_quotes_counts_byte_for_byte() -> None:
    body = "do $x$ begin -- note\n perform 1; end $x$;"
    assert sql_digest(body) != sql_digest(body.replace("\n", "\r\n"))
    assert sql_digest(body) != sql_digest(body.replace("note", "no"))
    assert sql_digest(body) == sql_digest(f"{body} -- note")


def test_signs_and_operators_are_told_apart() -> None:
    assert sql_digest("select a=-1") == sql_digest("select a = - 1")
    assert sql_digest("select a @- 1") != sql_digest("select a @ -1")


@pytest.mark.parametrize("broken", ["select 'a", 'select "a', "select $a$ b", "select /* a /* b */", "E'\\'"])
def test_text_that_never_ends_has_a_digest_of_its_raw_text(broken: str) -> None:
    with pytest.raises(BrokenTextError):
        list(tokens(broken))
    assert sql_digest(broken) == sql_digest(broken)
    assert sql_digest(broken) != sql_digest(f"{broken} ")


def test_a_schema_digest_covers_names_and_texts_and_no_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.sql").write_text(TABLE)
    first = schema_digest(tmp_path)
    (tmp_path / "tables" / ".#t.sql").symlink_to("nowhere")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.sql").write_text("select 1")
    (tmp_path / "notes.txt").write_text("not SQL")
    (tmp_path / "tables" / "t.sql").write_text(f"-- a comment\n{TABLE}")
    assert schema_digest(tmp_path) == first
    (tmp_path / "tables" / "t.sql").rename(tmp_path / "tables" / "u.sql")
    assert schema_digest(tmp_path) != first


def test_a_schema_digest_covers_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "t.sql").write_bytes(b"select '\xff'")
    first = schema_digest(tmp_path)
    (tmp_path / "t.sql").write_bytes(b"select '\xfe'")
    assert schema_digest(tmp_path) != first


def test_a_linked_folder_counts_and_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    schema, shared = tmp_path / "schema", tmp_path / "shared"
    schema.mkdir()
    shared.mkdir()
    empty = schema_digest(schema)
    (shared / "t.sql").write_text(TABLE)
    (schema / "shared").symlink_to(shared)
    assert schema_digest(schema) != empty
    (shared / "back").symlink_to(schema)
    with pytest.raises(InputError) as caught:
        schema_digest(schema)
    circle = schema / "shared" / "back"
    assert str(caught.value) == f"{circle} is a link to a folder above it\nhint: rm {circle}"


def test_a_missing_folder_and_a_link_to_nowhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        schema_digest(tmp_path / "schema")
    folder = tmp_path / "schema"
    assert str(caught.value) == f"schema folder {folder} does not exist\nhint: mkdir -p {folder}"
    (tmp_path / "t.sql").symlink_to("nowhere")
    with pytest.raises(InputError) as caught:
        schema_digest(tmp_path)
    link = tmp_path / "t.sql"
    assert str(caught.value) == f"{link} is not a file, or a link that leads nowhere\nhint: rm {link}"


def test_digests_need_neither_the_parser_nor_a_driver() -> None:
    code = "import sys, pgsluice.pipeline.digest; print('pglast' in sys.modules, 'psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


WORDS = ("select", "e", "u", "é日", "a$b", '"q""r"', "a.b", "$1", "1.5e-3", ".5", "1_000", "0x1F", "1..2")
STRINGS = ("'it''s'", "E'\\'x'", "E'a'\n'\\''", "U&'\\0041'", 'U&"x"', "x'1f'", "$$ a 'b $ $$", "$t$ $$ $t$")
MARKS = ("::", ":=", "=>", "<=", "@-", "=-", "+-", "-", "+", "*", "/", "(", ")", "[1:2]", ",", ";")
COMMENTS = ("--c\n", "/* /* n */ */")
PIECES = st.sampled_from(WORDS + STRINGS + MARKS + COMMENTS)


@given(st.lists(st.tuples(PIECES, st.sampled_from(["", " ", "\n", "\t"])), max_size=12))
def test_tokens_are_those_of_postgresqls_own_scanner(parts: list[tuple[str, str]]) -> None:
    text = "".join(piece + gap for piece, gap in parts)
    try:
        expected = [text[token.start : token.end + 1] for token in scan(text)]
    except ParseError:
        return  # such as a number with letters behind it
    if "\\" in expected:
        return  # outside of quotes it is no SQL; here it begins a command of psql's
    found = [text[token.start : token.start + len(token.text)] for token in tokens(text)]
    assert _joined(found) == _joined(expected)


def _joined(parts: list[str]) -> list[str]:
    """Strings continued on a next line are one token to the scanner, and may be two here."""
    return "\0".join(parts).replace("'\n'", "'\0'").replace("'\0'", "''").split("\0")
