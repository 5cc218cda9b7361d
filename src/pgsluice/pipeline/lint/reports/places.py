"""Places as a service wants them that knows the repository alone: relative to its root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.lint.model import LintFinding, LintReport


def from_repository(report: LintReport, root: Path) -> LintReport:
    """The report with the files of its findings named from the git repository that holds the project."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    prefix = root.relative_to(top).as_posix()
    if prefix == ".":
        return report
    return replace(report, findings=tuple(_below(finding, prefix) for finding in report.findings))


def _below(finding: LintFinding, prefix: str) -> LintFinding:
    place = finding.location
    return replace(finding, location=replace(place, file=f"{prefix}/{place.file}"))
