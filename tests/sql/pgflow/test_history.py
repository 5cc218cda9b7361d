"""What the migrations do beside the schema, and what the documentation's example does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg

from pgsluice.pipeline.devdb import bootstrap
from tests.client import apply_migration
from tests.sql.pgflow.conftest import ROOT
from tests.sql.pgflow.releases import MIGRATIONS

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb import DevServer

CRON: Final = Path(__file__).parent / "cron.sql"
JOBS: Final = [
    ("pgflow_cleanup_logs", "0 * * * *"),
    ("pgflow_ensure_workers", "1 second"),
    ("pgflow_requeue_stalled_tasks", "15 seconds"),
]
SQL_BLOCK: Final = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_migrations_are_the_released_states() -> None:
    assert [path.stem.split("_", 1)[1] for path in MIGRATIONS[:3]] == [
        "baseline_0_15_0",
        "task_lifecycle_0_15_1",
        "startup_compilation_0_16_0",
    ]


def test_migrations_schedule_the_jobs_where_cron_is_installed(server: DevServer) -> None:
    with server.clone(bootstrap(server, ["pgmq"], root=ROOT)) as conninfo:
        apply_migration(conninfo, CRON)
        for path in MIGRATIONS:
            apply_migration(conninfo, path)
        with psycopg.connect(conninfo) as conn:
            jobs = conn.execute("select jobname, schedule from cron.job order by jobname").fetchall()
    assert jobs == JOBS


def test_example_of_the_documentation_runs(conn: psycopg.Connection[Any]) -> None:
    (example,) = SQL_BLOCK.findall((ROOT / "docs/pgflow.md").read_text(encoding="utf-8"))
    conn.execute(example)
    query = "select status, output from pgflow.runs"
    assert conn.execute(query).fetchall() == [("completed", {"store": "kept"})]
