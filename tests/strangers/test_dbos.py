"""The system database of DBOS 2.0 becomes that of 3.4: by a generated migration, and by its own 72."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import load_project
from pgsluice.pipeline.check import check_on
from tests.client import psql
from tests.strangers.live import Live, live_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer
    from tests.strangers.packages import Packages

pytestmark = pytest.mark.slow

OLD: Final = "dbos==2.0.0"
NEW: Final = "dbos==3.4.0"
SQL: Final = Path(__file__).with_name("dbos_sql.py")
OUTSIDE: Final = "-- atlas:txmode none\n\n"
START: Final = """
create schema dbos;
create table dbos.dbos_migrations (version bigint not null primary key);
"""
EXTENSION: Final = 'CREATE EXTENSION IF NOT EXISTS "uuid-ossp"'
ADDS_A_KEY: Final = 10  # DBOS itself skips it where the table has one

WORKFLOWS: Final = """
insert into dbos.dbos_migrations (version) values (1);
insert into dbos.workflow_status (workflow_uuid, status, name, queue_name, deduplication_id, inputs, output,
  recovery_attempts, created_at, updated_at)
select 'wf-' || n, (array['PENDING', 'SUCCESS', 'ERROR', 'ENQUEUED'])[1 + n % 4], 'app.step', 'q' || n % 2,
  case when n % 4 = 3 then 'dedup-' || n end, '{"args": [' || n || ']}', case when n % 4 = 1 then 'done' end,
  n % 3, 1700000000000 + n, 1700000000000 + n
from generate_series(1, 40) as n;
insert into dbos.operation_outputs (workflow_uuid, function_id, function_name, output)
select 'wf-' || n, f, 'step_' || f, 'out' from generate_series(1, 20) as n, generate_series(0, 2) as f;
insert into dbos.notifications (message_uuid, destination_uuid, topic, message, created_at_epoch_ms)
select 'm-' || n, 'wf-' || n, 't', '"hello"', 1700000000000 from generate_series(1, 10) as n;
insert into dbos.workflow_events (workflow_uuid, key, value) values ('wf-1', 'progress', '50');
insert into dbos.streams (workflow_uuid, key, value, "offset")
select 'wf-1', 's', 'v' || n, n from generate_series(0, 5) as n;
"""
KEPT: Final = (
    "select workflow_uuid, status, name, queue_name, deduplication_id, inputs, output, recovery_attempts,"
    " created_at, updated_at from dbos.workflow_status order by 1",
    "select workflow_uuid, function_id, function_name, output, application_name"
    " from dbos.operation_outputs order by 1, 2",
    "select message_uuid, destination_uuid, topic, message, consumed from dbos.notifications order by 1",
    "select workflow_uuid, key, value from dbos.workflow_events",
    'select workflow_uuid, key, value, "offset", function_id from dbos.streams order by 4',
)
DEFAULTS: Final = (
    "notifications.created_at_epoch_ms",
    "workflow_status.created_at",
    "workflow_status.updated_at",
)
ONLY: Final = "--schema=dbos"


@dataclass(frozen=True, slots=True)
class Release:
    """The migrations of a release, as its own code lists them; `online` are numbers, the first is 1."""

    texts: tuple[str, ...]
    online: frozenset[int]

    def files(self, *, after: int = 0) -> dict[str, str]:
        """The migrations behind a number as files; outside of a transaction where they run concurrently."""
        return {
            f"{number:03}_dbos.sql": (OUTSIDE if number in self.online else "") + f"{text.strip()}\n"
            for number, text in enumerate(self.texts, start=1)
            if number > after and text.strip()
        }


@pytest.fixture(scope="module")
def old(packages: Packages) -> Release:
    """DBOS 2.0."""
    return read_release(packages, OLD)


@pytest.fixture(scope="module")
def new(packages: Packages) -> Release:
    """DBOS 3.4."""
    return read_release(packages, NEW)


@pytest.fixture
def first(server: DevServer, old: Release) -> str:
    """All of DBOS 2.0; without the extension that it makes and does not use, where the server lacks it."""
    (text,) = old.texts
    if not server.extensions.versions(["uuid-ossp"]):
        assert EXTENSION in text
        text = text.replace(EXTENSION, "select")
    return START + text


@pytest.fixture
def live(server: DevServer, first: str, tmp_path: Path) -> Iterator[Live]:
    """DBOS 2.0 in use."""
    with live_database(server, tmp_path / "live", sql=[first, WORKFLOWS]) as made:
        yield made


@pytest.fixture
def own(server: DevServer, first: str, new: Release, tmp_path: Path) -> Iterator[Live]:
    """The same, upgraded by DBOS itself."""
    with live_database(server, tmp_path / "own", sql=[first, WORKFLOWS]) as made:
        run_files(made, new.files(after=1))
        yield made


@pytest.fixture
def fresh(server: DevServer, new: Release, tmp_path: Path) -> Iterator[Live]:
    """DBOS 3.4, installed by itself into an empty database."""
    files = new.files()
    del files[f"{ADDS_A_KEY:03}_dbos.sql"]
    with live_database(server, tmp_path / "fresh", sql=[START]) as made:
        run_files(made, files)
        yield made


def test_a_generated_migration_leads_to_what_the_new_release_installs(live: Live, fresh: Live) -> None:
    fresh.adopt("--target", "dbos", "--schema", "dbos")
    printed = live.adopt("--target", "dbos", "--schema", "dbos")
    assert "wrote 10 files in schema/dbos/" in printed
    live.on("baseline")
    live.take_schema(fresh)
    kept = live.query(KEPT[0])
    built = live.ok("build", "upgrade_to_3_4")
    assert "hazard blocks-writes: writes to dbos.workflow_status wait while the index is built" in built
    assert "note: column order of dbos.notifications stays destination_uuid, topic, " in built
    live.on("apply")
    live.undrifted()
    assert live.dump(ONLY) == fresh.dump(ONLY)
    assert live.query(KEPT[0]) == kept
    # the functions of the new release work on the old rows
    assert live.query("select dbos.enqueue_workflow('app.next', 'q1', workflow_id => 'wf-41')") == ["wf-41"]
    live.query("select dbos.send_message('wf-1', '\"again\"'::json, 't')")
    assert live.query("select count(*) from dbos.notifications where destination_uuid = 'wf-1'") == ["2"]


def test_its_own_migrations_run_concurrently_and_check_names_where_they_lead(
    live: Live, fresh: Live, own: Live, first: str, new: Release
) -> None:
    fresh.adopt("--target", "dbos", "--schema", "dbos")
    live.write("pgsluice.toml", (fresh.root / "pgsluice.toml").read_text(encoding="utf-8"))
    for name, text in {"001_dbos.sql": first, **new.files(after=1)}.items():
        live.write(f"migrations/dbos/{name}", text)
    live.take_schema(fresh)
    live.ok("rehash")
    live.on("baseline", "001")
    done = live.on("apply").splitlines()
    assert len(done) == len(new.files(after=1))
    assert live.dump(ONLY) == own.dump(ONLY)
    assert [live.query(query) for query in KEPT] == [own.query(query) for query in KEPT]

    # An upgraded system database is not what a new one is: three defaults are spelled as 2.0 had them.
    project = load_project(live.root)
    leads = next(check_on(project, project.targets, live.dev, progress=lambda text: None))
    assert leads.problem is not None
    *defaults, order = leads.problem.details
    assert [line.split(": ")[0] for line in defaults] == [f"default dbos.{name}" for name in DEFAULTS]
    assert order.startswith("column order of dbos.notifications is destination_uuid, ")
    upgraded, installed = live.dump(ONLY), fresh.dump(ONLY)
    differing = {name for name in installed if installed[name] != upgraded.get(name)}
    assert {name.partition(" of ")[0] for name in differing} == {
        f"TABLE dbos.{name.split('.')[0]}" for name in DEFAULTS
    }


def read_release(packages: Packages, requirement: str) -> Release:
    """The migrations of a release, from its own code."""
    folder = packages.unpack(requirement)
    done = subprocess.run([sys.executable, SQL, folder], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return Release(tuple(found["texts"]), frozenset(found["online"]))


def run_files(live: Live, files: dict[str, str]) -> None:
    """Run migrations as DBOS does, one by one."""
    folder = live.root.with_name(f"{live.root.name}-files")
    folder.mkdir()
    words = []
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        words.append(f"--file={folder / name}")
    psql(live.url, *words)
