"""pgqueuer 0.10 in a live database becomes 1.6: an enum moves, ids widen, rows are folded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.strangers.live import live_database

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb import DevServer
    from tests.strangers.packages import Packages

pytestmark = pytest.mark.slow

NEEDED: Final = ("pydantic-settings==2.16.3", "anyio==4.16.0", "python-dotenv==1.2.4")
OLD: Final = "pgqueuer==0.10.0"
NEW: Final = "pgqueuer==1.6.0"
SQL: Final = Path(__file__).with_name("pgqueuer_sql.py")

# Jobs that wait and that are picked; counts of jobs whose old key held the time in the queue as well.
JOBS: Final = """
insert into pgqueuer (priority, created, updated, heartbeat, status, entrypoint, payload)
select n % 3, t.at, t.at, t.at, (case n % 4 when 0 then 'picked' else 'queued' end)::pgqueuer_status,
  'resize', ('job ' || n)::bytea
from generate_series(1, 30) as n
cross join lateral (select '2024-01-01'::timestamptz + n * interval '1 min') as t (at);
insert into pgqueuer_statistics (created, count, priority, time_in_queue, status, entrypoint)
select '2024-01-01'::timestamptz + (n / 3) * interval '1 s', n, 0, n * interval '1 s',
  (array['exception', 'successful', 'canceled'])[1 + n % 2]::pgqueuer_statistics_status, 'resize'
from generate_series(1, 30) as n;
"""
KEPT: Final = (
    "select id, priority, created, updated, heartbeat, status, entrypoint, payload from pgqueuer order by id",
    "select id, created, count, priority, status, entrypoint from pgqueuer_statistics order by id",
)
ENQUEUE: Final = (
    "insert into pgqueuer (priority, status, entrypoint) values (0, 'queued', 'x') returning id, attempts"
)
LOSS: Final = "column public.pgqueuer_statistics.time_in_queue and its values"
TEMPLATE: Final = """\
{% extends "migration.sql.j2" %}
{% import "macros.sql.j2" as sql %}
{% block preflight %}
{{ sql.accept_loss("column public.pgqueuer_statistics.time_in_queue and its values") }}
{{ super() }}
{% endblock %}
"""
FOLD: Final = """\
{% block backfill %}
with ranked as (
  select
    s.id,
    sum(s.count) over bucket as total,
    row_number() over (bucket order by s.id) as position
  from public.pgqueuer_statistics as s
  window bucket as (
    partition by s.priority, date_trunc('sec', s.created at time zone 'UTC'), s.status, s.entrypoint
  )
), kept as (
  update public.pgqueuer_statistics as s
  set count = ranked.total
  from ranked
  where s.id = ranked.id and ranked.position = 1 and s.count <> ranked.total
)
delete from public.pgqueuer_statistics as s
using ranked
where s.id = ranked.id and ranked.position > 1;
{% endblock %}
"""
NAME: Final = "upgrade_to_1_6"
FILE: Final = f"templates/app/{NAME}.sql.j2"


def test_a_live_queue_becomes_what_the_new_release_installs(
    packages: Packages, server: DevServer, tmp_path: Path
) -> None:
    before, after = release_sql(packages, OLD), release_sql(packages, NEW)
    with (
        live_database(server, tmp_path / "live", sql=[before, JOBS]) as live,
        live_database(server, tmp_path / "fresh", sql=[after]) as fresh,
        live_database(
            server, tmp_path / "own", sql=[before, JOBS, release_sql(packages, NEW, "upgrade")]
        ) as own,
    ):
        fresh.adopt()
        live.adopt()
        live.on("baseline")
        live.take_schema(fresh)
        refused = live.fails(4, "build", NAME)
        assert refused.startswith(f"error: this change loses data\n  {LOSS}\n")
        rows = live.rows()

        live.write(FILE, TEMPLATE)
        live.ok("build", NAME)
        failed = live.fails(1, "apply", "--database", live.url)
        assert 'could not create unique index "pgqueuer_statistics_unique_count"' in failed
        assert "rolled back, nothing of this file is in the database" in failed
        assert live.rows() == rows
        live.undrifted()

        live.write(FILE, TEMPLATE + FOLD)
        live.ok("build")
        assert f"_{NAME}.sql (" in live.on("apply")
        live.undrifted()
        assert live.dump() == fresh.dump()
        for query in KEPT:  # as the release's own upgrade leaves them
            assert live.query(query) == own.query(query)
        assert live.query(ENQUEUE) == ["31|0"]


def test_the_upgrade_converts_the_values_of_one_enum_to_another(
    packages: Packages, server: DevServer, tmp_path: Path
) -> None:
    with (
        live_database(server, tmp_path / "live", sql=[release_sql(packages, OLD)]) as live,
        live_database(server, tmp_path / "fresh", sql=[release_sql(packages, NEW)]) as fresh,
    ):
        live.configure("app")
        plan = live.ok("diff", live.url, fresh.url, "--explain")
    assert "ADD VALUE" not in plan  # a new label may not be used in the transaction that adds it
    assert (
        "ALTER COLUMN status TYPE public.pgqueuer_status USING status::text::public.pgqueuer_status" in plan
    )
    assert [line for line in plan.splitlines() if line.startswith("-- loses data")] == [
        f"-- loses data: {LOSS}"
    ]


def release_sql(packages: Packages, requirement: str, what: str = "install") -> str:
    """The SQL of a release, from its own code."""
    folder = packages.unpack(requirement, *NEEDED)
    done = subprocess.run([sys.executable, SQL, folder, what], capture_output=True, text=True, check=True)
    return done.stdout
