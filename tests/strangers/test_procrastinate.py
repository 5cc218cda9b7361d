"""Procrastinate: its migrations against its `schema.sql`, and a live upgrade by its own files."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import load_project
from pgsluice.pipeline.check import check_on
from tests.strangers.live import Live, live_database

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.check import CheckResult
    from pgsluice.pipeline.devdb import DevServer
    from tests.strangers.packages import Packages

pytestmark = pytest.mark.slow

OLD: Final = "procrastinate==2.15.1"
NEW: Final = "procrastinate==3.10.0"
LEADS: Final = "the migrations lead to the schema"
COLUMNS: Final = (
    "select string_agg(attname, ', ' order by attnum) from pg_attribute"
    " where attrelid = 'procrastinate_jobs'::regclass and attnum > 0 and not attisdropped"
)
# Jobs as in production, made by the functions of the old release: done, failed, retried, running, periodic.
JOBS: Final = """
select procrastinate_defer_job('mail', 'app.send', 0, case when n % 5 = 0 then 'lock-' || n end, null,
  jsonb_build_object('n', n), null) from generate_series(1, 20) as n;
select (procrastinate_fetch_job(array['mail'])).id from generate_series(1, 6);
select procrastinate_finish_job(1, 'succeeded', false);
select procrastinate_finish_job(2, 'failed', false);
select procrastinate_retry_job(3, now() + interval '1 hour', null, null, null);
select procrastinate_defer_periodic_job('mail', null, null, 'app.nightly', 0, 'nightly', 1700000000, '{}');
"""
KEPT: Final = (
    "select id, queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at, attempts"
    " from procrastinate_jobs order by id",
    "select * from procrastinate_events order by id",
    "select id, task_name, defer_timestamp, job_id, periodic_id from procrastinate_periodic_defers",
)


def test_check_names_what_differs_between_their_migrations_and_their_schema(
    packages: Packages, server: DevServer, tmp_path: Path
) -> None:
    migrations, schema = release(packages, NEW)
    with (
        live_database(server, tmp_path / "migrated", sql=scripts(migrations)) as migrated,
        live_database(server, tmp_path / "made", sql=[schema.read_text(encoding="utf-8")]) as made,
    ):
        take_files(made, migrations, schema)
        assert "new: 00.00.00_01_initial.sql" in made.ok("rehash")
        results = {one.name: one for one in prove(made)}
        assert [one.problem for one in results.values()] == [None, None, None]
        # the judge: pg_dump, which prints both alike but for the order of columns
        assert migrated.dump() == made.dump()
        ((have,), (want,)) = migrated.query(COLUMNS), made.query(COLUMNS)
        assert have != want
        assert results[LEADS].note == (
            f"column order of public.procrastinate_jobs is {have}; the schema has {want}"
        )


def test_check_of_migrations_that_lag_behind_the_schema_names_and_counts(
    packages: Packages, server: DevServer, tmp_path: Path
) -> None:
    (migrations, _), (_, schema) = release(packages, OLD), release(packages, NEW)
    with live_database(server, tmp_path / "project") as live:
        take_files(live, migrations, schema)
        problem = {one.name: one for one in prove(live)}[LEADS].problem
        assert problem is not None
        assert problem.details[:2] == (
            "column public.procrastinate_jobs.abort_requested: missing",
            "column public.procrastinate_jobs.worker_id: missing",
        )
        assert problem.details[20] == "53 more differences"
        assert problem.details[21].startswith("column order of public.procrastinate_jobs is id, ")
        plan = live.ok("diff", "--explain")
    assert "ALTER INDEX public.procrastinate_jobs_lock_idx RENAME TO procrastinate_jobs_lock_idx_v1;" in plan
    assert "ADD VALUE 'retried'" in plan


def test_their_files_upgrade_a_live_database(packages: Packages, server: DevServer, tmp_path: Path) -> None:
    (before, _), (after, schema) = release(packages, OLD), release(packages, NEW)
    with (
        live_database(server, tmp_path / "live", sql=[*scripts(before), JOBS]) as live,
        live_database(server, tmp_path / "fresh", sql=scripts(after)) as fresh,
    ):
        take_files(live, before, schema)
        live.ok("rehash")
        assert "recorded 29 migrations of app" in live.on("baseline")
        kept = [live.query(query) for query in KEPT]
        take_files(live, after, schema)
        assert live.ok("rehash").count("  new: 03.") == 9
        # the folder leads to schema.sql, so that the lock can be written, and the 9 files are run
        assert "lead to this schema already" in live.ok("build")
        live.ok("verify")
        assert live.on("apply").count("applied 03.") == 9
        live.undrifted()
        assert live.dump() == fresh.dump()
        assert live.query(COLUMNS) == fresh.query(COLUMNS)
        assert [live.query(query) for query in KEPT] == kept
        assert "nothing to do" in live.on("apply")


def release(packages: Packages, requirement: str) -> tuple[Path, Path]:
    """The folder of a release's migrations, and its schema."""
    folder = packages.unpack(requirement) / "procrastinate/sql"
    return folder / "migrations", folder / "schema.sql"


def scripts(migrations: Path) -> list[str]:
    """The text of each migration in order."""
    return [path.read_text(encoding="utf-8") for path in sorted(migrations.glob("*.sql"))]


def take_files(live: Live, migrations: Path, schema: Path) -> None:
    """Put a release's files where a project has them."""
    live.configure("app")
    shutil.copytree(migrations, live.root / "migrations/app", dirs_exist_ok=True)
    live.write("schema/app/schema.sql", schema.read_text(encoding="utf-8"))


def prove(live: Live) -> list[CheckResult]:
    """What `check` proves on the project's own server."""
    project = load_project(live.root)
    return list(check_on(project, project.targets, live.dev, progress=lambda text: None))
