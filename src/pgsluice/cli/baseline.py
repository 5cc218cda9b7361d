"""`pgsluice baseline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import DatabaseOption, JsonOption, TargetOption, emit, load_for, progress
from pgsluice.errors import InputError

if TYPE_CHECKING:
    from pgsluice.pipeline.live.baseline import Baseline

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice baseline --database postgresql://deploy@db.example.com/shop
  pgsluice baseline 0012               the database has the migrations up to 0012
  pgsluice baseline --from-atlas       as Atlas's own table says

\b
Exit codes:
  0 recorded, or it was already     2 wrong input     3 a server cannot be reached, read or written
  4 the database differs from the migrations, or its ledger says something else"""

VersionArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[VERSION]", help="The last migration that the database has; else the last of all."
    ),
]


@app.command(epilog=EXAMPLES, short_help="Record that a database has the migrations up to a version.")
def baseline(
    ctx: typer.Context,
    version: VersionArgument = None,
    *,
    target: TargetOption = None,
    database: DatabaseOption = None,
    from_atlas: Annotated[
        bool, typer.Option("--from-atlas", help="Take over what Atlas's revision table lists.")
    ] = False,
    revisions_schema: Annotated[
        str, typer.Option("--revisions-schema", metavar="NAME", help="The schema of that table.")
    ] = "atlas_schema_revisions",
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Record it although the database differs.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare, and write nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Record in a database's ledger that it has the migrations up to a version; none of them is run.

    For a database that was there before pgsluice. It must be what these migrations make, which is compared as
    `drift` does; what differs is listed, and nothing is recorded.
    """
    from pgsluice.pipeline.live.baseline import Wish, adopt
    from pgsluice.pipeline.live.database import database_url

    if from_atlas and version is not None:
        raise InputError("--from-atlas takes the version from Atlas's table, and none from the command line")
    project = load_for(ctx, target)
    chosen = project.target(target)
    url = database_url(database)
    wish = Wish(version, from_atlas, revisions_schema, allow_drift, dry_run)
    with progress() as shown:
        result = adopt(project, chosen, url, wish=wish, progress=shown)
    emit(_as_json(result, dry_run=dry_run), _as_text(result, dry_run=dry_run), as_json=as_json)


def _as_json(result: Baseline, *, dry_run: bool) -> dict[str, object]:
    from pgsluice.cli.drift_report import drift_json

    return {
        "target": result.target,
        "database": result.place,
        "migrations": list(result.recorded),
        "recorded": result.is_new and not dry_run,
        "drift": drift_json(result.drift) if result.drift is not None else None,
    }


def _as_text(result: Baseline, *, dry_run: bool) -> str:
    from pgsluice.cli.drift_report import drift_text

    count = len(result.recorded)
    what = f"{count} migration{'s' if count != 1 else ''} of {result.target}, up to {result.recorded[-1]}"
    if not result.is_new or result.drift is None:
        return f"nothing to do: the ledger of {result.place} has {what}"
    verb = "would record" if dry_run else "recorded"
    return f"{drift_text(result.drift)}\n{verb} {what}, as the baseline of {result.place}"
