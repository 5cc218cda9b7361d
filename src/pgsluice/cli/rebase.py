"""`pgsluice rebase`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load, progress
from pgsluice.errors import InputError

if TYPE_CHECKING:
    from pgsluice.pipeline.branches import Rebased

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice rebase                      in the middle of git merge or git rebase, or after it
  pgsluice rebase --dry-run            say what would be renamed and built again
  pgsluice rebase --onto origin/main   the shared migrations are the ones of that branch
  pgsluice rebase migrations/app/0005_mine.sql       without git: these are yours

\b
Exit codes:
  0 done, or nothing to do        1 the proof failed
  2 wrong input, or a conflict that only you can settle
  3 no dev server                 4 refused: the result is not the schema, or data would be lost"""


@app.command(epilog=EXAMPLES, short_help="After a merge: put your migrations after the shared ones.")
def rebase(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...", help="Migrations of yours, instead of asking git.", show_default=False
        ),
    ] = None,
    *,
    onto: Annotated[
        str | None,
        typer.Option("--onto", metavar="REF", help="The git revision whose migrations are shared already."),
    ] = None,
    target: TargetOption = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Start a migration with what is left, when none of yours is open."
        ),
    ] = None,
    allow_destructive: Annotated[
        bool,
        typer.Option(
            "--allow-destructive", help="Agree to every loss of data in the migration that is built again."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """After two branches added migrations: put yours after the shared ones, and prove it.

    Closed migrations of yours keep their bytes and get versions that follow. The open one is built again
    from the merged schema, so that it holds only what is left to do. The whole is proved before anything is
    written; then migrations, atlas.sum and pgsluice.lock are written together, or nothing is.

    The shared ones are those of the branch being merged, or rebased onto; else those of origin's branch,
    main or master. Settle conflicts in schema and templates first, the ones in atlas.sum and pgsluice.lock
    not at all.
    """
    from pgsluice.pipeline.branches import rebase_target

    if files and onto is not None:
        raise InputError("name your migrations or --onto, not both", hint="pgsluice rebase --help")
    project = load(ctx)
    one = target is not None or bool(files) or name is not None
    targets = (project.target(target),) if one else project.targets
    results = []
    for each in targets:
        with progress() as shown:
            results.append(
                rebase_target(
                    project,
                    each,
                    onto=onto,
                    files=files or (),
                    name=name,
                    allow_destructive=allow_destructive,
                    dry_run=dry_run,
                    progress=shown,
                )
            )
    values = [rebase_json(result) for result in results]
    text = "\n".join(rebase_text(result) for result in results)
    emit(values[0] if len(values) == 1 else {"targets": values}, text, as_json=as_json)


def rebase_json(result: Rebased) -> dict[str, object]:
    """A rebase's result as JSON values."""
    return {
        "target": result.target,
        "outcome": str(result.outcome),
        "onto": result.onto,
        "after": result.after,
        "renamed": [{"from": old, "to": new} for old, new in result.renamed],
        "kept": list(result.kept),
        "rebuilt": [{"from": old, "to": new} for old, new in result.rebuilt],
        "removed": list(result.removed),
        "fixtures": [{"from": old, "to": new} for old, new in result.moved],
        "fixtures_run": result.fixtures,
        "losses": list(result.losses),
        "notes": list(result.notes),
        "proved_on": result.server,
        "next": result.then,
    }


def rebase_text(result: Rebased) -> str:
    """A rebase's result in a few lines."""
    others = f"those of {result.onto}" if result.onto is not None else "the others"
    if result.outcome == "unchanged":
        return f"nothing to do: the migrations of {result.target} follow {others} already"
    planned = result.outcome == "planned"
    if result.outcome == "settled":
        lines = [f"took the migrations of {result.onto} for {result.target}: none of them is yours"]
    else:
        verb = "would put" if planned else "put"
        place = f", whose last is {result.after}" if result.after else ""
        lines = [f"{verb} your migrations of {result.target} after {others}{place}"]
    lines += [f"  {old} -> {new}" for old, new in result.renamed]
    lines += [f"  {name} keeps its name" for name in result.kept]
    lines += [_rebuilt_line(old, new) for old, new in result.rebuilt]
    lines += [f"  {name} is gone{_why(result)}" for name in result.removed]
    lines += [
        f"  {old} -> {new}" if old != new else f"  {old} names the new version" for old, new in result.moved
    ]
    lines += [f"  loses {loss}" for loss in result.losses]
    lines += [f"  note: {note}" for note in result.notes]
    if result.server is not None:
        ran = {0: "", 1: ", with 1 upgrade fixture"}.get(
            result.fixtures, f", with {result.fixtures} upgrade fixtures"
        )
        lines.append(f"  proved on {result.server}{ran}")
    if result.then is not None and not planned:
        lines.append(f"next: {result.then}")
    return "\n".join(lines)


def _rebuilt_line(old: str | None, new: str) -> str:
    """One file of the open migration."""
    if old is None:
        return f"  {new}, built of what is left"
    return f"  {new}, built again" if old == new else f"  {old} -> {new}, built again"


def _why(result: Rebased) -> str:
    """Why a file of the open migration is no more."""
    if result.rebuilt:
        return ""
    return ": the merged schema needs nothing that the shared migrations do not do"
