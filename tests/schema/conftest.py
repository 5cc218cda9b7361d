"""A database with `schema/pgflow` loaded, on each server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.pipeline.sources import load_schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def pgflow(server: DevServer) -> Iterator[str]:
    """Conninfo of a scratch database that holds the whole of `schema/pgflow`."""
    source = read_schema(ROOT / "schema/pgflow", root=ROOT)
    with server.clone(None) as conninfo:
        with psycopg.connect(conninfo) as conn:
            load_schema(conn, source, search_path="pgflow")
        yield conninfo


@pytest.fixture
def conn(pgflow: str) -> Iterator[psycopg.Connection]:
    """A connection whose transaction is rolled back after the test."""
    with psycopg.connect(pgflow) as connection:
        yield connection
        connection.rollback()
