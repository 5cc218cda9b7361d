"""migra reads through psycopg 3, and its second diff is one of the proofs of `pgsluice check`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from pgsluice.pipeline.check import check_on
from pgsluice.pipeline.opinion import second_diff
from tests.conftest import server_url
from tests.pipeline.opinion.project import UserProject, blind, start_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest
    from psycopg import Connection

    from pgsluice.pipeline.check import CheckResult
    from pgsluice.pipeline.devdb import DevServer

USERS = (
    "create schema app;\ncreate table app.users (user_id int primary key, is_admin boolean default false);\n"
)
SECOND_DIFF = "a second diff by migra is empty"
IMPORTED = """
import sys, warnings
warnings.simplefilter("error")
{before}
from pgsluice.pipeline.opinion.inspector import import_migra
import_migra()
print(*sorted(name for name in sys.modules if name.partition(".")[0] in {names}))
"""


@contextmanager
def pair(server: DevServer, have: str, want: str) -> Iterator[tuple[Connection[Any], Connection[Any]]]:
    """Two scratch databases."""
    with (
        server.clone(None) as one,
        server.clone(None) as other,
        psycopg.connect(one, autocommit=True) as first,
        psycopg.connect(other, autocommit=True) as second,
    ):
        first.execute(have.encode())
        second.execute(want.encode())
        yield first, second


def imported(names: set[str], before: str = "") -> list[str]:
    """Which of these packages a process has after it imported migra."""
    script = IMPORTED.format(names=names, before=before)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def checked(project: UserProject, server: DevServer) -> dict[str, CheckResult]:
    """All results of `check` on one server, by name."""
    loaded = project.loaded
    return {one.name: one for one in check_on(loaded, loaded.targets, server_url(server), progress=print)}


def test_importing_migra_brings_no_other_driver_and_leaves_no_stand_in() -> None:
    assert imported({"sqlalchemy", "sqlbag", "psycopg2", "pkg_resources"}) == []


def test_a_module_that_stood_where_the_stand_in_comes_is_put_back() -> None:
    before = "import types; sys.modules['pkg_resources'] = types.ModuleType('pkg_resources'); "
    before += "sys.modules['pkg_resources'].resource_stream = None"
    assert imported({"pkg_resources"}, before) == ["pkg_resources"]


def test_equal_databases_have_an_empty_second_diff(server: DevServer) -> None:
    with pair(server, USERS, USERS) as (have, want):
        assert second_diff(have, want, manages=["app"]).proposals == ()


def test_the_order_of_columns_is_no_proposal(server: DevServer) -> None:
    columns = "is_admin boolean default false, user_id int primary key"
    moved = f"create schema app;\ncreate table app.users ({columns});"
    with pair(server, USERS, moved) as (have, want):
        assert second_diff(have, want, manages=["app"]).proposals == ()


def test_objects_outside_of_what_is_managed_are_no_proposals(server: DevServer) -> None:
    others = "create schema other; create table other.t (a int); create table app.scratch_t (a int);"
    with pair(server, USERS, USERS + others) as (have, want):
        assert second_diff(have, want, manages=["app"], ignore=["app.scratch_*"]).proposals == ()


def test_a_proposal_that_does_not_parse_is_marked(server: DevServer) -> None:
    enum = "create schema app; create type app.mood as enum ('it''s fine'{});"
    with pair(server, enum.format(""), enum.format(", 'bad'")) as (have, want):
        diff = second_diff(have, want, manages=["app"])
    assert any(proposal.endswith(" -- rejected: does not parse") for proposal in diff.proposals), diff


def test_a_query_of_migra_that_the_server_refuses_leaves_it_without_opinion(server: DevServer) -> None:
    parents = "create table app.a (); create table app.b (); create table app.c () inherits (app.a, app.b);"
    with pair(server, USERS + parents, USERS + parents) as (have, want):
        diff = second_diff(have, want, manages=["app"])
    assert diff.failure == (
        "CardinalityViolation: more than one row returned by a subquery used as an expression"
    )


def test_check_asks_migra_and_pg_dump(tmp_path: Path, server: DevServer) -> None:
    project = start_project(tmp_path, server)
    project.build("users", USERS)
    results = checked(project, server)
    assert [name for name, one in results.items() if one.problem is not None or one.note is not None] == []
    assert {SECOND_DIFF, "pg_dump sees no difference"} <= results.keys()


def test_check_fails_by_what_migra_sees_and_the_snapshot_does_not(
    tmp_path: Path, server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = start_project(tmp_path, server)
    project.build("users", USERS)
    blind(monkeypatch, "expression")
    project.write_schema(USERS.replace("false", "true"))
    results = checked(project, server)
    problem = results[SECOND_DIFF].problem
    assert results["the migrations lead to the schema"].problem is None
    assert results["pg_dump sees no difference"].problem is not None
    assert str(problem) == (
        "the migrations of target app do not lead to its schema: migra sees a difference that the catalog "
        "comparison does not\n"
        '  alter table "app"."users" alter column "is_admin" set default true;\n'
        "hint: report it as a fault of pgsluice, with these lines; to go on, write the statements in a "
        "migration of your own: pgsluice new NAME"
    )


def test_check_hears_nothing_from_migra_where_the_catalogs_differ_already(
    tmp_path: Path, server: DevServer
) -> None:
    project = start_project(tmp_path, server)
    project.build("users", USERS)
    project.write_schema(USERS.replace("false", "true"))
    result = checked(project, server)[SECOND_DIFF]
    assert (result.problem, result.note) == (None, "not asked: the catalogs differ already")
