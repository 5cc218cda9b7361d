"""Input that cannot be used: a clear error with its place, exit code 2, and no file touched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.project import SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.e2e.conftest import MakeProject

USERS: Final = "create table users (\n  user_id bigint primary key,\n  name text\n);\n"
TABLE: Final[Mapping[str, str | bytes]] = {"schema/app/users.sql": USERS}
EXTENDS: Final = '{% extends "migration.sql.j2" %}\n'
FIRST: Final = ("build", "first")


@dataclass(frozen=True, slots=True)
class Bad:
    """A project, a command, and the whole message that it ends with."""

    message: str
    files: Mapping[str, str | bytes] = field(default_factory=lambda: TABLE)
    config: str = SEQUENCE
    arguments: tuple[str, ...] = FIRST
    code: int = 2


BAD: Final[Mapping[str, Bad]] = {
    "missing_schema_folder": Bad(
        "error: schema folder schema/app does not exist\nhint: mkdir -p schema/app\n", files={}
    ),
    "syntax_error": Bad(
        'error: schema/app/bad.sql:3:9: syntax error at or near "int"\n    y int int\n          ^\n',
        files={**TABLE, "schema/app/bad.sql": "create table bad (\n  x int,\n  y int int\n);\n"},
    ),
    "syntax_error_after_unicode": Bad(
        'error: schema/app/bad.sql:2:3: syntax error at or near "selec"\n  ä selec 1;\n    ^\n',
        files={"schema/app/bad.sql": "select 'äöü €'\nä selec 1;\n"},
    ),
    "duplicate_table": Bad(
        "error: schema/app/users.sql:1: table users is defined twice\n"
        "  first defined at schema/app/other.sql:2: table users\n"
        "hint: delete one of the two\n",
        files={**TABLE, "schema/app/other.sql": f"\n{USERS}"},
    ),
    "duplicate_function": Bad(
        "error: schema/app/g.sql:1: function f(int4) is defined twice\n"
        "  first defined at schema/app/f.sql:1: function f(int4)\n"
        "hint: delete one of the two\n",
        files={
            "schema/app/f.sql": "create function f(a int) returns int language sql as $$ select 1 $$;",
            "schema/app/g.sql": "create function f(b integer) returns int language sql as $$ select 2 $$;",
        },
    ),
    "cycle_between_files": Bad(
        "error: schema/app/a.sql:1: these statements need each other, so that no order loads them\n"
        "  schema/app/a.sql:1: view a needs view b\n"
        "  schema/app/b.sql:1: view b needs view a\n"
        "hint: take the use out of one of them, or write it as a statement of its own that comes later\n",
        files={
            "schema/app/a.sql": "create view a as select * from b;",
            "schema/app/b.sql": "create view b as select * from a;",
        },
    ),
    "unresolved_relation": Bad(
        'error: schema/app/a.sql:2:15: relation "nowhere" does not exist\n'
        "  select * from nowhere;\n                ^\n",
        files={"schema/app/a.sql": "create view a as\nselect * from nowhere;"},
    ),
    "unresolved_column": Bad(
        'error: schema/app/a.sql:2:8: column "nothing" does not exist\n'
        "  select nothing from users;\n         ^\n",
        files={**TABLE, "schema/app/a.sql": "create view a as\nselect nothing from users;"},
    ),
    "object_outside_manages": Bad(
        "error: the schema makes 1 object(s) outside of what target app manages: app\n"
        "  table other.b\n"
        "hint: add their schemas to manages of target app, or move them; "
        "what belongs to no schema, such as an extension, goes into requires\n",
        files={
            "schema/app/a.sql": "create schema app; create schema other;"
            "create table app.a (x int); create table other.b (y int);"
        },
        config=f'{SEQUENCE}manages = ["app"]\n',
    ),
    "invalid_utf8": Bad(
        "error: schema/app/a.sql:2: the file is not valid UTF-8: byte 0xe9 at offset 30\n"
        "hint: save the file as UTF-8\n",
        files={"schema/app/a.sql": b"create table a (x int);\n-- caf\xe9\n"},
    ),
    "byte_order_mark": Bad(
        "error: schema/app/a.sql:1: the file starts with a byte order mark\n"
        "hint: sed -i '1s/^\\xef\\xbb\\xbf//' schema/app/a.sql\n",
        files={"schema/app/a.sql": b"\xef\xbb\xbfcreate table a (x int);\n"},
    ),
    "nul_byte": Bad(
        "error: schema/app/a.sql:2: the file holds a NUL byte\n",
        files={"schema/app/a.sql": b"create table a (x int);\n\0"},
    ),
    "psql_meta_command": Bad(
        "error: schema/app/a.sql:2:1: \\i is a command of psql, not SQL\n  \\i other.sql\n  ^\n"
        "hint: take the line out: schema files go to the server as they are\n",
        files={"schema/app/a.sql": "create table a (x int);\n\\i other.sql\n"},
    ),
    "transaction_control": Bad(
        "error: schema/app/users.sql:1: begin (transaction control) has no place in a schema file\n"
        "hint: take it out: the whole schema loads in one transaction\n",
        files={"schema/app/users.sql": f"begin;\n{USERS}commit;\n"},
    ),
    "temporary_table": Bad(
        "error: schema/app/users.sql:1: a temporary object has no place in a schema file\n"
        "hint: take it out: it is gone once the schema has been loaded\n",
        files={"schema/app/users.sql": "create temp table users as select 1 as x;\n"},
    ),
    "template_syntax": Bad(
        "error: templates/app/first.sql.j2:3: expected an expression, got 'end of statement block'\n"
        "  {% if %}\n",
        files={
            **TABLE,
            "templates/app/first.sql.j2": EXTENDS + "{% block backfill %}\n{% if %}\n{% endblock %}\n",
        },
    ),
    "undefined_variable": Bad(
        "error: templates/app/first.sql.j2:3: nothing is not defined\n  select {{ nothing }};\n"
        "  templates know migration, tables, target, transactional\n",
        files={
            **TABLE,
            "templates/app/first.sql.j2": EXTENDS
            + "{% block backfill %}\nselect {{ nothing }};\n{% endblock %}\n",
        },
    ),
    "unknown_block": Bad(
        "error: templates/app/first.sql.j2:2: unknown block backfil, did you mean backfill?\n"
        "  {% block backfil %}\n",
        files={
            **TABLE,
            "templates/app/first.sql.j2": EXTENDS + "{% block backfil %}\nselect 1;\n{% endblock %}\n",
        },
    ),
    "unknown_key": Bad(
        "error: pgsluice.toml:2: unknown key targets.app.versionin, did you mean versioning?\n",
        config='[targets.app]\nversionin = "sequence"\n',
    ),
    "invalid_toml": Bad(
        "error: pgsluice.toml:1:13: not valid TOML: expected ']' at the end of a table declaration\n"
        "  [targets.app\n              ^\n",
        config='[targets.app\nversioning = "sequence"\n',
    ),
    "required_file_missing": Bad(
        "error: cannot read required file boot.sql: No such file or directory\n"
        "hint: correct requires = [...]; its paths are relative to the project root\n",
        config=f'{SEQUENCE}requires = ["boot.sql"]\n',
    ),
    "unknown_target": Bad(
        "error: no target is called nope; there is app\nhint: --target app\n",
        arguments=(*FIRST, "--target", "nope"),
    ),
    "name_with_spaces": Bad(
        "error: a migration's name is made of a-z, 0-9 and _, not 'First Thing'\nhint: first_thing\n",
        arguments=("build", "First Thing"),
    ),
    "name_that_leaves_the_folder": Bad(
        "error: a migration's name is made of a-z, 0-9 and _, not '../x'\nhint: x\n",
        arguments=("build", "../x"),
    ),
    "change_without_a_name": Bad(
        "error: the schema of target app changed, and no migration is open\n"
        "  create table public.users\n"
        "hint: give it a name: pgsluice build NAME\n",
        arguments=("build",),
    ),
    "plpgsql_body": Bad(
        'error: schema/app/f.sql:4:3: syntax error at or near "retur"\n'
        "    retur 1;\n    ^\n  in the body of function f()\n",
        files={
            "schema/app/f.sql": "\ncreate function f() returns int language plpgsql as $$\n"
            "begin\n  retur 1;\nend\n$$;\n"
        },
    ),
    "sql_body": Bad(
        'error: schema/app/f.sql:2:10: column "nothing" does not exist\n'
        "    select nothing from users\n           ^\n  in the body of function f()\n",
        files={
            **TABLE,
            "schema/app/f.sql": "create function f() returns int language sql as $$\n"
            "  select nothing from users\n$$;\n",
        },
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_and_changes_nothing(make: MakeProject, name: str) -> None:
    bad = BAD[name]
    project = make(bad.files, config=bad.config)
    assert project.fails(bad.code, *bad.arguments) == bad.message


@pytest.mark.parametrize("name", ["syntax_error", "unresolved_column", "plpgsql_body", "template_syntax"])
def test_bad_edit_of_a_built_project_changes_nothing(make: MakeProject, name: str) -> None:
    bad = BAD[name]
    project = make({"schema/app/base.sql": "create table base (x int);"})
    project.ok("build", "zero")
    for file, content in bad.files.items():
        project.write(file, content)
    assert project.fails(bad.code, *bad.arguments) == bad.message


def test_unknown_option_points_at_the_help(make: MakeProject) -> None:
    said = make(TABLE).fails(2, *FIRST, "--destructive")
    assert said.startswith("error: no such option: --destructive")
    assert said.endswith("\nhint: pgsluice build --help\n")


def test_extension_that_the_server_lacks_is_named(make: MakeProject) -> None:
    project = make(TABLE, config=f'{SEQUENCE}requires = ["pgcrypto"]\n')
    assert "extension pgcrypto is not available" in project.fails(2, *FIRST)
    embedded = make(TABLE, config=f'{SEQUENCE}requires = ["pgcrypto"]\n', name="embedded")
    said = embedded.fails(2, *FIRST, PGSLUICE_DEV="embedded")
    assert "pgcrypto" in said
    assert "dev = " in said
    embedded.ok("dev", "stop")


def test_no_project_is_said_from_any_command(make: MakeProject, tmp_path: Path) -> None:
    project = make()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for command in ("build x", "diff", "verify", "check", "release", "new x", "dev stop"):
        done = project.run("-C", str(elsewhere), *command.split())
        assert done.code == 2, (command, done)
        assert "pgsluice init starts one here" in done.stderr, (command, done)
    assert list(elsewhere.iterdir()) == []
