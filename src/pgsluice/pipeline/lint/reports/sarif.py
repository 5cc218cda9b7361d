"""The report as SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pgsluice import __version__
from pgsluice.pipeline.lint.model import Engine, Severity
from pgsluice.pipeline.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgsluice.pipeline.lint.model import LintFinding, LintReport

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT: Final = "PROJECTROOT"

_LEVELS: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}
_HELP: Final[Mapping[Engine, str]] = {
    Engine.SQLFLUFF: "https://docs.sqlfluff.com/en/stable/reference/rules.html",
    Engine.SQUAWK: "https://squawkhq.com/docs/{rule}",
}


def sarif_report(report: LintReport) -> dict[str, object]:
    """One run; closed migrations' findings are left out, for nobody can mend them."""
    rules = _rules(report.findings)
    places = {rule_id: index for index, rule_id in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "pgsluice lint",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": list(rules.values()),
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {ROOT: {"description": {"text": "The project's folder."}}},
                "results": _results(report.findings, places),
            }
        ],
    }


def _results(findings: Sequence[LintFinding], places: Mapping[str, int]) -> list[dict[str, object]]:
    seen: dict[str, int] = {}
    results = []
    for finding in findings:
        mark = fingerprint(finding)
        seen[mark] = seen.get(mark, 0) + 1
        results.append(_result(finding, index=places[finding.rule_id], mark=f"{mark}:{seen[mark]}"))
    return results


def fingerprint(finding: LintFinding) -> str:
    """The same while the finding stays and only its line moves."""
    parts = (finding.rule_id, finding.location.file, finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _rules(findings: Sequence[LintFinding]) -> dict[str, dict[str, object]]:
    """A descriptor for each rule that found something, in order of code."""
    chosen = {finding.rule_id: finding for finding in findings}
    return {rule_id: _rule(chosen[rule_id]) for rule_id in sorted(chosen)}


def _rule(finding: LintFinding) -> dict[str, object]:
    known = RULES.get(finding.rule) if finding.engine is Engine.PGSLUICE else None
    why = known.why if known is not None else f"{finding.message}."
    recipe = known.recipe if known is not None else finding.recipe
    rule: dict[str, object] = {
        "id": finding.rule_id,
        "shortDescription": {"text": why},
        "fullDescription": {"text": why},
        "help": {"text": f"{why} {recipe[:1].upper()}{recipe[1:]}." if recipe else why},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {"tags": [str(finding.engine)]},
    }
    if finding.engine in _HELP:
        rule["helpUri"] = _HELP[finding.engine].format(rule=finding.rule)
    return rule


def _result(finding: LintFinding, *, index: int, mark: str) -> dict[str, object]:
    place = finding.location
    text = f"{finding.message}; {finding.recipe}" if finding.recipe else finding.message
    physical: dict[str, object] = {
        "artifactLocation": {"uri": quote(place.file.encode("utf-8", "surrogateescape")), "uriBaseId": ROOT}
    }
    if place.line is not None:
        region = {"startLine": place.line}
        if place.column is not None:
            region["startColumn"] = place.column
        if finding.end_line is not None and finding.end_line > place.line:
            region["endLine"] = finding.end_line
        physical["region"] = region
    return {
        "ruleId": finding.rule_id,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"pgsluiceLint/v1": mark},
    }
