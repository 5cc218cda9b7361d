"""Scratch databases: named after the use that made them, dropped with it or by the next one."""

from __future__ import annotations

import itertools
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from pgsluice.pipeline.devdb.admin import end_sessions, translated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb.admin import Admin

SCRATCH_NAME: Final = re.compile(r"pgsluice_scratch_([0-9a-f]{16})_[0-9]+")
CREATE_EMPTY: Final = sql.SQL(
    "create database {name} template template0 strategy file_copy"
    " encoding 'UTF8' locale_provider libc lc_collate 'C' lc_ctype 'C'"
)
CREATE_COPY: Final = sql.SQL("create database {name} template {template} strategy file_copy")
DROP: Final = sql.SQL("drop database if exists {name} with (force)")
# In this order: a use takes its lock before it makes a database, so a name whose lock is free is dead.
LIST_SCRATCH: Final = r"""
select
  array(
    select datname::text from pg_catalog.pg_database
    where datname like 'pgsluice\_scratch\_%' and pg_catalog.pg_has_role(datdba, 'usage')
  ),
  array(
    select (classid::bigint << 32) | objid::bigint from pg_catalog.pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
  )
"""


class ScratchDatabases:
    """Makes and drops the scratch databases of one use of a server."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._numbers = itertools.count(1)

    @contextmanager
    def clone(self, template: str | None) -> Iterator[str]:
        """A scratch database for the `with` block, as a connection string."""
        name = self.create(template)
        try:
            yield self._admin.conninfo(name)
        finally:
            self.drop(name)

    def create(self, template: str | None) -> str:
        """Make a scratch database and return its name."""
        name = f"pgsluice_scratch_{self._admin.nonce:016x}_{next(self._numbers)}"
        if template is None:
            statement = CREATE_EMPTY.format(name=sql.Identifier(name))
        else:
            statement = CREATE_COPY.format(name=sql.Identifier(name), template=sql.Identifier(template))
        what = f"cannot create a scratch database from {template or 'template0'}"
        with translated(what), self._admin.connection() as connection:
            connection.execute(statement)
        return name

    def drop(self, name: str) -> None:
        """Drop a scratch database, whoever is connected to it.

        A server that is gone has none; one out of reach drops it on the next use.
        """
        with suppress(psycopg.Error), self._admin.connection() as connection:
            end_sessions(connection, name)
            connection.execute(DROP.format(name=sql.Identifier(name)))

    def drop_dead(self) -> None:
        """Drop the scratch databases of uses that were killed."""
        row = self._admin.control.execute(LIST_SCRATCH).fetchone()
        assert row is not None
        names, alive = row
        assert isinstance(names, list)
        assert isinstance(alive, list)
        for name in names:
            if (match := SCRATCH_NAME.fullmatch(name)) and int(match[1], 16) not in alive:
                with suppress(psycopg.errors.ObjectInUse):  # another command drops it right now
                    self._admin.control.execute(DROP.format(name=sql.Identifier(name)))
