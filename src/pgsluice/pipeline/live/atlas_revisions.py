"""What Atlas's own table says about the migrations that it applied to a database."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from pgsluice.errors import InputError, RefusedError, UnreachableError
from pgsluice.pipeline.checksum import locate, read_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pgsluice.pipeline.history import Migration

TABLE: Final = "atlas_schema_revisions"
SCHEMA: Final = "atlas_schema_revisions"
BASELINE: Final = 1
RESOLVED: Final = 4
"""Bits of a revision's type: a baseline, or settled by hand with `atlas migrate set`."""
OURS_ALONE: Final = "."
"""Rows whose version begins so are Atlas's own notes."""

TABLES: Final = """
select n.nspname::text
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relname = 'atlas_schema_revisions' and c.relkind in ('r', 'p')
order by 1
"""
READ: Final = """
select r.version, coalesce(r.description, '') as description, coalesce(r.type, 0)::int as type,
  coalesce(r.applied, 0)::int as applied, coalesce(r.total, 0)::int as total, r.error, r.error_stmt,
  coalesce(r.hash, '') as hash
from {} as r
order by r.version collate "C"
"""


@dataclass(frozen=True, slots=True)
class Revision:
    """One row of Atlas's table; `type` is a set of bits, `hash` the file's line in `atlas.sum` as of then."""

    version: str
    description: str
    type: int
    applied: int
    total: int
    error: str | None
    error_stmt: str | None
    hash: str

    @property
    def filename(self) -> str:
        """The file's name as Atlas made it."""
        return f"{self.version}_{self.description}.sql" if self.description else f"{self.version}.sql"

    @property
    def is_baseline(self) -> bool:
        """Whether it stands for itself and all that comes before."""
        return bool(self.type & BASELINE)

    @property
    def is_partial(self) -> bool:
        """Whether the file did not come to its end, and nobody said that it was settled since."""
        return not self.type & RESOLVED and (self.applied < self.total or bool(self.error))


def read_revisions(conn: psycopg.Connection[Any], schema: str = SCHEMA) -> tuple[Revision, ...]:
    """The revisions in byte order of their versions, without Atlas's notes to itself.

    Raises:
        InputError: There is no such table; names the schemas that have one.
        UnreachableError: Our role may not read it.
    """
    query = sql.SQL(READ).format(sql.Identifier(schema, TABLE))
    try:
        with conn.cursor(row_factory=class_row(Revision)) as cursor:
            found = cursor.execute(query).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as exc:
        others = [str(name) for (name,) in conn.execute(TABLES)]
        raise InputError(
            f"there is no table {schema}.{TABLE} in database {conn.info.dbname}",
            hint=f"--revisions-schema {others[0]}" if others else "pgsluice baseline without --from-atlas",
        ) from exc
    except psycopg.errors.InsufficientPrivilege as exc:
        role = sql.Identifier(conn.info.user).as_string(conn)
        raise UnreachableError(
            f"role {conn.info.user} may not read {schema}.{TABLE}",
            hint=f"grant usage on schema {schema} to {role}; grant select on {schema}.{TABLE} to {role};",
        ) from exc
    return tuple(one for one in found if not one.version.startswith(OURS_ALONE))


def take_over(
    revisions: Sequence[Revision], history: Sequence[Migration], *, folder: Path
) -> tuple[Migration, ...]:
    """The migrations that Atlas applied, in order, each the very file that it applied.

    Args:
        revisions: From `read_revisions`.
        history: The target's.
        folder: Holds `atlas.sum`, whose lines are what Atlas recorded.

    Raises:
        InputError: There is no revision, or no `atlas.sum`.
        RefusedError: A revision is partial, of no migration in the folder, or of another content.
    """
    if not revisions:
        raise InputError(f"{TABLE} is empty: Atlas applied nothing", hint="pgsluice apply")
    recorded = read_sum(folder / "atlas.sum")
    if recorded is None:
        raise InputError(
            "there is no atlas.sum to compare Atlas's revisions with",
            location=locate(folder / "atlas.sum"),
            hint="pgsluice rehash",
        )
    digests = {entry.name: entry.digest for entry in recorded.entries}
    files = [_file_of(one, history) for one in revisions]
    pairs = list(zip(revisions, files, strict=True))
    if problems := [line for one, file in pairs for line in _problems(one, file, digests)]:
        raise RefusedError(
            f"Atlas's revisions cannot be taken over: {problems[0]}",
            details=tuple(problems[1:]),
            hint="settle them with Atlas first: atlas migrate status, atlas migrate set",
        )
    taken = {file.filename for _, file in pairs if file is not None}
    baselines = {file.filename for one, file in pairs if file is not None and one.is_baseline}
    covered = max((place for place, one in enumerate(history) if one.filename in baselines), default=-1)
    return tuple(one for place, one in enumerate(history) if one.filename in taken or place <= covered)


def _file_of(revision: Revision, history: Sequence[Migration]) -> Migration | None:
    """The migration of that file name, else of that version, which Atlas ends at the first `_`."""
    named = (one for one in history if one.filename == revision.filename)
    numbered = (one for one in history if one.version == revision.version)
    return next(chain(named, numbered), None)


def _problems(revision: Revision, migration: Migration | None, digests: dict[str, str]) -> Iterator[str]:
    if revision.is_partial:
        said = f": {revision.error}" if revision.error else ""
        done = f"{revision.applied} of {revision.total} statements"
        yield f"{revision.filename} was applied in part, {done}{said}"
    if migration is None:
        yield f"{revision.filename} is not among the migrations of this folder"
    elif revision.hash and revision.hash.removeprefix("h1:") != digests.get(migration.filename):
        yield (
            f"{migration.filename} was changed since Atlas applied it: it recorded "
            f"h1:{revision.hash.removeprefix('h1:')}, atlas.sum has h1:{digests.get(migration.filename)}"
        )
