"""Template databases cached on the server, by content."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, LiteralString

import psycopg
from psycopg import sql

from pgsluice.pipeline.devdb.admin import ADVISORY_LOCK, Row, end_sessions, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb.admin import Admin
    from pgsluice.pipeline.devdb.scratch import ScratchDatabases

LOST: Final = "lost the dev server"
KEPT: Final = 12
PINNED: Final = 16
NEVER_EVICTED: Final = 6  # the newest: their makers may not have pinned them yet
FIND: Final = "select from pg_catalog.pg_database where datname = %s"
TRY_LOCK_SHARED: Final = "select pg_try_advisory_lock_shared(%s)"
UNLOCK_SHARED: Final = "select pg_advisory_unlock_shared(%s)"
TRY_LOCK: Final = "select pg_try_advisory_lock(%s)"
UNLOCK: Final = "select pg_advisory_unlock(%s)"
# One transaction: the name appears when all the rest is in place.
PUBLISH: Final = sql.SQL(
    "alter database {draft} with is_template true allow_connections false;"
    " alter database {draft} rename to {name};"
    " comment on database {name} is {used}"
)
MARK_USED: Final = sql.SQL("comment on database {name} is {used}")
RELEASE: Final = sql.SQL("alter database {name} with is_template false")
DROP: Final = sql.SQL("drop database if exists {name} with (force)")
LIST_BY_USE: Final = r"""
select datname::text from pg_catalog.pg_database
where datname like 'pgsluice\_template\_%' and pg_catalog.pg_has_role(datdba, 'usage')
order by pg_catalog.shobj_description(oid, 'pg_database') desc nulls last, datname
"""


class TemplateCache:
    """The template databases of a server, as one use of it sees them.

    A template that this use got lately is pinned by a shared advisory lock, so that nobody evicts it; who
    fills or evicts one holds the lock exclusively.
    """

    def __init__(self, admin: Admin, scratch: ScratchDatabases, role: str) -> None:
        self._admin = admin
        self._scratch = scratch
        self._role = role
        self._pins: dict[str, None] = {}
        self._lock = threading.Lock()
        self._fillers: dict[str, threading.Lock] = {}

    def get(self, digest: str, *, parent: str | None, fill: Callable[[str], None]) -> str:
        """The template for `digest` on top of `parent`; see `DevServer.template`."""
        name = self._name(digest, parent)
        with self._filler(name):
            while not self._pin(name):
                self._fill(name, parent, fill=fill)
                self._evict()
        return name

    def finish(self) -> None:
        """Write down what was used, unpin it, and evict what is too much."""
        with self._lock:
            for name in self._pins:
                self._admin.control.execute(MARK_USED.format(name=sql.Identifier(name), used=_used_now()))
                self._admin.control.execute(UNLOCK_SHARED, [_lock_key(name)])
            self._pins.clear()
        self._evict()

    def _name(self, digest: str, parent: str | None) -> str:
        """A name from all that decides the content: who owns the objects belongs to it."""
        key = "\n".join((digest, parent or "", str(self._admin.version_num), self._role))
        return f"pgsluice_template_{hashlib.sha256(key.encode()).hexdigest()[:32]}"

    @contextmanager
    def _filler(self, name: str) -> Iterator[None]:
        """One thread of this process a template: advisory locks only part processes."""
        with self._lock:
            filler = self._fillers.setdefault(name, threading.Lock())
        with filler:
            yield

    def _pin(self, name: str) -> bool:
        """Keep the template from being evicted; False while there is none, or others make or drop it."""
        control = self._admin.control
        with translated(LOST), self._lock:
            if name in self._pins:
                del self._pins[name]
            elif not _succeeds(control, TRY_LOCK_SHARED, name):
                return False
            if control.execute(FIND, [name]).rowcount == 0:
                control.execute(UNLOCK_SHARED, [_lock_key(name)])
                return False
            self._pins[name] = None
            if len(self._pins) > PINNED:
                oldest = next(iter(self._pins))
                del self._pins[oldest]
                control.execute(UNLOCK_SHARED, [_lock_key(oldest)])
            return True

    def _fill(self, name: str, parent: str | None, *, fill: Callable[[str], None]) -> None:
        """Fill and publish the template, unless another process does it first."""
        with self._admin.connection() as connection, _exclusive(connection, name):
            with translated(LOST):
                if connection.execute(FIND, [name]).rowcount:
                    return
            with self._scratch_draft(parent) as draft:
                fill(self._admin.conninfo(draft))
                with translated(f"cannot keep {name}"):
                    end_sessions(connection, draft)
                    connection.execute(
                        PUBLISH.format(
                            draft=sql.Identifier(draft), name=sql.Identifier(name), used=_used_now()
                        )
                    )

    @contextmanager
    def _scratch_draft(self, parent: str | None) -> Iterator[str]:
        """A scratch database that becomes a template; until it is renamed it goes the way of all scratch."""
        draft = self._scratch.create(parent)
        try:
            yield draft
        finally:
            self._scratch.drop(draft)

    def _evict(self) -> None:
        """Drop the templates used least lately until the bound is kept, except those in use."""
        with translated("cannot drop old templates"), self._admin.connection() as connection:
            names = [str(row[0]) for row in connection.execute(LIST_BY_USE)]
            excess = len(names) - KEPT
            for name in reversed(names[NEVER_EVICTED:]):
                if excess <= 0:
                    return
                if _succeeds(connection, TRY_LOCK, name):
                    try:
                        _drop(connection, name)
                    finally:
                        connection.execute(UNLOCK, [_lock_key(name)])
                    excess -= 1


def _drop(connection: psycopg.Connection[Row], name: str) -> None:
    """Drop a template whose lock is held; another use may have dropped it since it was listed."""
    if connection.execute(FIND, [name]).rowcount:
        connection.execute(RELEASE.format(name=sql.Identifier(name)))
        connection.execute(DROP.format(name=sql.Identifier(name)))


@contextmanager
def _exclusive(connection: psycopg.Connection[Row], name: str) -> Iterator[None]:
    """Hold the template's lock, so that nobody else fills, evicts or pins it."""
    with translated(LOST):
        connection.execute(ADVISORY_LOCK, [_lock_key(name)])
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(UNLOCK, [_lock_key(name)])


def _succeeds(connection: psycopg.Connection[Row], try_lock: LiteralString, name: str) -> bool:
    """Whether an attempt at the template's lock got it."""
    row = connection.execute(try_lock, [_lock_key(name)]).fetchone()
    return row is not None and row[0] is True


def _lock_key(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:16], 16) >> 2


def _used_now() -> sql.Literal:
    return sql.Literal(f"pgsluice template, last used {datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}")
