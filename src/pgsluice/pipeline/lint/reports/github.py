"""The report as workflow commands of GitHub Actions, which become annotations of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.model import Severity
from pgsluice.pipeline.lint.reports.text import summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgsluice.pipeline.lint.model import LintFinding, LintReport

_COMMANDS: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}


def github_report(report: LintReport) -> str:
    """A command for each finding, the worst first: GitHub shows ten of a kind in one step."""
    ranked = sorted(report.findings, key=lambda finding: list(Severity).index(finding.severity))
    return "\n".join([*map(_command, ranked), summary(report)])


def _command(finding: LintFinding) -> str:
    place = finding.location
    properties = {"file": place.file}
    if place.line is not None:
        properties["line"] = str(place.line)
    if place.column is not None:
        properties["col"] = str(place.column)
    if finding.end_line is not None and place.line is not None and finding.end_line > place.line:
        properties["endLine"] = str(finding.end_line)
        properties.pop("col", None)  # a column belongs to a place in one line
    properties["title"] = f"pgsluice lint: {finding.rule_id}"
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = f"{finding.message}\n{finding.recipe}" if finding.recipe else finding.message
    return f"::{_COMMANDS[finding.severity]} {shown}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
