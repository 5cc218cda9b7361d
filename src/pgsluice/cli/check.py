"""`pgsluice check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import (
    JsonOption,
    TargetOption,
    emit,
    load,
    print_error_line,
    print_problem,
    progress,
)
from pgsluice.errors import ExitCode, UnreachableError

if TYPE_CHECKING:
    from pgsluice.pipeline.check import CheckResult

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice check                       on every server that this machine has
  pgsluice check --all-versions        a missing major is an error: for CI
  pgsluice check --junit check.xml     a report for CI

\b
Exit codes:
  0 everything holds     1 a proof failed     2 wrong input
  3 no server            4 the migrations are not the recorded ones"""


@app.command(epilog=EXAMPLES)
def check(
    ctx: typer.Context,
    target: TargetOption = None,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Fail when a major of `postgres` was not found.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit report.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove everything again, on each PostgreSQL that is found.

    The migrations from the first to the last lead to the schema, which pg_dump and migra are asked about
    as well; the newest one is made again byte for byte; every upgrade fixture in tests/upgrades goes as it
    says.
    """
    from pgsluice.cli.junit import junit_xml
    from pgsluice.pipeline.check import check_folder, check_on, find_servers, missing_majors

    project = load(ctx)
    targets = project.targets if target is None else (project.target(target),)
    servers = find_servers(project)
    missing = missing_majors(project, servers)
    if missing and all_versions:
        raise UnreachableError(
            f"no PostgreSQL {', '.join(map(str, missing))} was found",
            hint="install it, or narrow postgres in the project's configuration",
        )
    results = [check_folder(project, one) for one in targets]
    sound = tuple(one for one, result in zip(targets, results, strict=True) if result.problem is None)
    with progress() as shown:
        for dev in servers.values() if sound else ():
            results.extend(check_on(project, sound, dev, progress=shown))
    for result in results:
        if not as_json and result.problem is not None:
            problem = "\n".join(result.problem.lines())
            print_problem(
                f"{result.target} on {result.server}: {result.name}\n  {problem}", hint=result.problem.hint
            )
    if missing and not as_json:
        print_error_line(f"not found here, so not checked: PostgreSQL {', '.join(map(str, missing))}")
    if junit is not None:
        junit.write_bytes(junit_xml(results))
    failed = [result.problem.exit_code for result in results if result.problem is not None]
    emit(
        {"ok": not failed, "missing": list(missing), "results": [_as_json(result) for result in results]},
        "\n".join(_line(result) for result in results if result.problem is None),
        as_json=as_json,
    )
    if failed:
        raise typer.Exit(int(ExitCode.of_all(failed)))


def _line(result: CheckResult) -> str:
    note = f" ({result.note})" if result.note is not None else ""
    return f"ok  {result.target} on {result.server}: {result.name}{note}"


def _as_json(result: CheckResult) -> dict[str, object]:
    problem = result.problem
    return {
        "target": result.target,
        "server": result.server,
        "name": result.name,
        "ok": problem is None,
        "note": result.note,
        "message": problem.message if problem is not None else None,
        "details": list(problem.details) if problem is not None else [],
        "hint": problem.hint if problem is not None else None,
    }
