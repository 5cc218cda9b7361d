"""`pgsluice dev`."""

from __future__ import annotations

import sys

import typer

from pgsluice.cli.output import emit, load

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice dev stop          the next build starts a server again"""


@app.callback(invoke_without_command=True)
def dev(ctx: typer.Context) -> None:
    """The development server that builds run on."""
    if ctx.invoked_subcommand is None:
        sys.stdout.write(ctx.get_help() + "\n")


@app.command(epilog=EXAMPLES)
def stop(ctx: typer.Context) -> None:
    """Stop this project's development server.

    It stops by itself some minutes after the last use, and holds nothing but a cache. A server in a container
    is stopped as well, one behind a URL is left alone.
    """
    from pgsluice.pipeline.devdb import stop_dev

    project = load(ctx)
    stopped = stop_dev(project.root)
    emit(
        {}, "stopped the development server" if stopped else "no development server is running", as_json=False
    )
