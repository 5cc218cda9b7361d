"""Migrations that ran here and are recorded under another name: an earlier target, or Atlas's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import RefusedError, UnreachableError
from pgsluice.pipeline.live.atlas_revisions import SCHEMA, TABLES, read_revisions
from pgsluice.pipeline.live.ledger import ledger_exists
from pgsluice.pipeline.quoting import quote_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.live.script import Script

    Connection = psycopg.Connection[Any]

SHOWN: Final = 5
UNDER_OTHER_NAME: Final = """
select m.target, m.filename
from pgsluice.migrations as m
join rows from (
  pg_catalog.unnest(%(names)s::text[]), pg_catalog.unnest(%(digests)s::text[])
) as here (filename, digest) on here.filename = m.filename and here.digest = m.digest
where not m.target = any(%(targets)s)
order by m.target, m.filename collate "C"
"""


def refuse_recorded_elsewhere(
    conn: Connection, project: Project, target: Target, *, scripts: Sequence[Script]
) -> None:
    """Refuse to run migrations once more that the database has; for a target of which nothing is recorded.

    Args:
        conn: Reads only.
        project: Its targets keep rows of their own.
        target: The one whose migrations are to run.
        scripts: What is to run.

    Raises:
        RefusedError: Says who has them, and how to take them over.
    """
    names = [script.name for script in scripts]
    if ledger_exists(conn):
        values = {
            "names": names,
            "digests": [script.digest for script in scripts],
            "targets": [one.name for one in project.targets],
        }
        _refuse_other_target(conn.execute(UNDER_OTHER_NAME, values).fetchall(), target)
    for (schema,) in conn.execute(TABLES).fetchall():
        try:
            revisions = read_revisions(conn, schema)
        except UnreachableError:  # somebody else's, whose rights we lack
            continue
        taken = sorted({one.filename for one in revisions} & set(names))
        if taken:
            schema_option = "" if schema == SCHEMA else f" --revisions-schema {schema}"
            raise RefusedError(
                f"Atlas applied {taken[0]} here, and the ledger has nothing of target {target.name}",
                details=_others(taken),
                hint=f"pgsluice baseline --target {target.name} --from-atlas{schema_option}",
            )


def _refuse_other_target(rows: Sequence[tuple[str, str]], target: Target) -> None:
    if not rows:
        return
    other = rows[0][0]
    names = [name for owner, name in rows if owner == other]
    raise RefusedError(
        f"{names[0]} was applied here as of target {other}, and the ledger has nothing of {target.name}",
        details=_others(names),
        hint="when the target was renamed: update pgsluice.migrations set target ="
        f" {quote_literal(target.name)} where target = {quote_literal(other)};",
    )


def _others(names: Sequence[str]) -> tuple[str, ...]:
    rest = names[1 : SHOWN + 1]
    more = (f"and {len(names) - 1 - SHOWN} more",) if len(names) - 1 > SHOWN else ()
    return (*(f"also {name}" for name in rest), *more)
