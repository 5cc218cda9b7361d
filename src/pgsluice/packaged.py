"""The targets that this package brings along: their migrations can be applied without a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.config import PYPROJECT_NAME, find_config, load_project

if TYPE_CHECKING:
    from pgsluice.config import Project

# a wheel holds them in the package, a checkout two folders above it.
PLACES: Final = (Path(__file__).parent / "targets", Path(__file__).parents[2])


def packaged_project() -> Project | None:
    """The project of the package's own targets; None where the package was installed without them."""
    for folder in PLACES:
        if (folder / PYPROJECT_NAME).is_file() and (folder / "migrations").is_dir() and find_config(folder):
            return load_project(folder)
    return None


def has_target(project: Project, name: str) -> bool:
    """Whether a project has a target of that name."""
    return name in {target.name for target in project.targets}
