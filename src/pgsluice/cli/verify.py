"""`pgsluice verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load, print_error_line, print_problem
from pgsluice.errors import ExitCode

if TYPE_CHECKING:
    from pgsluice.pipeline.finding import Finding

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice verify                      every target
  pgsluice verify --target app         one of them
  pgsluice verify --json | jq .ok      for a machine

\b
Exit codes: 0 all is as built, 1 something was found, 2 bad configuration."""


@app.command(epilog=EXAMPLES, short_help="Check that all is as it was proved; needs no database.")
def verify(ctx: typer.Context, target: TargetOption = None, as_json: JsonOption = False) -> None:
    """Check migrations, schema and templates against the last proved build.

    Needs no database: made for CI and pre-commit. It names files that were edited, added, removed, reordered
    or left in conflict after atlas.sum recorded them, and schema files or templates changed since the
    last `pgsluice build`. Comments and white space in the schema may change freely. Where byte order runs
    10_b.sql before 2_a.sql, a warning says so.
    """
    from pgsluice.pipeline.finding import TargetFiles
    from pgsluice.pipeline.sum_check import order_warnings
    from pgsluice.pipeline.verify import verify_target

    project = load(ctx)
    targets = project.targets if target is None else (project.target(target),)
    findings = [(each.name, finding) for each in targets for finding in verify_target(project, each)]
    for _, finding in () if as_json else findings:
        print_problem("\n  ".join((finding.message, *finding.details)), hint=finding.hint)
    warnings = [(each.name, one) for each in targets for one in order_warnings(TargetFiles(project, each))]
    for _, warning in () if as_json else warnings:
        print_warning(warning)
    names = ", ".join(each.name for each in targets)
    emit(
        {"ok": not findings, "findings": [_as_json(*one) for one in (*findings, *warnings)]},
        "" if findings else f"{names}: as built",
        as_json=as_json,
    )
    if findings:
        raise typer.Exit(ExitCode.FINDING)


def print_warning(warning: Finding) -> None:
    """Print to stderr what is no error, and must be known."""
    print_error_line("\n  ".join((f"warning: {warning.message}", *warning.details)))
    print_error_line(f"hint: {warning.hint}")


def _as_json(target: str, finding: Finding) -> dict[str, object]:
    return {
        "target": target,
        "code": finding.code,
        "message": finding.message,
        "file": finding.location.file,
        "line": finding.location.line,
        "details": list(finding.details),
        "hint": finding.hint,
    }
