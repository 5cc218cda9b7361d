"""The opinion of `pg_dump`: whether it prints two databases alike."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgsluice.errors import FindingError
from pgsluice.pipeline.opinion.entries import Entries, parse_dump
from pgsluice.pipeline.opinion.programs import clean_environment
from pgsluice.pipeline.proof import connected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from psycopg import Connection

FIXED: Final = ("--schema-only", "--no-password")
OURS: Final = '--exclude-schema="pgsluice"'
EXISTING: Final = "select n.nspname::text from pg_catalog.pg_namespace as n where n.nspname = any(%s)"
# Relations under their own name and that of each part: a part cannot be left out of its relation's entry.
RELATIONS: Final = """
select n.nspname::text, c.relname::text, part.name::text
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
cross join lateral (
  select null::name as name
  union all
  select a.attname from pg_catalog.pg_attribute as a
  where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  union all
  select k.conname from pg_catalog.pg_constraint as k where k.conrelid = c.oid
  union all
  select t.tgname from pg_catalog.pg_trigger as t where t.tgrelid = c.oid and not t.tgisinternal
  union all
  select p.polname from pg_catalog.pg_policy as p where p.polrelid = c.oid
) as part
where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
  and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
"""


@dataclass(frozen=True, slots=True)
class DumpScope:
    """What is dumped: `manages` are PostgreSQL schemas or `*`, `ignore` patterns over `schema.name`."""

    manages: tuple[str, ...]
    ignore: tuple[str, ...] = ()


class RunningDumps:
    """The `pg_dump` programs that run now, so that they can be ended before their time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._is_over = False

    def stop(self) -> None:
        """End those that run, and let no other start."""
        with self._lock:
            self._is_over = True
            for process in self._processes:
                process.kill()

    def run(self, arguments: Sequence[Path | str], environment: Mapping[str, str]) -> tuple[int, str, str]:
        """Run one to its end: exit code, what it printed, what it complained about."""
        with self._lock:
            if self._is_over:
                return -1, "", "stopped"
            process = subprocess.Popen(
                arguments,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            self._processes.add(process)
        with process:
            printed, complaint = process.communicate()
        with self._lock:
            self._processes.discard(process)
        return process.returncode, printed, complaint


def dump(program: Path, conninfo: str, scope: DumpScope, *, running: RunningDumps) -> Entries:
    """What `pg_dump --schema-only` prints of the managed schemas of a database.

    Raises:
        FindingError: The program failed.
        UnreachableError: There is no connection.
    """
    with connected(conninfo) as conn:
        chosen = _choice(conn, scope)
    if chosen is None:
        return {}
    place, environment = hide_password(conninfo)
    code, printed, complaint = running.run([program, *FIXED, *chosen, f"--dbname={place}"], environment)
    if code:
        raise FindingError(
            f"{program} failed with exit code {code}", details=tuple(complaint.strip().splitlines()[-5:])
        )
    return parse_dump(printed, ignore=scope.ignore)


def hide_password(conninfo: str) -> tuple[str, dict[str, str]]:
    """A connection string without its password, and the environment that holds it.

    Other users of the machine see a command line, not an environment.
    """
    place = {key: str(value) for key, value in conninfo_to_dict(conninfo).items() if value is not None}
    environment = clean_environment()
    if "password" in place:
        environment["PGPASSWORD"] = place.pop("password")
    return make_conninfo(**place), environment


def _choice(conn: Connection[Any], scope: DumpScope) -> list[str] | None:
    """The arguments that choose what is dumped, None where nothing of it exists."""
    chosen = [OURS]
    if "*" not in scope.manages:
        existing = conn.execute(EXISTING, [list(scope.manages)]).fetchall()
        if not existing:
            return None
        chosen += [f"--schema={_quoted(str(name))}" for (name,) in existing]
    if scope.ignore:
        chosen += [f"--exclude-table={_quoted(*name)}" for name in sorted(set(_ignored(conn, scope.ignore)))]
    return chosen


def _ignored(conn: Connection[Any], ignore: Sequence[str]) -> Iterator[tuple[str, str]]:
    for schema, relation, part in conn.execute(RELATIONS):
        name = ".".join((schema, relation) if part is None else (schema, relation, part))
        if any(fnmatchcase(name, pattern) for pattern in ignore):
            yield schema, relation


def _quoted(*name: str) -> str:
    """A pattern that matches one name alone."""
    return ".".join('"{}"'.format(part.replace('"', '""')) for part in name)
