"""`pgsluice drift`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import (
    DatabaseOption,
    JsonOption,
    TargetOption,
    emit,
    load_for,
    print_problem,
    progress,
)
from pgsluice.errors import ExitCode

if TYPE_CHECKING:
    from pgsluice.pipeline.live.drift import Drift

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice drift --database postgresql://reader@db.example.com/shop
  pgsluice drift --json                for a nightly job; the database from PGSLUICE_DATABASE
  pgsluice drift --to 0012             against the migrations up to 0012, whatever the ledger says

\b
Exit codes:
  0 no drift     1 drift     2 wrong input     3 a server cannot be reached or read"""

ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="VERSION", help="Compare with the migrations up to this version."),
]


@app.command(epilog=EXAMPLES, short_help="Compare a database with its migrations, object by object.")
def drift(
    ctx: typer.Context,
    target: TargetOption = None,
    database: DatabaseOption = None,
    to: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a database with the migrations that it has, object by object.

    The migrations that the ledger has as applied, or all where there is no ledger, are replayed on a scratch
    server, and the catalogs are compared. The database is only read; any role that can connect will do. What
    is ignored, not managed, or part of an extension is listed and not compared.
    """
    from pgsluice.cli.drift_report import drift_json, drift_text
    from pgsluice.pipeline.live.database import database_url
    from pgsluice.pipeline.live.drift import find_drift

    project = load_for(ctx, target)
    chosen = project.target(target)
    url = database_url(database)
    with progress() as shown:
        found = find_drift(project, chosen, url, to=to, progress=shown)
    emit(drift_json(found), drift_text(found), as_json=as_json)
    if found.differences:
        if not as_json:
            print_problem(_headline(found), hint=_undoing(found))
        raise typer.Exit(int(ExitCode.FINDING))


def _headline(found: Drift) -> str:
    count = len(found.shown)
    what = f"{count} difference{'s' if count != 1 else ''}"
    return f"{found.place} has drifted from the migrations of {found.target}: {what}"


def _undoing(found: Drift) -> str:
    return (
        f'pgsluice diff "$PGSLUICE_DATABASE" --target {found.target} prints what brings it to the schema '
        "files; or write the change into them and build a migration"
    )
