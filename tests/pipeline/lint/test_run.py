"""A run over a project: which files, by which engine, what is closed, what is allowed, what is cached."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import load_project
from pgsluice.errors import InputError
from pgsluice.pipeline.lint import engines, squawk
from pgsluice.pipeline.lint.choose import choose_all
from pgsluice.pipeline.lint.rules import RULES
from tests.pipeline.lint.linting import OUTSIDE, Folder, new_folder, rules

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "schema/app/users.sql"
FIRST: Final = "migrations/app/0001_first.sql"
SECOND: Final = "migrations/app/0002_second.sql"
TEMPLATE: Final = "templates/app/second.sql.j2"
CACHE: Final = ".pgsluice/lint/cache.json"
EXTENDS: Final = '{% extends "migration.sql.j2" %}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty project."""
    return new_folder(tmp_path)


def test_each_kind_of_file_goes_to_its_engines(folder: Folder) -> None:
    folder.write(SCHEMA, "CREATE table users (user_id bigint);\n")
    folder.write(FIRST, "ALTER TABLE app.users DROP COLUMN name;\nUPDATE app.users SET a=1 WHERE b=2;\n")
    folder.write(TEMPLATE, EXTENDS + "{% block backfill %}\nselect  1 as a;\n{% endblock %}\n")
    assert rules(folder.lint().findings) == [
        "1 squawk/ban-drop-column",
        "1 sqlfluff/CP01",
        "3 sqlfluff/LT01",
    ]


def test_squawk_keeps_silent_about_new_and_temporary_tables_and_safe_recipes(folder: Folder) -> None:
    folder.write(
        FIRST,
        "CREATE TABLE app.t (id bigint PRIMARY KEY, n integer, x text);\n"
        "CREATE INDEX t_x ON app.t (x);\n"
        "ALTER TABLE ONLY app.t ALTER COLUMN x SET NOT NULL;\n"
        "ALTER TABLE app.t ADD CONSTRAINT c CHECK (x <> '');\n"
        "CREATE TEMPORARY TABLE old ON COMMIT DROP AS SELECT 1 AS a;\n"
        "CREATE INDEX ON old (a);\n"
        "ALTER TABLE app.u ADD CONSTRAINT u_x CHECK (x IS NOT NULL) NOT VALID;\n"
        "ALTER TABLE app.u ADD COLUMN v integer GENERATED ALWAYS AS (id * 2) VIRTUAL;\n",
    )
    folder.write(SECOND, OUTSIDE + "CREATE TABLE app.n (id bigint);\nCREATE INDEX n_id ON app.n (id);\n")
    folder.write("migrations/app/0003_v.sql", "ALTER TABLE app.u VALIDATE CONSTRAINT u_x;\n")
    folder.write("migrations/app/0004_n.sql", "ALTER TABLE app.u ALTER COLUMN x SET NOT NULL;\n")
    assert rules(folder.lint().findings) == []


def test_squawk_finds_what_blocks(folder: Folder) -> None:
    folder.write(
        FIRST,
        "-- é ü\nCREATE INDEX t_x ON app.t (x);\nCOMMENT ON TABLE app.ü IS 'é'; ALTER TABLE app.t\n"
        "  ADD CONSTRAINT c CHECK (x <> '');\nALTER TABLE app.u ALTER COLUMN x SET NOT NULL;\n",
    )
    found = folder.lint().findings
    assert rules(found) == [
        "2 squawk/require-concurrent-index-creation",
        "4 squawk/constraint-missing-not-valid",
        "5 squawk/adding-not-nullable-field",
    ]
    assert str(found[1].location) == f"{FIRST}:4:3"
    assert found[0].recipe == "Use `concurrently` to avoid blocking writes"


def test_the_places_of_squawk_count_characters(folder: Folder) -> None:
    folder.write(FIRST, "COMMENT ON TABLE app.ü IS 'é'; ALTER TABLE app.t DROP COLUMN a;\n")
    assert [str(finding.location) for finding in folder.lint().findings] == [f"{FIRST}:1:50"]


def test_what_sqlfluff_cannot_parse_is_a_note_and_what_postgres_cannot_is_an_error(folder: Folder) -> None:
    folder.write(
        SCHEMA,
        "create table app.t (a integer);\n\n"
        "create rule r as on insert to app.t do instead nothing;\n\n"
        "create statistics app.s (dependencies) on a, (a + 1) from app.t;\n",
    )
    gap = folder.lint().findings
    assert {str(finding.severity) for finding in gap} == {"note"}
    assert gap[0].message == "sqlfluff cannot parse this, PostgreSQL can"
    folder.write(SCHEMA, "create table app.t (\n  a integer,,\n  b integer\n);\n")
    (finding,) = folder.lint().findings
    assert (str(finding.location), finding.rule, finding.message) == (
        f"{SCHEMA}:2:13",
        "syntax-error",
        'syntax error at or near ","',
    )


def test_what_nests_too_deep_for_sqlfluff_is_a_note(folder: Folder) -> None:
    folder.write(SCHEMA, f"create view app.v as select {'(' * 700}1{')' * 700} as a;\n")
    assert {finding.rule for finding in folder.lint().findings} >= {"sqlfluff-cannot-parse"}
    assert {str(finding.severity) for finding in folder.lint().findings if finding.rule != "LT05"} == {"note"}


def test_commands_of_psql_are_errors_but_for_the_guards_of_a_dump(folder: Folder) -> None:
    folder.write(FIRST, "\\restrict x\n\\set a 1\nselect 1;\n\\unrestrict x\n")
    (finding,) = folder.lint().findings
    assert rules([finding]) == ["2 psql-command"]
    assert finding.message == "\\set is a command of psql, not SQL"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbfselect 1;\n", "the file starts with a byte order mark"),
        (b"select 1;\nselect '\xff';\n", "byte 0xff is not valid UTF-8"),
        (b"select '\0';\n", "the file holds a NUL byte"),
    ],
)
def test_files_that_postgres_does_not_read(folder: Folder, content: bytes, message: str) -> None:
    folder.write(FIRST, content)
    (finding,) = folder.lint().findings
    assert (finding.rule, finding.message) == ("unreadable-file", message)


def test_carriage_returns_in_a_migration(folder: Folder) -> None:
    folder.write(FIRST, b"select 1;\r\nselect 2;\r\n")
    assert rules(folder.lint().findings) == ["1 carriage-return"]


def test_generated_sql_is_not_judged_by_style_and_hand_written_sql_by_mistakes_alone(folder: Folder) -> None:
    folder.write(
        FIRST,
        "-- generated by pgsluice from schema/app; do not edit\n\n-- expand\n\n"
        "CREATE VIEW app.v AS WITH unused AS (SELECT 1 AS a) SELECT 2 AS b;\n\n"
        "-- backfill (hand-written)\n\n"
        "WITH unused AS (SELECT 1 AS a)\nUPDATE app.t SET b=2  WHERE c=3;\n",
    )
    assert rules(folder.lint().findings) == ["9 sqlfluff/ST03"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (EXTENDS + "{% block backfil %}{% endblock %}\n", 2, "unknown block backfil, did you mean backfill?"),
        (EXTENDS + "{% block backfill %}\n{{ nothing }}\n{% endblock %}\n", 3, None),
        (
            EXTENDS + "{% block backfill %}\nselekt 1;\n{% endblock %}\n",
            3,
            'syntax error at or near "selekt" in block backfill',
        ),
        (EXTENDS + "{% block backfill %}\n{% endblock\n", 3, None),
    ],
)
def test_errors_of_a_template_name_its_line(
    folder: Folder, text: str, line: int, message: str | None
) -> None:
    folder.write(TEMPLATE, text)
    (finding,) = folder.lint().findings
    assert rules([finding]) == [f"{line} template-error"]
    assert message in (None, finding.message)


def test_templates_with_macros_are_clean(folder: Folder) -> None:
    folder.write(
        TEMPLATE,
        EXTENDS
        + '{% import "macros.sql.j2" as sql %}\n{% import "own.sql.j2" as own %}\n{% set txmode = "none" %}\n'
        "{% block preflight %}\n{{ super() }}\n"
        '{{ sql.refuse_if(rows="select t.id from app.t as t where t.name is null", message="no name",'
        ' hint="Fill them.") }}\n{% endblock %}\n'
        "{% block backfill %}\n"
        '{{ sql.backfill(table="app.t", set="a = 1", where="a is null", batch=10, key="id") }}\n'
        "{{ own.hello(tables) }}\n{% endblock %}\n",
    )
    folder.write(
        "templates/app/locked.sql.j2",
        EXTENDS + '{% import "macros.sql.j2" as sql %}\n'
        "{% block locks %}\n{{ sql.lock_tables(tables) }}\n{% endblock %}\n",
    )
    folder.write(
        "templates/own.sql.j2",
        "{% macro hello(tables) %}\nselect 1 as {{ tables | length | string and 'a' }};\n{% endmacro %}\n",
    )
    assert [str(finding) for finding in folder.lint().findings] == []


def test_closed_migrations_stop_nothing_and_open_ones_do(folder: Folder) -> None:
    folder.write(FIRST, "drop table app.t cascade;\nset work_mem = '1MB';\n")
    folder.record()
    folder.write(SECOND, "set work_mem = '1MB';\n")
    report = folder.lint()
    assert [finding.location.file for finding in report.findings] == [SECOND]
    assert {str(finding.severity) for finding in report.closed} == {"note"}
    assert report.count_failing(strict=True) == 1
    folder.write(FIRST, "set work_mem = '2MB';\n")
    assert {finding.location.file for finding in folder.lint().findings} == {FIRST, SECOND}


def test_since_closes_only_what_a_revision_has(folder: Folder) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *words], cwd=folder.root, check=True, capture_output=True)

    folder.write(FIRST, "set work_mem = '1MB';\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=first")
    folder.write(SECOND, "set work_mem = '1MB';\n")
    folder.record()
    assert folder.lint().findings == ()
    assert [finding.location.file for finding in folder.lint(since="HEAD").findings] == [SECOND]
    with pytest.raises(InputError) as caught:
        folder.lint(since="nowhere")
    assert caught.value.message.startswith("git does not know nowhere: ")


ALLOWED: Final = {
    "above": "-- pgsluice: allow drop-cascade: nobody uses it\ndrop table app.t cascade;\n",
    "above, in words of another order": "-- pgsluice-allow drop-cascade\ndrop table app.t cascade;\n",
    "beside": "drop table app.t cascade;  -- pgsluice: allow drop-cascade\n",
    "inside": "drop table\n  app.t -- pgsluice: allow drop-cascade, squawk/ban-drop-table\n  cascade;\n",
    "for the file": "drop table app.t cascade;\n\nselect 1;\n-- pgsluice: allow-file drop-cascade\n",
}


@pytest.mark.parametrize("place", ALLOWED)
def test_a_comment_allows_what_a_rule_forbids(folder: Folder, place: str) -> None:
    folder.write(FIRST, ALLOWED[place])
    assert "drop-cascade" not in {finding.rule for finding in folder.lint().findings}


def test_a_comment_allows_one_statement_and_one_rule(folder: Folder) -> None:
    folder.write(
        FIRST,
        "-- pgsluice: allow drop-cascade\ndrop index app.v cascade;\ndrop index app.w cascade;\n"
        "-- pgsluice: allow drop-cascad\nset work_mem = '1MB';\n",
    )
    found = folder.lint().findings
    own = [finding for finding in found if finding.engine == "pgsluice"]
    assert rules(own) == ["3 drop-cascade", "4 unknown-rule", "5 set-without-local"]
    assert own[1].message == "no rule is called drop-cascad, did you mean drop-cascade?"


def test_comments_of_the_other_linters_count(folder: Folder) -> None:
    folder.write(SCHEMA, "CREATE table users (user_id bigint); -- noqa: CP01\n")
    folder.write(FIRST, "-- squawk-ignore ban-drop-column\nalter table app.t drop column a;\n")
    assert rules(folder.lint().findings) == []


def test_settings_of_the_project_go_on_top(folder: Folder) -> None:
    folder.write(SCHEMA, "CREATE table users (user_id bigint);\n")
    folder.write(FIRST, "alter table app.t drop column a;\ncreate table app.n (a integer);\n")
    folder.write(".sqlfluff", "[sqlfluff:rules:capitalisation.keywords]\ncapitalisation_policy = upper\n")
    folder.write(
        ".squawk.toml",
        'excluded_rules = ["ban-drop-column"]\nincluded_rules = ["prefer-bigint-over-int"]\n',
    )
    found = folder.lint().findings
    assert rules(found) == ["2 squawk/prefer-bigint-over-int", "1 sqlfluff/CP01"]
    assert found[1].message == "keywords must be upper case"


def test_settings_of_a_folder_go_on_top_of_the_projects(folder: Folder) -> None:
    folder.write(SCHEMA, "CREATE table users (user_id bigint);\n")
    folder.write(FIRST, "alter table app.t drop column a;\n")
    folder.write(".sqlfluff", "[sqlfluff]\nexclude_rules = CP02\n")
    folder.write("schema/app/.sqlfluff", "[sqlfluff]\nexclude_rules = CP01\n")
    folder.write(".squawk.toml", 'excluded_paths = ["migrations/app/0001*"]\n')
    assert rules(folder.lint().findings) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (".squawk.toml", "excluded_rules = 1\n", "excluded_rules must be a list of strings"),
        (".squawk.toml", "nothing = 1\n", "unknown key nothing"),
        (".squawk.toml", "nothing\n", "cannot read the file: "),
        (".squawk.toml", 'excluded_rules = ["nothing"]\n', "squawk failed: "),
        (".sqlfluff", "[sqlfluff]\ndialect = nothing\n", "sqlfluff refuses its configuration: "),
    ],
)
def test_wrong_settings_are_bad_input(folder: Folder, name: str, text: str, message: str) -> None:
    folder.write(SCHEMA, "create table users (user_id bigint);\n")
    folder.write(FIRST, "select 1;\n")
    folder.write(name, text)
    with pytest.raises(InputError) as caught:
        folder.lint()
    assert caught.value.message.startswith(message)


def test_programs_that_are_not_there(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(FIRST, "select 1;\n")
    monkeypatch.setenv("PATH", str(folder.root))
    with pytest.raises(InputError) as caught:
        folder.lint(since="HEAD")
    assert str(caught.value) == "--since needs git, and there is no git program"
    monkeypatch.setattr(squawk, "PROGRAM", "no-such-program")
    with pytest.raises(InputError) as caught:
        folder.lint()
    assert str(caught.value) == "squawk is not installed\nhint: pip install squawk-cli"


def test_a_second_run_asks_no_engine(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(SCHEMA, "CREATE table users (user_id bigint);\n")
    folder.write(FIRST, "set work_mem = '1MB';\n")
    first = folder.lint()
    monkeypatch.delattr(engines, "Engines")
    assert folder.lint() == first
    assert json.loads((folder.root / CACHE).read_text("utf-8"))


def test_the_cache_forgets_what_changed(folder: Folder) -> None:
    folder.write(SCHEMA, "CREATE table users (user_id bigint);\n")
    folder.write(SECOND, "create or replace view app.v as select 1 as a;\n")
    assert rules(folder.lint().findings) == ["1 sqlfluff/CP01"]
    folder.write(SCHEMA, "create table users (user_id bigint);\n")
    folder.write(FIRST, "create view app.v with (security_invoker) as select 1 as a;\n")
    assert rules(folder.lint().findings) == ["1 security-invoker-lost"]


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b"\xff"])
def test_a_damaged_cache_counts_as_empty(folder: Folder, damage: bytes) -> None:
    folder.write(FIRST, "set work_mem = '1MB';\n")
    folder.write(CACHE, damage)
    assert rules(folder.lint().findings) == ["1 set-without-local"]


def test_files_that_say_atlas_sum_ignore_are_left_out(folder: Folder) -> None:
    folder.write(FIRST, "-- atlas:sum ignore\nnothing at all\n")
    project = load_project(folder.root)
    assert choose_all(project, project.targets) == ()


def test_every_rule_has_a_reason_and_a_recipe() -> None:
    for rule in RULES.values():
        assert rule.why.endswith(".")
        assert rule.recipe
        assert not rule.recipe.endswith(".")
