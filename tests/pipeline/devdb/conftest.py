"""Runtime and cache folders of the tests' own, so that they see no server but theirs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgsluice.pipeline.devdb import stop_dev
from pgsluice.pipeline.devdb.leftovers import sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")


def short_folder(name: str) -> Path:
    """A new folder with a short path, which the server's account can pass through."""
    folder = Path(tempfile.mkdtemp(prefix=f"sluice-{name}-", dir="/tmp"))
    folder.chmod(0o711)
    return folder


@pytest.fixture(scope="session")
def cache_folder() -> Iterator[Path]:
    """Clusters and binaries that the whole session shares."""
    folder = short_folder("cache")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def runtime(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that holds this test's servers; none of them outlives the test."""
    folder = short_folder("run")
    monkeypatch.setenv("PGSLUICE_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", str(cache_folder))
    monkeypatch.delenv("PGSLUICE_DEV_IDLE_S", raising=False)
    monkeypatch.delenv("PGSLUICE_DEV_STORAGE", raising=False)
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


@pytest.fixture(params=["embedded", f"local:{DEBIAN_15}"], ids=["embedded", "debian-15"])
def spec(request: pytest.FixtureRequest) -> str:
    """Each kind of server that we launch."""
    return str(request.param)
