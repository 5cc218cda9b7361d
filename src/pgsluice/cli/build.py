"""`pgsluice build`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load, progress

if TYPE_CHECKING:
    from pgsluice.config import Project, Target

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice build add_email             start the migration add_email, or build it again while it is open
  pgsluice build                       build the open migration again after another edit
  pgsluice build drop_age --allow-destructive
  pgsluice build add_email --online    several files, between which the database stays in use

\b
Exit codes:
  0 written, or nothing to do     1 the proof failed
  2 wrong input                   3 no dev server
  4 refused: data would be lost, a backfill is missing, or the history was changed"""


@app.command(epilog=EXAMPLES, short_help="Turn the schema's edits into a migration that was proved.")
def build(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="What the migration does: a-z, 0-9 and _.", show_default=False),
    ] = None,
    *,
    target: TargetOption = None,
    allow_destructive: Annotated[
        bool,
        typer.Option("--allow-destructive", help="Agree to every loss of data that is named, in this build."),
    ] = False,
    online: Annotated[
        bool | None,
        typer.Option(
            "--online/--no-online",
            help="Write files that keep others waiting for moments only, or again one transaction; "
            "an open migration stays as it is.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn the schema's edits into a migration that was proved on a real PostgreSQL.

    Compares what the migrations lead to with what the schema files say, renders the difference through the
    migration's template, and runs it on scratch databases: without rows, with rows, and on the upgrade
    fixtures of tests/upgrades. Then it writes migration, atlas.sum and pgsluice.lock together, or nothing.
    """
    from pgsluice.cli.report import build_json, build_text
    from pgsluice.pipeline.build import build_target

    project = load(ctx)
    if target is None and name is None and len(project.targets) > 1:
        targets = project.targets
    else:
        targets = (project.target(target),)
    results = []
    for one in targets:
        with progress() as shown:
            results.append(
                build_target(
                    project,
                    one,
                    name=name,
                    allow_destructive=allow_destructive,
                    online=online,
                    progress=shown,
                )
            )
    value = build_json(results[0]) if len(results) == 1 else {"targets": [build_json(one) for one in results]}
    texts = (
        f"{build_text(result)}{_empty(project, one)}" for one, result in zip(targets, results, strict=True)
    )
    emit(value, "\n".join(texts), as_json=as_json)


def _empty(project: Project, target: Target) -> str:
    """A line for who built before there was anything to build, or in another folder than they wrote in."""
    if any(target.schema_dir.rglob("*.sql")):
        return ""
    folder = project.relative(target.schema_dir)
    return f"\n  {folder} holds no SQL file: describe a table there, one object a file"
