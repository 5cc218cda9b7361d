"""A project's folder to lint, and findings as short words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.config import load_project
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.lint.choose import choose_all
from pgsluice.pipeline.lint.hazards import Context, check_hazards
from pgsluice.pipeline.lint.model import FileKind
from pgsluice.pipeline.lint.run import Linting
from pgsluice.pipeline.lint.script import read_script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgsluice.pipeline.lint.model import LintFinding, LintReport

CONFIG: Final = '[targets.app]\nversioning = "sequence"\n'
OUTSIDE: Final = "-- atlas:txmode none\n\n"


@dataclass(frozen=True, slots=True)
class Folder:
    """A project with one target, `app`."""

    root: Path

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def record(self) -> None:
        """Close every migration: record it, with no lock that says that one is open."""
        folder = self.root / "migrations/app"
        (folder / SUM_NAME).write_bytes(compute_sum(folder).render())

    def lint(self, **options: object) -> LintReport:
        """Lint the whole target."""
        project = load_project(self.root)
        linting = Linting(project.root, postgres=project.postgres[0])
        since = options.get("since")
        files = choose_all(project, project.targets, since=str(since) if since else None)
        return linting.run(files)


def new_folder(root: Path) -> Folder:
    """A project without files."""
    folder = Folder(root)
    folder.write("pgsluice.toml", CONFIG)
    return folder


def hazards(
    sql: str, *, kind: FileKind = FileKind.MIGRATION, before: Sequence[str] = ()
) -> list[LintFinding]:
    """What our own rules find in a text, given earlier ones."""
    script = read_script("now.sql", sql, transactional=not sql.startswith(OUTSIDE))
    assert script.is_valid, script.problems
    others = [(f"{number}.sql", text) for number, text in enumerate(before)]
    return list(check_hazards(Context(kind, script, lambda: iter(others))))


def rules(findings: Sequence[LintFinding]) -> list[str]:
    """Each finding as `line rule`."""
    return [f"{finding.location.line} {finding.rule_id}" for finding in findings]
