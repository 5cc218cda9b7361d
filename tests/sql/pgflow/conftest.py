"""Databases that hold PGMQ and the whole of `schema/pgflow`, on each server."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from pgsluice.pipeline.devdb import bootstrap
from pgsluice.pipeline.sources import load_schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer

ROOT: Final = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def template(server: DevServer) -> str:
    """The template database that every test's own is a copy of."""
    source = read_schema(ROOT / "schema/pgflow", root=ROOT)
    text = "\n".join(statement.text for statement in source.statements)

    def fill(conninfo: str) -> None:
        with psycopg.connect(conninfo) as conn:
            load_schema(conn, source, search_path="pgflow")

    digest = hashlib.sha256(f"pgflow {text}".encode()).hexdigest()
    return server.template(digest, parent=bootstrap(server, ["pgmq"], root=ROOT), fill=fill)


@pytest.fixture(scope="session")
def shared(server: DevServer, template: str) -> Iterator[str]:
    """Conninfo of one database for all tests that roll back what they do."""
    with server.clone(template) as conninfo:
        yield conninfo


@pytest.fixture
def conn(shared: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose transaction is rolled back after the test."""
    with psycopg.connect(shared) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def database(server: DevServer, template: str) -> Iterator[str]:
    """Conninfo of a database of the test's own, for tests that commit."""
    with server.clone(template) as conninfo:
        yield conninfo
