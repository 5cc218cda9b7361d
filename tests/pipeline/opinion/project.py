"""A user's project whose builds run in this process, so that a test can blind what it is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgsluice.config import load_project
from pgsluice.pipeline import states
from pgsluice.pipeline.build import BuildResult, build_target
from pgsluice.pipeline.snapshot import read_snapshot
from tests.conftest import server_url

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pgsluice.config import Project
    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.snapshot import Snapshot

CONFIG = """\
dev = "{dev}"
postgres = ["15", "18"]

[targets.app]
manages = ["app"]
ignore = ["app.scratch_*"]
versioning = "sequence"
"""


@dataclass(frozen=True, slots=True)
class UserProject:
    """One target that manages schema app."""

    root: Path

    @property
    def loaded(self) -> Project:
        """Its configuration."""
        return load_project(self.root)

    def build(self, name: str, schema: str) -> BuildResult:
        """Make `schema` the whole schema, and build."""
        self.write_schema(schema)
        project = self.loaded
        return build_target(project, project.target(None), name=name)

    def write_schema(self, text: str) -> None:
        """Make `text` the whole schema."""
        (self.root / "schema/app/all.sql").write_text(text, encoding="utf-8")

    def migrations(self) -> list[str]:
        """The names of the files that builds wrote."""
        return sorted(path.name for path in (self.root / "migrations/app").glob("*.sql"))


def start_project(root: Path, server: DevServer) -> UserProject:
    """An empty project that builds on `server`."""
    (root / "schema/app").mkdir(parents=True)
    (root / "pgsluice.toml").write_text(CONFIG.format(dev=server_url(server)), encoding="utf-8")
    return UserProject(root)


def blind(monkeypatch: pytest.MonkeyPatch, facet: str) -> None:
    """Make the snapshot overlook a facet, as if nobody had thought of it."""

    def read(*args: Any, **options: Any) -> Snapshot:  # Any: passed on as it comes
        seen = read_snapshot(*args, **options)
        objects = {
            address: replace(one, facets={key: value for key, value in one.facets.items() if key != facet})
            for address, one in seen.objects.items()
        }
        return replace(seen, objects=objects)

    monkeypatch.setattr(states, "read_snapshot", read)
