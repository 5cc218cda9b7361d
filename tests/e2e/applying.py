"""A project that is deployed: migrations written by hand, a database, and sessions in the way."""

from __future__ import annotations

import io
import json
import signal
import time
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgsluice.cli.main import main
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from tests.e2e.project import SEQUENCE, TIMEOUT_S, Done, Project

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

ONLINE: Final = "-- atlas:txmode none\n\n"
LIMIT_S: Final = 30.0
PAUSE_S: Final = 0.02
PLACE: Final = ("host", "port", "user", "dbname")

WAITING: Final = """
select a.pid from pg_stat_activity as a
where a.datname = current_database() and a.application_name = 'pgsluice' and a.wait_event_type = 'Lock'
  and a.query ilike %(like)s
"""
ASKING: Final = """
select a.pid from pg_stat_activity as a
where a.datname = current_database() and a.application_name = 'pgsluice' and a.query ~ 'advisory'
  and a.state = 'idle' and a.pid not in (select l.pid from pg_locks as l where l.locktype = 'advisory')
"""
NOBODY: Final = """
select 1 where not exists (
  select from pg_stat_activity as a
  where a.datname = current_database() and a.application_name like 'pgsluice%%'
)
"""


@dataclass(frozen=True, slots=True)
class Deploy:
    """A project whose migrations are written by hand, and the database that they go to."""

    project: Project
    url: str

    def add(self, name: str, text: str) -> Path:
        """Write a migration, and record the folder as it is then."""
        path = self.project.write(f"migrations/app/{name}", text)
        self.record()
        return path

    def record(self, target: str = "app") -> None:
        """Write `atlas.sum` for a target's folder as it is."""
        folder = self.project.root / "migrations" / target
        (folder / SUM_NAME).write_bytes(compute_sum(folder).render())

    def run(self, *arguments: str, database: str | None = None) -> Done:
        """Run a command on the database, in this process: the command line's own entry."""
        words = ("-C", str(self.project.root), *arguments, "--database", database or self.url)
        stdout, stderr = io.StringIO(), io.StringIO()
        with redirect_stdout(stdout), redirect_stderr(stderr):
            code = main(words)
        result = Done(code, stdout.getvalue(), stderr.getvalue())
        assert "this is a bug" not in str(result), str(result)
        return result

    def ok(self, *arguments: str) -> str:
        """Run a command that succeeds."""
        done = self.run(*arguments)
        assert done.code == 0, str(done)
        return done.stdout

    def fails(self, code: int, *arguments: str, database: str | None = None) -> str:
        """Run a command that ends with `code`, and return its error without notes."""
        done = self.run(*arguments, database=database)
        assert done.code == code, str(done)
        _, start, error = done.stderr.partition("error: ")
        assert start, str(done)
        return start + error

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command on the database, in a process of its own."""
        return self.project.start(*arguments, PGSLUICE_DATABASE=self.url)

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection[Any]]:
        """Somebody else's session, in autocommit mode."""
        with closing(psycopg.connect(self.url, autocommit=True, application_name="web")) as conn:
            yield conn

    def rows(self, query: str) -> list[Any]:
        """The first column of what a query finds."""
        with self.session() as conn:
            return [row[0] for row in conn.execute(query.encode()).fetchall()]

    def files(self, *columns: str) -> list[Any]:
        """What `status` says of each file."""
        found = self.run("status", "--json")

        return [
            tuple(file[key] for key in columns) for file in json.loads(found.stdout)["targets"][0]["files"]
        ]

    def states(self) -> list[str]:
        """The state of each file."""
        return [state for (state,) in self.files("state")]


@contextmanager
def deployed(server: DevServer, root: Path, *, config: str = SEQUENCE) -> Iterator[Deploy]:
    """A project in `root` and an empty database, reached without the settings of a scratch server."""
    with server.clone(None) as conninfo:
        parts = conninfo_to_dict(conninfo)
        url = make_conninfo("", **{key: parts[key] for key in PLACE})
        project = Project(root)
        project.write("pgsluice.toml", config)
        yield Deploy(project, url)


def wait_for(conn: psycopg.Connection[Any], query: str, **values: object) -> Any:
    """Wait until a query finds a row, and give its first column. `Any`: what the query selects."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        row = conn.execute(query.encode(), values).fetchone()
        if row is not None:
            return row[0]
        time.sleep(PAUSE_S)
    raise AssertionError(f"nothing in {LIMIT_S} s: {query} {values}")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something outside of the database is so."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if is_so():
            return
        time.sleep(PAUSE_S)
    raise AssertionError(f"not so in {LIMIT_S} s")


def ended(process: subprocess.Popen[str]) -> Done:
    """What a started command gave in the end."""
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    result = Done(process.returncode, stdout, stderr)
    assert "Traceback" not in str(result), str(result)
    return result


def kill(process: subprocess.Popen[str]) -> None:
    """End a command as the kernel does when memory is short."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
