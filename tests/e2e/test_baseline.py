"""`pgsluice baseline`: databases that were there first."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.pipeline.live.database import shown
from tests.client import apply_migration
from tests.conftest import EMBEDDED
from tests.e2e.project import SEQUENCE, InProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject
    from tests.e2e.project import Project

ONE: Final = "create schema app;\ncreate table app.users (id int);\n"
TWO: Final = "create table app.orders (id int);\n"
LEDGER: Final = "select filename, kind, tool from pgsluice.migrations order by filename"
ATLAS: Final = """
create schema atlas_schema_revisions;
create table atlas_schema_revisions.atlas_schema_revisions (
  version varchar primary key, description varchar not null, type bigint not null, applied bigint not null,
  total bigint not null, executed_at timestamptz not null, execution_time bigint not null, error text,
  error_stmt text, hash varchar not null, partial_hashes jsonb, operator_version varchar not null
);
"""
REVISION: Final = (
    "insert into atlas_schema_revisions.atlas_schema_revisions"
    " values (%s, %s, 2, 1, %s, now(), 1, null, null, %s, null, 'Atlas CLI v1.0')"
)


@pytest.fixture
def live(open_server: Callable[[str], DevServer]) -> Iterator[str]:
    """An empty database on the embedded server."""
    with open_server(EMBEDDED).clone(None) as conninfo:
        yield conninfo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, dev: str) -> Path:
    """The folder of a project with two migrations, to be copied."""
    made = InProcess(tmp_path_factory.mktemp("built") / "project", dev)
    made.write("pgsluice.toml", SEQUENCE)
    made.write("schema/app/one.sql", ONE)
    made.ok("build", "one")
    made.write("schema/app/two.sql", TWO)
    made.ok("build", "two")
    return made.root


@pytest.fixture
def project(built: Path, tmp_path: Path, dev: str) -> Project:
    """A project with two migrations."""
    return InProcess(Path(copytree(built, tmp_path / "project")), dev)


def rows(live: str, query: str = LEDGER) -> list[tuple[object, ...]]:
    """What a query gives."""
    with psycopg.connect(live) as conn:
        return conn.execute(query.encode()).fetchall()


def ledger_is_there(live: str) -> bool:
    """Whether anything was written."""
    return rows(live, "select to_regclass('pgsluice.migrations') is not null") == [(True,)]


def apply_all(live: str, project: Project) -> None:
    """Run the migrations as psql does."""
    for path in project.migrations():
        apply_migration(live, path)


def test_a_database_is_adopted_once(project: Project, live: str) -> None:
    apply_all(live, project)
    dry = project.ok("baseline", "--database", live, "--dry-run")
    assert "would record 2 migrations of app, up to 0002_two.sql, as the baseline of " in dry
    assert not ledger_is_there(live)
    assert "\nrecorded 2 migrations of app, up to 0002_two.sql, as the baseline of " in project.ok(
        "baseline", "--database", live
    )
    assert [(name, kind) for name, kind, _ in rows(live)] == [
        ("0001_one.sql", "baseline"),
        ("0002_two.sql", "baseline"),
    ]
    assert "nothing to do: the ledger of " in project.ok("baseline", "--database", live)
    assert "no drift" in project.ok("drift", "--database", live)


def test_a_database_that_is_not_what_the_migrations_make_is_refused(project: Project, live: str) -> None:
    apply_migration(live, project.migrations()[0])
    error = project.fails(4, "baseline", "--database", live)
    head, *lines = error.splitlines()
    assert head.endswith(" is not what the migrations of app up to 0002_two.sql make")
    assert lines == [
        "  table app.orders: missing",
        "hint: pgsluice baseline 0001 --target app: up to there the catalog agrees",
    ]
    assert not ledger_is_there(live)
    assert "up to 0001_one.sql" in project.ok("baseline", "0001", "--database", live)
    assert [name for name, *_ in rows(live)] == ["0001_one.sql"]


def test_an_empty_database_is_adopted_at_nothing(project: Project, live: str) -> None:
    error = project.fails(4, "baseline", "--database", live)
    assert error.endswith("hint: pgsluice apply --target app: the database has nothing of this target yet\n")


def test_a_database_that_no_version_made_says_what_can_be_done(project: Project, live: str) -> None:
    with psycopg.connect(live) as conn:
        conn.execute("create schema app; create table app.other (i int)")
    error = project.fails(4, "baseline", "--database", live)
    assert "hint: name the version that it has, mend what differs, or --allow-drift" in error


def test_drift_may_be_allowed_and_is_remembered(project: Project, live: str) -> None:
    apply_all(live, project)
    with psycopg.connect(live) as conn:
        conn.execute("create index mine on app.users (id)")
    out = project.ok("baseline", "--database", live, "--allow-drift")
    assert out.startswith("index app.mine: not expected\n")
    assert all(str(tool).endswith(", drift allowed: 1 facets") for *_, tool in rows(live))
    assert project.run("drift", "--database", live).code == 1


def test_a_ledger_that_says_something_else_is_left_alone(project: Project, live: str) -> None:
    apply_all(live, project)
    project.ok("baseline", "--database", live)
    error = project.fails(4, "baseline", "0001", "--database", live)
    assert error == (
        f"error: the ledger of {shown(live)} has 2 migrations of target app already\n"
        "  0001_one.sql: baseline\n  0002_two.sql: baseline\nhint: pgsluice status --target app\n"
    )
    assert len(rows(live)) == 2


def test_what_cannot_be_adopted_is_named(make: MakeProject, project: Project, live: str) -> None:
    assert "no migration has version 0009" in project.fails(2, "baseline", "0009", "--database", live)
    assert project.fails(2, "baseline", "0001", "--from-atlas", "--database", live) == (
        "error: --from-atlas takes the version from Atlas's table, and none from the command line\n"
    )
    empty = make({"schema/app/one.sql": ONE}, name="empty")
    assert empty.fails(2, "baseline", "--database", live) == (
        "error: target app has no migrations\nhint: pgsluice build NAME\n"
    )
    project.write("migrations/app/0001_one.sql", "select 1;\n")
    assert "are not as they were recorded" in project.fails(4, "baseline", "--database", live)


def test_a_role_that_may_not_read_the_ledger_adopts_nothing(project: Project, live: str) -> None:
    apply_all(live, project)
    project.ok("baseline", "--database", live)
    with psycopg.connect(live) as conn:
        if not conn.execute("select from pg_roles where rolname = 'app_looker'").rowcount:
            conn.execute("create role app_looker login")
    looker = f"{live} user=app_looker"
    assert project.fails(3, "baseline", "--database", looker) == (
        f"error: the ledger of {shown(looker)} cannot be read\n"
        "hint: grant select on pgsluice.migrations, or connect as the role that runs the migrations\n"
    )


def test_what_atlas_applied_is_taken_over(project: Project, live: str) -> None:
    apply_all(live, project)
    recorded = dict(line.split(" h1:") for line in project.read("migrations/app/atlas.sum").splitlines()[1:])
    with psycopg.connect(live) as conn:
        conn.execute(ATLAS)
        for name, digest in recorded.items():
            version, _, description = name.removesuffix(".sql").partition("_")
            conn.execute(REVISION, [version, description, 1, digest])
    result = json.loads(project.ok("baseline", "--from-atlas", "--database", live, "--json"))
    assert result["migrations"] == ["0001_one.sql", "0002_two.sql"]
    assert result["recorded"]
    assert len(rows(live)) == 2
    assert len(rows(live, "select from atlas_schema_revisions.atlas_schema_revisions")) == 2


def test_what_atlas_left_in_part_is_refused(project: Project, live: str) -> None:
    apply_all(live, project)
    with psycopg.connect(live) as conn:
        conn.execute(ATLAS)
        conn.execute(REVISION, ["0001", "one", 2, ""])
    error = project.fails(4, "baseline", "--from-atlas", "--database", live)
    assert "0001_one.sql was applied in part, 1 of 2 statements" in error
    assert not ledger_is_there(live)
