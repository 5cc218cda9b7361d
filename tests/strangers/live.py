"""Somebody's live database, and the project that takes it over."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from collections import defaultdict
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgsluice.cli.main import main
from tests.client import dump_schema, program, psql
from tests.conftest import server_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

PLACE: Final = ("host", "port", "user", "dbname")
LEDGER: Final = "--exclude-schema=pgsluice"
INSERT: Final = "INSERT INTO "


@dataclass(frozen=True, slots=True)
class Done:
    """What a command gave."""

    code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.stdout}{self.stderr}"


@dataclass(frozen=True, slots=True)
class Live:
    """A database with a project in `root` that is about it; `dev` is the project's scratch server."""

    root: Path
    dev: str
    url: str

    def run(self, *words: str) -> Done:
        """Run a command in this process: the command line's own entry."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with redirect_stdout(stdout), redirect_stderr(stderr):
            code = main(("-C", str(self.root), *words))
        return Done(code, stdout.getvalue(), stderr.getvalue())

    def ok(self, *words: str) -> str:
        """Run a command that succeeds, and return what it printed."""
        done = self.run(*words)
        assert done.code == 0, f"pgsluice {' '.join(words)}: {done}"
        return done.stdout

    def fails(self, code: int, *words: str) -> str:
        """Run a command that ends with `code`, and return its error."""
        done = self.run(*words)
        assert done.code == code, f"pgsluice {' '.join(words)}: {done}"
        return done.stderr[done.stderr.index("error: ") :]

    def on(self, *words: str) -> str:
        """Run a command on the database; it succeeds."""
        return self.ok(*words, "--database", self.url)

    def json(self, *words: str) -> Any:
        """Run a command on the database with `--json`. `Any`: the caller knows the shape."""
        return json.loads(self.on(*words, "--json"))

    def adopt(self, *words: str) -> str:
        """Make the project from the database, and see that it has not drifted."""
        printed = self.ok("init", "--from", self.url, "--dev", self.dev, *words)
        self.undrifted()
        return printed

    def undrifted(self) -> Any:
        """See that the database is what its migrations make. `Any`: the JSON of `drift`."""
        found = self.json("drift")
        assert found["differences"] == []
        return found

    def configure(self, target: str) -> None:
        """Write the configuration of a project whose files come from elsewhere."""
        self.write("pgsluice.toml", f'dev = "{self.dev}"\n[targets.{target}]\n')

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def take_schema(self, other: Live) -> None:
        """Make the schema folder that of another project."""
        shutil.rmtree(self.root / "schema", ignore_errors=True)
        shutil.copytree(other.root / "schema", self.root / "schema")

    def query(self, text: str) -> list[str]:
        """The lines that `psql` prints for a query."""
        return psql(self.url, f"--command={text}").splitlines()

    def dump(self, *words: str) -> Mapping[str, list[str]]:
        """The schema as `pg_dump` prints it, without the ledger and without the order of columns."""
        return dump_schema(self.url, LEDGER, *words)

    def rows(self, *words: str) -> Mapping[str, list[str]]:
        """The rows of each table as `pg_dump` prints them: column lists and values, without the ledger."""
        fixed = (f"--dbname={self.url}", "--data-only", "--column-inserts", LEDGER)
        done = subprocess.run(
            [program("pg_dump"), *fixed, *words], capture_output=True, text=True, check=True
        )
        found: dict[str, list[str]] = defaultdict(list)
        for line in done.stdout.splitlines():
            if line.startswith(INSERT):
                found[line.removeprefix(INSERT).split(" ")[0]].append(line)
        return {table: sorted(lines) for table, lines in found.items()}


@contextmanager
def live_database(server: DevServer, root: Path, *, sql: Sequence[str] = ()) -> Iterator[Live]:
    """A database on a server that is also the scratch server, reached by a URL without settings.

    Args:
        server: It holds both.
        root: The folder of the project.
        sql: Scripts that `psql` runs first, each statement on its own.
    """
    root.mkdir()
    with server.clone(None) as conninfo:
        parts = conninfo_to_dict(conninfo)
        live = Live(root, server_url(server), make_conninfo("", **{key: parts[key] for key in PLACE}))
        for number, text in enumerate(sql):
            script = root.with_name(f"{root.name}-{number}.sql")
            script.write_text(text, encoding="utf-8")
            psql(live.url, f"--file={script}")
        yield live
