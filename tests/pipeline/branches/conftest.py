"""Repositories on the embedded server, copied from one that is built once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgsluice.config import DEV_VARIABLE, load_project
from pgsluice.pipeline.build import build_target
from tests.conftest import EMBEDDED, server_url
from tests.pipeline.branches.workshop import ORDERS, SEQUENCE, USERS, Workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer


@pytest.fixture(scope="session")
def dev(open_server: Callable[[str], DevServer]) -> str:
    """A URL of the embedded server that the run shares."""
    return server_url(open_server(EMBEDDED))


@pytest.fixture(scope="session")
def first_build(tmp_path_factory: pytest.TempPathFactory, dev: str) -> Path:
    """A project with one open migration, without a repository."""
    root = tmp_path_factory.mktemp("first")
    files = {
        "pgsluice.toml": SEQUENCE,
        ".gitignore": ".pgsluice/\n",
        "schema/app/users.sql": USERS,
        "schema/app/orders.sql": ORDERS,
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DEV_VARIABLE, dev)
        project = load_project(root)
        build_target(project, project.target(None), name="first")
    shutil.rmtree(root / ".pgsluice")
    return root


@pytest.fixture(scope="session")
def first_work(tmp_path_factory: pytest.TempPathFactory, first_build: Path, dev: str) -> Workshop:
    """A repository whose main has one open migration; the branch feature starts there."""
    root = tmp_path_factory.mktemp("work") / "work"
    shutil.copytree(first_build, root)
    workshop = Workshop(root, dev)
    workshop.git("init", "--quiet", "--initial-branch=main")
    workshop.commit("first")
    workshop.git("branch", "feature")
    return workshop


@pytest.fixture(scope="session")
def first_met(tmp_path_factory: pytest.TempPathFactory, first_work: Workshop) -> Workshop:
    """Both branches added a column to a table of their own, in 0002_theirs and 0002_mine; on feature."""
    workshop = copied(first_work, tmp_path_factory.mktemp("met"))
    workshop.add_column("users", "email text")
    workshop.build("theirs")
    workshop.git("checkout", "--quiet", "feature")
    workshop.add_column("orders", "total integer")
    workshop.build("mine")
    return workshop


@pytest.fixture
def work(tmp_path: Path, first_work: Workshop) -> Workshop:
    """`first_work` to do with as a test likes."""
    return copied(first_work, tmp_path)


@pytest.fixture
def met(tmp_path: Path, first_met: Workshop) -> Workshop:
    """`first_met` to do with as a test likes."""
    return copied(first_met, tmp_path)


def copied(workshop: Workshop, folder: Path) -> Workshop:
    """A copy that git takes for unchanged."""
    copy = replace(workshop, root=folder / "work")
    shutil.copytree(workshop.root, copy.root)
    copy.git("update-index", "-q", "--refresh")
    return copy
