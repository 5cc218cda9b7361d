"""A copy of a target in a folder of its own, so that a folder to be is proved before a file is written."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgsluice.config import Project, Target


@contextmanager
def staged(
    project: Project, target: Target, migrations: Mapping[str, bytes]
) -> Iterator[tuple[Project, Target]]:
    """The project and the target as copies, with other migrations; paths in messages stay the same."""
    with tempfile.TemporaryDirectory(prefix="pgsluice-") as name:
        root = Path(name).resolve()
        moved: dict[str, object] = {
            key: root / getattr(target, key).relative_to(project.root)
            for key in ("schema_dir", "migrations_dir", "templates_dir")
        }
        requires = tuple(str(project.root / one) if one.endswith(".sql") else one for one in target.requires)
        copied = target.model_copy(update={**moved, "requires": requires})
        sources = (target.schema_dir, target.templates_dir, project.root / "tests/upgrades" / target.name)
        for source in sources:
            if source.is_dir():
                shutil.copytree(source, root / source.relative_to(project.root), dirs_exist_ok=True)
        for file in _shared_templates(project):
            place = root / file.relative_to(project.root)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place)
        copied.migrations_dir.mkdir(parents=True, exist_ok=True)
        for filename, content in migrations.items():
            (copied.migrations_dir / filename).write_bytes(content)
        yield project.model_copy(update={"root": root}), copied


def _shared_templates(project: Project) -> Iterator[Path]:
    """Templates that all targets have: those right inside of `templates/`, and below it without a target."""
    folders = [target.templates_dir for target in project.targets]
    for path in sorted((project.root / "templates").rglob("*")):
        if path.is_file() and not any(path.is_relative_to(folder) for folder in folders):
            yield path
