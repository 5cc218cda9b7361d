"""`pgsluice demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pgsluice.cli.output import progress, session
from pgsluice.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice demo                        in an empty folder
  pgsluice demo shop                   in a new folder of that name"""


@app.command(epilog=EXAMPLES)
def demo(
    ctx: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="An empty or new folder.", show_default=False)
    ] = None,
) -> None:
    """See the whole way in a minute: a schema, an edit, the migration that it becomes, applied.

    Writes a small project, builds its first migration, edits the schema, builds the second one, and runs
    both on a scratch database with rows in between. The project stays for you to play with.
    """
    from pgsluice.demo import run_demo

    start = session(ctx).folder
    place = start / (folder or Path())
    if folder is None and any(one.name != ".venv" for one in start.iterdir()):
        place = start / "pgsluice-demo"
    if place.exists() and (not place.is_dir() or any(one.name != ".venv" for one in place.iterdir())):
        raise InputError(f"{place} is not empty", hint="pgsluice demo NEW_FOLDER")
    with progress() as shown:
        run_demo(place, shown=_paragraph, progress=shown)


def _paragraph(text: str) -> None:
    sys.stdout.write(f"{text}\n\n")
    sys.stdout.flush()
