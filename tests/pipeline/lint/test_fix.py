"""`--fix` changes looks and nothing else, or leaves the file alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import load_project
from pgsluice.pipeline.lint.choose import choose_all
from pgsluice.pipeline.lint.fix import CHANGED_MEANING, CHANGED_SPACING, Fixed, plan_fixes, same_sql
from tests.pipeline.lint.linting import Folder, new_folder

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "schema/app/users.sql"
TEMPLATE: Final = "templates/app/fill.sql.j2"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty project."""
    return new_folder(tmp_path)


def fix(folder: Folder) -> Fixed:
    """What `--fix` would write."""
    project = load_project(folder.root)
    files = choose_all(project, project.targets)
    return plan_fixes(files, root=project.root, config_root=project.root)


def test_case_and_layout_are_mended_and_bodies_stay_byte_for_byte(folder: Folder) -> None:
    body = "$$\n  SELECT   1;\n$$"
    path = folder.write(
        SCHEMA,
        "CREATE TABLE app.users (\n    id BIGINT NOT NULL,\n  name TEXT DEFAULT 'It  Is'\n);\n"
        f"CREATE FUNCTION app.f() RETURNS int LANGUAGE sql AS {body};\n",
    )
    assert fix(folder).files == {
        path: (
            "create table app.users (\n  id bigint not null,\n  name text default 'It  Is'\n);\n"
            f"create function app.f() returns int language sql as {body};\n"
        ).encode()
    }


def test_templates_are_mended_between_their_tags(folder: Folder) -> None:
    text = (
        '{% extends "migration.sql.j2" %}\n{% import "macros.sql.j2" as sql %}\n{% block backfill %}\n'
        '{{ sql.backfill(table="app.t",  set="A = 1") }}\n'
        "UPDATE app.t SET a=1 where b = 2;\n{%- endblock %}\n"
    )
    path = folder.write(TEMPLATE, text)
    mended = text.replace("UPDATE app.t SET a=1 where", "update app.t set a = 1 where")
    assert fix(folder).files == {path: mended.encode()}


def test_migrations_and_files_with_errors_stay(folder: Folder) -> None:
    folder.write("migrations/app/0001_a.sql", "SELECT   1;\n")
    folder.write(SCHEMA, "CREATE TABLE;\n")
    folder.write("schema/app/crlf.sql", b"CREATE SCHEMA app;\r\n")
    folder.write("schema/app/latin.sql", b"CREATE SCHEMA \xff;\n")
    folder.write("schema/app/empty.sql", b"")
    folder.write("schema/app/blank.sql", b"\n \n")
    assert fix(folder) == Fixed({}, {}, ())


def test_a_file_whose_meaning_would_change_is_left_with_a_word(folder: Folder) -> None:
    folder.write(".sqlfluff", "[sqlfluff]\nrules = ST07\n")
    folder.write(
        SCHEMA, "create view app.v as\nselect t.a from app.t as t inner join app.u as u using (a);\n"
    )
    assert fix(folder) == Fixed({}, {}, ((SCHEMA, CHANGED_MEANING),))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("SELECT 1", "select  1", True),
        ("select a <> b from app.t", "select a != b from app.t", True),
        ("select 'A'", "select 'a'", False),
        ('select "A" from t', "select a from t", False),
        ("select 1 -- why", "select 1", False),
        ("select 1 -- why", "-- why\nselect 1", True),
        ("create function f() returns int language sql as $$ A $$",
         "create function f() returns int language sql as $$ a $$", False),
        ("create table t (\n  a int, -- pgsluice: renamed from x\n  b int\n)",
         "create table t (\n  a int,\n  -- pgsluice: renamed from x\n  b int\n)", False),
        ("create table t (\n  A int, -- pgsluice: renamed from x\n  b int\n)",
         "create table t (\n  a int, -- pgsluice: renamed from x\n  b int\n)", True),
        ("select 1", "selekt 1", False),
    ],
)  # fmt: skip
def test_two_texts_mean_the_same(before: str, after: str, *, same: bool) -> None:
    assert same_sql(before, after) is same


def test_where_spaces_would_change_the_meaning_the_rest_is_mended_once(folder: Folder) -> None:
    operator = "operator ===  (leftarg = integer, rightarg = integer, function = int4eq);\n"
    path = folder.write(SCHEMA, f"CREATE {operator}")
    fixed = fix(folder)
    assert fixed.files == {path: f"create {operator}".encode()}
    assert fixed.left == ((SCHEMA, CHANGED_SPACING),)
    path.write_bytes(fixed.files[path])
    assert fix(folder) == Fixed({}, {}, ((SCHEMA, CHANGED_SPACING),))
