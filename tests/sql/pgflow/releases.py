"""Databases of the released states, which only the migrations still know."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.pipeline.devdb import bootstrap
from tests.sql.pgflow.conftest import ROOT

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb import DevServer

MIGRATIONS: Final = sorted((ROOT / "migrations/pgflow").glob("*.sql"))
RELEASED: Final = ("0.15.0", "0.15.1", "0.16.0")


def release(server: DevServer, version: str) -> str:
    """The template database that holds PGMQ and the migrations up to a release, applied one by one."""
    texts = [path.read_bytes() for path in MIGRATIONS[: RELEASED.index(version) + 1]]

    def fill(conninfo: str) -> None:
        for text in texts:
            with psycopg.connect(conninfo) as conn:
                conn.execute(text)

    digest = hashlib.sha256(b"pgflow release" + b"".join(texts)).hexdigest()
    return server.template(digest, parent=bootstrap(server, ["pgmq"], root=ROOT), fill=fill)
