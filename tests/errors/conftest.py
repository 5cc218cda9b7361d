"""Folders of the tests' own for servers of their own, and projects on servers that the run shares."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from pgsluice.pipeline.devdb import stop_dev
from pgsluice.pipeline.devdb.leftovers import sweep
from tests.conftest import EMBEDDED, server_url
from tests.errors.command import CONFIG, SEQUENCE, Folder
from tests.pipeline.devdb.conftest import short_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

    Connection = psycopg.Connection[Any]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that holds this test's servers; none of them outlives the test."""
    folder = short_folder("run")
    monkeypatch.setenv("PGSLUICE_RUNTIME_DIR", str(folder))
    yield folder
    if folder.exists():
        sweep(folder, keep=None)
        shutil.rmtree(folder)


@pytest.fixture
def root(runtime: Path) -> Iterator[Path]:
    """A project root with no server yet."""
    folder = short_folder("root")
    yield folder
    stop_dev(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(
    tmp_path: Path, shared: DevServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Folder:
    """An empty project on the server that the run shares."""
    monkeypatch.setenv("PGSLUICE_DEV", server_url(shared))
    project = Folder(tmp_path, capsys)
    project.write(CONFIG, SEQUENCE)
    return project


@pytest.fixture
def shared(open_server: Callable[[str], DevServer]) -> DevServer:
    """The server that the run shares."""
    return open_server(EMBEDDED)


@pytest.fixture
def admin(shared: DevServer) -> Iterator[Connection]:
    """A superuser's connection to it."""
    with shared.clone(None) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        yield conn


@pytest.fixture
def weak(shared: DevServer, admin: Connection) -> Iterator[str]:
    """A role that may create databases and nothing else, as a URL."""
    role = f"weak_{os.getpid()}"
    admin.execute(sql.SQL("create role {} login createdb").format(sql.Identifier(role)))
    yield re.sub(r"user=[^&]*", f"user={role}", server_url(shared))
    for (name,) in admin.execute(
        "select datname from pg_database where datdba = %s::regrole", [role]
    ).fetchall():
        admin.execute(sql.SQL("alter database {} is_template false").format(sql.Identifier(name)))
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
    admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
