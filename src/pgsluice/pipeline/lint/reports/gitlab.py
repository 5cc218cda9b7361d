"""The report as GitLab's code quality artefact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.model import Severity
from pgsluice.pipeline.lint.reports.sarif import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgsluice.pipeline.lint.model import LintReport

_SEVERITIES: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.NOTE: "info",
}


def gitlab_report(report: LintReport) -> list[dict[str, object]]:
    """A list of issues; each fingerprint stands once, as GitLab demands."""
    seen: dict[str, int] = {}
    issues: list[dict[str, object]] = []
    for finding in report.findings:
        mark = fingerprint(finding)
        seen[mark] = seen.get(mark, 0) + 1
        text = f"{finding.message}; {finding.recipe}" if finding.recipe else finding.message
        issues.append(
            {
                "description": text,
                "check_name": finding.rule_id,
                "fingerprint": mark if seen[mark] == 1 else f"{mark}{seen[mark]}",
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": finding.location.file, "lines": {"begin": finding.location.line or 1}},
            }
        )
    return issues
