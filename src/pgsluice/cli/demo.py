"""`pgsluice demo`."""

from __future__ import annotations

import itertools
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


@app.command(epilog=EXAMPLES, short_help="See the whole way in a minute, in a folder of its own.")
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

    place = _place(session(ctx).folder, folder)
    with progress() as shown:
        run_demo(place, shown=_paragraph, progress=shown)


def _place(start: Path, folder: Path | None) -> Path:
    """The folder asked for, or this one when it is empty, or a new one in it."""
    if folder is not None:
        place = start / folder
        if place.exists() and not _is_free(place):
            raise InputError(f"{place} is not empty", hint="pgsluice demo NEW_FOLDER")
        return place
    if _is_free(start):
        return start
    names = (f"pgsluice-demo{'' if number == 1 else f'-{number}'}" for number in itertools.count(1))
    return next(start / name for name in names if not (start / name).exists())


def _is_free(folder: Path) -> bool:
    return folder.is_dir() and all(one.name == ".venv" for one in folder.iterdir())


def _paragraph(text: str) -> None:
    sys.stdout.write(f"{text}\n\n")
    sys.stdout.flush()
