"""Folders of the tests' own for servers of their own, and projects on servers that the run shares."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pgsluice.pipeline.devdb import stop_dev
from pgsluice.pipeline.devdb.leftovers import sweep
from tests.e2e.conftest import dev, make  # noqa: F401 fixtures
from tests.pipeline.devdb.conftest import short_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
