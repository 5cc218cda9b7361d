"""What a schema stands on, and schemas larger than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.client import apply_migration, psql
from tests.conftest import EMBEDDED
from tests.e2e.project import SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject

MANAGES: Final = f'{SEQUENCE}manages = ["app"]\n'
FIVE_MB: Final = 5_000_000
TABLES: Final = 500
PLATFORM: Final = "create schema platform;\ncreate table platform.accounts (account_id bigint primary key);\n"
ON_PLATFORM: Final = """\
create schema app;
create table app.users (
  user_id bigint primary key,
  account_id bigint not null references platform.accounts
);
"""
TABLE: Final = """\
create table {name} (
  id bigint generated always as identity primary key,
  parent_id bigint references {parent},
  name text not null,
  made timestamptz not null default now()
);
create index {name}_name_idx on {name} (name);
comment on table {name} is 'one of many';
"""


def test_schema_stands_on_pgmq(make: MakeProject) -> None:
    project = make(
        {
            "schema/app/app.sql": "create schema app;\n"
            "create function app.next() returns setof pgmq.message_record language sql "
            "as $$ select * from pgmq.read('jobs', 30, 1) $$;\n"
            "create table app.seen (message pgmq.message_record not null);\n"
        },
        config=f'{MANAGES}requires = ["pgmq"]\n',
    )
    project.ok("build", "first")
    assert "pgmq.message_record" in project.newest()
    assert "create schema pgmq" not in project.newest().lower()
    project.ok("diff", "--check")


def test_schema_stands_on_a_file(make: MakeProject, open_server: Callable[[str], DevServer]) -> None:
    project = make(
        {"platform.sql": PLATFORM, "schema/app/app.sql": ON_PLATFORM},
        config=f'{MANAGES}requires = ["platform.sql"]\n',
    )
    project.ok("build", "first")
    assert "create table platform" not in project.newest().lower()
    with open_server(EMBEDDED).clone(None) as conninfo:
        psql(conninfo, f"--file={project.root / 'platform.sql'}")
        apply_migration(conninfo, project.migrations()[0])
    project.write("platform.sql", PLATFORM.replace("create table", "create tabel"))
    project.write("schema/app/more.sql", "create table app.more (x int);\n")
    assert project.fails(2, "build").startswith("error: platform.sql:2")


def test_file_of_five_megabytes_loads_with_progress(make: MakeProject) -> None:
    line = "-- " + "x" * 96 + "\n"
    text = "create table big (x int);\n" + line * (FIVE_MB // len(line))
    body = "create function big_body() returns text language sql as $$ select '" + "y" * 1_000_000 + "' $$;\n"
    project = make({"schema/app/big.sql": text + body})
    assert (project.root / "schema/app/big.sql").stat().st_size > FIVE_MB
    done = project.run("build", "first")
    assert done.code == 0, done.stderr
    project.ok("verify")


@pytest.mark.slow
def test_schema_of_many_tables_builds_with_progress(make: MakeProject) -> None:
    project = make(config=SEQUENCE)
    for number in range(TABLES):
        name, parent = f"t{number:03}", f"t{max(number - 1, 0):03}"
        project.write(f"schema/app/tables/{name}.sql", TABLE.format(name=name, parent=parent))
    done = project.run("build", "first")
    assert done.code == 0, done.stderr
    assert " …\n" in done.stderr
    project.write("schema/app/tables/t250.sql", TABLE.format(name="t250", parent="t007"))
    project.ok("build", "second")
    project.ok("verify")
