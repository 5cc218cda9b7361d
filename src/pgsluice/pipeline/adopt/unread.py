"""What a database has and nothing here looks at: named, so that nobody takes it for adopted."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.adopt.secrets import LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

UNREAD: Final = files("pgsluice.pipeline").joinpath("resources", "unread.sql").read_bytes()


def read_unread(conn: psycopg.Connection[Any], schemas: Sequence[str]) -> tuple[LeftOut, ...]:
    """What of a database no schema file and no migration can have, although pg_dump or a user might think so.

    Args:
        conn: The database.
        schemas: The adopted ones; of `["*"]` also what belongs to no schema.
    """
    scope = {"whole": "*" in schemas, "manages": list(schemas)}
    return tuple(LeftOut(str(what), str(reason)) for what, reason in conn.execute(UNREAD, scope).fetchall())
