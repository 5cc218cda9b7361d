"""Packages of the Python index as folders: downloaded without what they depend on, never installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOWNLOAD: Final = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
TIMEOUT_S: Final = 300


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages that a test run has downloaded into `folder`."""

    folder: Path

    def unpack(self, *requirements: str) -> Path:
        """A folder that Python could import the packages from, each given as `name==version`.

        The first of them names the folder; the others come along with it.
        """
        place = self.folder / requirements[0]
        if not place.is_dir():
            self.folder.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder) as draft:
                wheels, content = Path(draft, "wheels"), Path(draft, "content")
                _download(requirements, wheels)
                for wheel in sorted(wheels.glob("*.whl")):
                    with zipfile.ZipFile(wheel) as archive:
                        archive.extractall(content)
                _keep(content, place)
        return place


def _download(requirements: tuple[str, ...], into: Path) -> None:
    done = subprocess.run(
        [*DOWNLOAD, "--dest", into, *requirements],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"pip cannot download {' '.join(requirements)}:\n{done.stderr}")


def _keep(content: Path, place: Path) -> None:
    """Give the folder its name, unless another process of the run was faster."""
    try:
        content.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        shutil.rmtree(content)
