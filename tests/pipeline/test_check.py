"""What `check` says of migrations that lead to the schema, or not quite, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.check import CheckResult, check_on
from tests.conftest import server_url
from tests.pipeline.opinion.project import UserProject, start_project

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

USERS = "create schema app;\ncreate table app.users (user_id int primary key, email text);\n"
LEADS = "the migrations lead to the schema"


def test_check_names_columns_in_another_order(tmp_path: Path, server: DevServer) -> None:
    project = start_project(tmp_path, server)
    project.build("users", USERS)
    project.build("name", USERS.replace("email text", "name text, email text"))
    leads = _check(project, server)[LEADS]
    assert leads.problem is None
    assert leads.note == (
        "column order of app.users is user_id, email, name; the schema has user_id, name, email"
    )


def test_check_names_a_few_tables_with_another_order_and_counts_the_rest(
    tmp_path: Path, server: DevServer
) -> None:
    project = start_project(tmp_path, server)
    tables = "".join(f"create table app.t{n} (a int, c int);\n" for n in range(1, 6))
    project.build("tables", f"create schema app;\n{tables}")
    project.build("more", f"create schema app;\n{tables.replace('a int,', 'a int, b int,')}")
    assert _check(project, server)[LEADS].note == (
        "column order of app.t1 is a, c, b; the schema has a, b, c; "
        "column order of app.t2 is a, c, b; the schema has a, b, c; "
        "column order of app.t3 is a, c, b; the schema has a, b, c; 2 more tables"
    )


def test_check_counts_the_differences_that_it_does_not_name(tmp_path: Path, server: DevServer) -> None:
    project = start_project(tmp_path, server)
    project.build("users", USERS)
    columns = "".join(f", c{n:02} int" for n in range(1, 24))
    project.write_schema(USERS.replace("email text", f"email text{columns}"))
    problem = _check(project, server)[LEADS].problem
    assert str(problem).splitlines() == [
        "the migrations of target app do not lead to its schema",
        *(f"  column app.users.c{n:02}: missing" for n in range(1, 21)),
        "  3 more differences",
        "hint: pgsluice build NAME",
    ]


def test_check_names_differences_and_the_order_of_columns_together(tmp_path: Path, server: DevServer) -> None:
    project = start_project(tmp_path, server)
    project.build("users", USERS)
    project.build("name", USERS.replace("email text", "name text, email text"))
    project.write_schema(USERS.replace("email text", "name text default 'x', email text"))
    problem = _check(project, server)[LEADS].problem
    assert str(problem).splitlines()[1:-1] == [
        "  default app.users.name: missing",
        "  column order of app.users is user_id, email, name; the schema has user_id, name, email",
    ]


def _check(project: UserProject, server: DevServer) -> dict[str, CheckResult]:
    loaded = project.loaded
    return {one.name: one for one in check_on(loaded, loaded.targets, server_url(server), progress=print)}
