"""`pgsluice rehash`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load, print_error_line
from pgsluice.errors import ExitCode

if TYPE_CHECKING:
    from pgsluice.pipeline.branches import Rehashed

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice rehash                      record a folder that another tool wrote, or a file added by hand
  pgsluice rehash --check              say what would change, and write nothing
  pgsluice rehash --accept 0007_a.sql  agree that this recorded migration was changed

\b
Exit codes:
  0 recorded, or nothing to do         1 with --check: atlas.sum does not fit the folder
  2 wrong input                        4 refused: a recorded migration changed"""


@app.command(epilog=EXAMPLES, short_help="Compute atlas.sum anew, and say what changed.")
def rehash(
    ctx: typer.Context,
    target: TargetOption = None,
    *,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="FILE",
            help="Agree that this recorded migration was edited, removed, renamed, or put before another; "
            "may be repeated, and be a pattern.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Say what would change, and write nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compute atlas.sum anew, as `atlas migrate hash` does, and say what changed file by file.

    For a folder that another tool wrote, for a migration added by hand, and for an atlas.sum in conflict. It
    proves nothing: `pgsluice build` writes the lock of a folder whose migrations lead to its schema, and
    `pgsluice check` proves it again. A migration that changed after it was recorded is refused unless it is
    named with --accept.
    """
    from pgsluice.pipeline.branches import rehash_target

    project = load(ctx)
    targets = project.targets if target is None else (project.target(target),)
    results = [rehash_target(project, each, accept=accept or (), check=check) for each in targets]
    for warning in () if as_json else (warning for result in results for warning in result.warnings):
        print_error_line(f"warning: {warning.text}")
        if warning.hint is not None:
            print_error_line(f"hint: {warning.hint}")
    values = [rehash_json(result) for result in results]
    text = "\n".join(rehash_text(result) for result in results)
    emit(values[0] if len(values) == 1 else {"targets": values}, text, as_json=as_json)
    if check and any(result.differs for result in results):
        raise typer.Exit(ExitCode.FINDING)


def rehash_json(result: Rehashed) -> dict[str, object]:
    """A rehash's result as JSON values."""
    return {
        "target": result.target,
        "sum": result.sum,
        "written": result.written,
        "differs": result.differs,
        "migrations": result.count,
        "changes": [
            {"file": one.name, "change": str(one.change), "renamed_from": one.old} for one in result.changes
        ],
        "warnings": [{"message": one.text, "hint": one.hint} for one in result.warnings],
        "next": result.then,
    }


def rehash_text(result: Rehashed) -> str:
    """A rehash's result in a few lines."""
    count = f"{result.count} migration{'' if result.count == 1 else 's'}"
    if not result.differs:
        return f"nothing to do: {result.sum} records the {count} of {result.target} as they are"
    lines = [f"{'wrote' if result.written else 'would write'} {result.sum}: {count}"]
    for one in result.changes:
        old = f", until now {one.old}" if one.old is not None else ""
        lines.append(f"  {one.change}: {one.name}{old}")
    if result.written:
        lines.append(f"next: {result.then}")
    return "\n".join(lines)
