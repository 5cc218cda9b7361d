"""One database with as many states of the diff cases as fit, each in a schema of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from pgsluice.pipeline.proof import InvalidFunctionsError, validate_functions

if TYPE_CHECKING:
    from collections.abc import Iterable

CASES: Final = Path(__file__).parents[2] / "cases"
CREATE_SCHEMA: Final = sql.SQL("create schema {schema}")
SET_PATH: Final = sql.SQL("set local search_path = {schema}, public")


def load_union(conninfo: str, states: Iterable[Path]) -> dict[str, Path]:
    """Load the states that go together; returns those that were loaded, by their schema."""
    loaded: dict[str, Path] = {}
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute((CASES / "roles.sql").read_bytes())
        for path in states:
            schema = f"{path.parent.name[:50]}_{path.stem}"
            try:
                with conn.transaction():
                    conn.execute(CREATE_SCHEMA.format(schema=sql.Identifier(schema)))
                    conn.execute(SET_PATH.format(schema=sql.Identifier(schema)))
                    conn.execute(path.read_bytes(), prepare=False)
                    validate_functions(conn, ["*"], search_path="public")
            except (psycopg.Error, InvalidFunctionsError):
                continue  # its names are taken, the server is too old, or bodies need its schema's path
            loaded[schema] = path
    return loaded
