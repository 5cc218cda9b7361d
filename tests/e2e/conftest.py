"""Projects on servers that the whole run shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.conftest import EMBEDDED, server_url
from tests.e2e.project import SEQUENCE, InProcess, Project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

    MakeProject = Callable[..., Project]

CONFIG: Final = "pgsluice.toml"


@pytest.fixture(scope="session")
def dev(open_server: Callable[[str], DevServer]) -> str:
    """A URL of the embedded server that the run shares: for tests whose subject is not the server."""
    return server_url(open_server(EMBEDDED))


@pytest.fixture
def make(tmp_path: Path, dev: str) -> MakeProject:
    """Make a project with files; on the shared server, its commands in this process."""

    def make_project(
        files: Mapping[str, str | bytes] | None = None, *, config: str = SEQUENCE, name: str = "project"
    ) -> Project:
        project = InProcess(tmp_path / name, dev)
        project.write(CONFIG, config)
        for file, content in (files or {}).items():
            project.write(file, content)
        return project

    return make_project


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Project]:
    """An empty project folder with a server of its own, stopped afterwards; its commands are processes."""
    root = tmp_path / "own"
    root.mkdir()
    project = Project(root)
    yield project
    if (root / CONFIG).exists():
        project.ok("dev", "stop")
