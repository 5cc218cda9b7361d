"""A database with `schema/pgflow` loaded, on each PostgreSQL that this machine has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.pipeline.devdb import open_dev
from pgsluice.pipeline.sources import load_schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SERVERS = (
    "embedded",
    *(f"local:{path.parent}" for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))),
)


@pytest.fixture(scope="session", params=SERVERS)
def pgflow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Conninfo of a scratch database that holds the whole of `schema/pgflow`."""
    server_root = tmp_path_factory.getbasetemp()
    source = read_schema(ROOT / "schema/pgflow", root=ROOT)
    with open_dev(request.param, root=server_root) as server, server.clone(None) as conninfo:
        with psycopg.connect(conninfo) as conn:
            load_schema(conn, source, search_path="pgflow")
        yield conninfo


@pytest.fixture
def conn(pgflow: str) -> Iterator[psycopg.Connection]:
    """A connection whose transaction is rolled back after the test."""
    with psycopg.connect(pgflow) as connection:
        yield connection
        connection.rollback()
