"""The report as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.lint.model import Severity

if TYPE_CHECKING:
    from pgsluice.pipeline.lint.model import LintFinding, LintReport


def json_report(report: LintReport, *, ok: bool) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "ok": ok,
        "files": len(report.files),
        "counts": {str(severity): report.count(severity) for severity in Severity},
        "findings": [_finding(finding, is_closed=False) for finding in report.findings]
        + [_finding(finding, is_closed=True) for finding in report.closed],
        "fixed": list(report.fixed),
        "unfixed": [{"file": name, "reason": reason} for name, reason in report.unfixed],
        "outside": list(report.outside),
    }


def _finding(finding: LintFinding, *, is_closed: bool) -> dict[str, object]:
    place = finding.location
    return {
        "rule": finding.rule_id,
        "engine": finding.engine,
        "severity": finding.severity,
        "message": finding.message,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": finding.end_line,
        "recipe": finding.recipe or None,
        "fixable": finding.is_fixable,
        "closed": is_closed,
    }
