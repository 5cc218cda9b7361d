"""What is downloaded once a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.strangers.packages import Packages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Packages from the index; all processes of a run share them."""
    base: Path = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return Packages(base / "packages")
