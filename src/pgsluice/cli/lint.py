"""`pgsluice lint`."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import JsonOption, TargetOption, progress, session
from pgsluice.errors import ExitCode, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.config import Project
    from pgsluice.pipeline.lint.model import LintFile, LintReport
    from pgsluice.pipeline.lint.run import Linting

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice lint                                 every target's schema, templates and migrations
  pgsluice lint schema/app/users.sql            some files, as pre-commit gives them
  pgsluice lint --fix                           and mend the style of schema and templates
  pgsluice lint --since origin/main             judge every migration that main does not have
  pgsluice lint --format sarif --output lint.sarif

\b
Exit codes: 0 no error, 1 errors (with --strict warnings, too), 2 wrong input."""


class Format(StrEnum):
    """How the report is printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"


@app.command(epilog=EXAMPLES, short_help="Look for what is unsafe, wrong or ill-formed.")
def lint(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATHS]...", help="Files or folders.", show_default=False)
    ] = None,
    *,
    target: TargetOption = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Rewrite the layout and case of schema files and templates.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail as errors do.")] = False,
    closed: Annotated[
        bool, typer.Option("--closed", help="Show what is found in closed migrations; it fails nothing.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="REVISION",
            help="Only the migrations of this git revision count as closed.",
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="RULE", help="Leave out a rule.", show_default=False),
    ] = None,
    output_format: Annotated[
        Format, typer.Option("--format", help="How the report is printed.")
    ] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the report there.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look for what is unsafe, wrong or ill-formed, without a database.

    Schema files and templates are read by sqlfluff, migrations by squawk, and all by rules that know
    transactions, row security and the history. A migration that atlas.sum records and that is not open is
    closed: what is found in it stops nothing.
    """
    if as_json and output_format not in {Format.TEXT, Format.JSON}:
        raise InputError(f"--json and --format {output_format} exclude each other")
    chosen = Format.JSON if as_json else output_format
    folder = session(ctx).folder
    linting, files, outside = _choose(
        folder, paths=paths, target=target, since=since, allow=frozenset(allow or ())
    )
    with progress("linting"):
        report = _run(linting, files, outside=outside, fix=fix)
    failed = bool(report.count_failing(strict=strict))
    text = _printed(report, chosen, root=linting.root, failed=failed, closed=closed)
    if output is None:
        sys.stdout.write(text + "\n")
    else:
        output.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    sys.stdout.flush()
    if failed:
        raise typer.Exit(ExitCode.FINDING)


def _choose(
    folder: Path,
    *,
    paths: Sequence[Path] | None,
    target: str | None,
    since: str | None,
    allow: frozenset[str],
) -> tuple[Linting, tuple[LintFile, ...], tuple[str, ...]]:
    """The files, and how they are linted: by the project's settings, or by the defaults without one."""
    from pgsluice.pipeline.lint.choose import choose_all, choose_paths, choose_without_project
    from pgsluice.pipeline.lint.run import Linting

    here = [_found(path, folder) for path in paths or ()]
    project = _project(folder)
    if project is None:
        if not here:
            raise InputError("no project is configured here, so name the files to lint", hint="pgsluice init")
        if target is not None or since is not None:
            raise InputError("--target and --since need a project", hint="pgsluice init")
        root = folder.resolve()
        return Linting(root, has_project=False, allowed=allow), choose_without_project(here, root=root), ()
    targets = project.targets if target is None else (project.target(target),)
    linting = Linting(project.root, postgres=project.postgres[0], allowed=allow)
    if not here:
        return linting, choose_all(project, targets, since=since), ()
    files, outside = choose_paths(project, targets, paths=here, since=since)
    return linting, files, outside


def _found(path: Path, folder: Path) -> Path:
    """A path from `-C`, or from the current folder: pre-commit names files from the repository's root."""
    inside = folder / path
    return path if path.exists() and not inside.exists() else inside


def _project(folder: Path) -> Project | None:
    """The project, or None when no folder from here up has a configuration; a wrong one is an error."""
    from pgsluice.config import find_config, load_project
    from pgsluice.pipeline.publish import recover

    start = folder.resolve()
    if not any(find_config(one) is not None for one in (start, *start.parents)):
        return None
    project = load_project(start)
    recover(project.root)
    return project


def _run(linting: Linting, files: tuple[LintFile, ...], *, outside: tuple[str, ...], fix: bool) -> LintReport:
    """Lint; with `fix` mend first, so that the report speaks of the files as they are now."""
    from dataclasses import replace

    if not fix:
        return linting.run(files, outside=outside)
    from pgsluice.pipeline.lint.fix import plan_fixes
    from pgsluice.pipeline.publish import publish_files

    planned = plan_fixes(files, root=linting.root, config_root=linting.config_root)
    publish_files(linting.root, planned.files, expect=planned.before)
    report = linting.run(files, outside=outside)
    names = {file.path: file.name for file in files}
    return replace(report, fixed=tuple(sorted(names[path] for path in planned.files)), unfixed=planned.left)


def _printed(report: LintReport, chosen: Format, *, root: Path, failed: bool, closed: bool) -> str:
    from pgsluice.pipeline.lint.reports.document import json_report
    from pgsluice.pipeline.lint.reports.github import github_report
    from pgsluice.pipeline.lint.reports.gitlab import gitlab_report
    from pgsluice.pipeline.lint.reports.places import from_repository
    from pgsluice.pipeline.lint.reports.sarif import sarif_report
    from pgsluice.pipeline.lint.reports.text import text_report

    if chosen is Format.TEXT:
        return text_report(report, all_closed=closed)
    if chosen is Format.GITHUB:
        return github_report(from_repository(report, root))
    document: object
    if chosen is Format.JSON:
        document = json_report(report, ok=not failed)
    elif chosen is Format.SARIF:
        document = sarif_report(from_repository(report, root))
    else:
        document = gitlab_report(from_repository(report, root))
    return json.dumps(document, indent=2, ensure_ascii=False)
