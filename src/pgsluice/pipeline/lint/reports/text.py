"""The report for people: a line a finding, the recipe once for each rule of a file, repeats counted."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgsluice.pipeline.lint.model import LintFinding, LintReport

SHOWN: Final = 5


def text_report(report: LintReport, *, all_closed: bool = False) -> str:
    """The whole report; `all_closed` shows what was found in closed migrations, too."""
    lines = [line for finding in _by_file(report.findings) for line in finding]
    if all_closed:
        lines += [line for finding in _by_file(report.closed) for line in finding]
    lines += [f"fixed {name}" for name in report.fixed]
    lines += [f"not fixed in {name}: {reason}" for name, reason in report.unfixed]
    return "\n".join([*lines, summary(report, all_closed=all_closed)])


def summary(report: LintReport, *, all_closed: bool = False) -> str:
    """One line: how many files, how many findings of each kind, what was passed over."""
    counts = [
        f"{count} {severity}{'' if count == 1 else 's'}"
        for severity in Severity
        if (count := report.count(severity))
    ]
    files = f"{len(report.files)} file{'' if len(report.files) == 1 else 's'}"
    parts = [f"{files}: {', '.join(counts) or 'nothing found'}"]
    if report.closed and not all_closed:
        parts.append(f"{len(report.closed)} in closed migrations, shown by --closed")
    if report.outside:
        parts.append(f"{len(report.outside)} outside of the targets passed over")
    fixable = sum(finding.is_fixable for finding in report.findings)
    if fixable:
        parts.append(f"{fixable} for pgsluice lint --fix")
    return "; ".join(parts)


def _by_file(findings: Sequence[LintFinding]) -> Iterator[list[str]]:
    for _, group in groupby(findings, key=lambda finding: finding.location.file):
        yield list(_file(list(group)))


def _file(findings: Sequence[LintFinding]) -> Iterator[str]:
    counts: dict[str, int] = {}
    recipes: set[tuple[str, str]] = set()
    for finding in findings:
        counts[finding.rule_id] = counts.get(finding.rule_id, 0) + 1
        if counts[finding.rule_id] > SHOWN:
            continue
        yield f"{finding.location}: {finding.severity}: {finding.message} [{finding.rule_id}]"
        if finding.recipe and (finding.rule_id, finding.recipe) not in recipes:
            recipes.add((finding.rule_id, finding.recipe))
            yield f"  recipe: {finding.recipe}"
    for rule, count in counts.items():
        if count > SHOWN:
            yield f"{findings[0].location.file}: and {count - SHOWN} more [{rule}]"
