"""Lets schemainspect, which migra reads with, run over psycopg 3: no SQLAlchemy, sqlbag or psycopg2."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from psycopg.rows import namedtuple_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

PKG_RESOURCES: Final = "pkg_resources"
# As migra's authors filter by schema, and what they forget.
COLLECTIONS: Final = (
    "schemas", "relations", "tables", "views", "functions", "selectables", "sequences", "constraints",
    "indexes", "enums", "extensions", "privileges", "collations", "triggers", "rlspolicies",
    "composite_types", "domains",
)  # fmt: skip
OURS: Final = "pgsluice"

_import_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Version:
    server_version: int


class PsycopgReader:
    """What schemainspect asks of a connection: `execute` giving rows with attributes, and the version."""

    def __init__(self, conn: Connection[Any]) -> None:
        self._conn = conn
        self.connection = _Version(conn.info.server_version)

    def execute(self, query: str) -> Sequence[Any]:  # Any: rows whose attributes are the query's columns
        """All rows of one of schemainspect's queries."""
        with self._conn.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query.encode(), prepare=False).fetchall()


def import_migra() -> tuple[Any, Any]:  # Any: libraries without types
    """The classes `migra.Migration` and `schemainspect.pg.obj.PostgreSQL`."""
    with _import_lock, _stand_in():
        from migra import Migration
        from schemainspect.pg.obj import PostgreSQL
    return Migration, PostgreSQL


def inspect(conn: Connection[Any], *, manages: Sequence[str], ignore: Sequence[str] = ()) -> Any:
    """What schemainspect sees of the managed schemas, read under an empty `search_path`.

    Args:
        conn: The read is one transaction of it, or part of the one that is open.
        manages: PostgreSQL schemas, or `["*"]` for all but the system's.
        ignore: Patterns such as `app.scratch_*` over `schema.name`.
    """
    _, postgresql = import_migra()
    with conn.transaction():
        conn.execute("set local search_path = ''")
        inspector = postgresql(PsycopgReader(conn))
    for name in COLLECTIONS:
        kept = {
            key: item for key, item in getattr(inspector, name).items() if _is_managed(item, manages, ignore)
        }
        setattr(inspector, name, kept)
    return inspector


def _is_managed(item: Any, manages: Sequence[str], ignore: Sequence[str]) -> bool:
    if item.schema == OURS or ("*" not in manages and item.schema not in manages):
        return False
    names = [str(name) for name in (getattr(item, "name", None), getattr(item, "table_name", None)) if name]
    return not any(fnmatchcase(f"{item.schema}.{name}", pattern) for name in names for pattern in ignore)


@contextmanager
def _stand_in() -> Iterator[None]:
    """Put a small `pkg_resources` in place while schemainspect is imported, which reads its queries with it.

    The real one is gone from setuptools 81, is slow, and warns; it is put back where it was imported before.
    """
    real = sys.modules.get(PKG_RESOURCES)
    module = ModuleType(PKG_RESOURCES)
    module.__dict__["resource_stream"] = _resource_stream
    sys.modules[PKG_RESOURCES] = module
    try:
        yield
    finally:
        if real is None:
            del sys.modules[PKG_RESOURCES]
        else:
            sys.modules[PKG_RESOURCES] = real


def _resource_stream(module_name: str, path: str) -> BinaryIO:
    """A file beside a module."""
    origin = sys.modules[module_name].__file__
    assert origin is not None
    return (Path(origin).parent / path).open("rb")
