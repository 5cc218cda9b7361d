"""A project folder with one target, for tests that render."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.config import Target
from pgsluice.pipeline.render import Rendered, render_migration
from pgsluice.pipeline.statement import Plan

if TYPE_CHECKING:
    from pathlib import Path

HEAD: Final = '{% extends "migration.sql.j2" %}\n{% import "macros.sql.j2" as sql %}\n'


@dataclass(frozen=True, slots=True)
class RenderFolder:
    """Renders plans for the target `app` below `root`."""

    root: Path
    lock_order: tuple[str, ...] = ()

    @property
    def target(self) -> Target:
        return Target(
            name="app",
            schema_dir=self.root / "schema/app",
            migrations_dir=self.root / "migrations/app",
            templates_dir=self.root / "templates/app",
            manages=("app",),
            lock_order=self.lock_order,
        )

    @property
    def template(self) -> Path:
        return self.root / "templates/app/add_email.sql.j2"

    def write(self, name: str, data: str | bytes) -> Path:
        """Put a file below the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def render(
        self,
        template: str | bytes | None = None,
        plan: Plan | None = None,
        *,
        allow_destructive: bool = False,
    ) -> Rendered:
        """Render with this text as the migration's own template."""
        if template is not None:
            self.write("templates/app/add_email.sql.j2", template)
        return render_migration(
            plan or Plan(),
            template=self.template,
            target=self.target,
            root=self.root,
            allow_destructive=allow_destructive,
        )

    def block(self, name: str, body: str, plan: Plan | None = None, *, before: str = "") -> Rendered:
        """Render with one block."""
        return self.render(f"{HEAD}{before}{{% block {name} %}}\n{body}\n{{% endblock %}}\n", plan)
