"""What commands share: loading the project, results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.status import Status

    from pgsluice.config import Project
    from pgsluice.errors import PipelineError

PROGRESS_AFTER_S: Final = 1.0

TargetOption = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="NAME", help="The target; may be left out when there is one."),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="URL",
        envvar="PGSLUICE_DATABASE",
        show_envvar=False,
        help="The database: a URL or libpq's `key=value` words; else PGSLUICE_DATABASE.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True, slots=True)
class Session:
    """What the options before the command said; every command finds it in `ctx.obj`."""

    folder: Path


class Progress:
    """Says on stderr what takes longer than a second; call it with each new step."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None
        self._status: Status | None = None
        self._text = ""

    def __call__(self, text: str) -> None:
        """Start a step; it is shown once it has taken a second."""
        with self._guard:
            self._text = text
            if self._status is not None:
                self._status.update(text)
                return
            self._cancel()
            self._timer = threading.Timer(PROGRESS_AFTER_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Take the last step away."""
        with self._guard:
            self._cancel()
            if self._status is not None:
                self._status.stop()
                self._status = None

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _show(self) -> None:
        with self._guard:
            if self._timer is None:
                return
            if not _is_fancy(sys.stderr):
                print_error_line(f"{self._text} …")
                return
            from rich.console import Console

            self._status = Console(stderr=True).status(self._text)
            self._status.start()


def load(ctx: typer.Context) -> Project:
    """The project of the current folder or of `-C`, after finishing what a killed command left."""
    from pgsluice.config import load_project
    from pgsluice.pipeline.publish import recover

    project = load_project(session(ctx).folder)
    recover(project.root)
    return project


def load_for(ctx: typer.Context, target: str | None) -> Project:
    """The project that has `target`: the current folder's, or the targets that the package brings along.

    For commands that only read migrations: such a target needs no checkout and no configuration.
    """
    from pgsluice.config import NoConfigError
    from pgsluice.packaged import has_target, packaged_project

    if target is None:
        return load(ctx)
    try:
        own = load(ctx)
    except NoConfigError:
        brought = packaged_project()
        if brought is None or not has_target(brought, target):
            raise
        return brought
    if has_target(own, target):
        return own
    brought = packaged_project()
    return brought if brought is not None and has_target(brought, target) else own


def session(ctx: typer.Context) -> Session:
    """What the options before the command said."""
    return ctx.find_object(Session) or Session(Path.cwd())


@contextmanager
def progress(text: str | None = None) -> Iterator[Progress]:
    """Progress for the length of a block."""
    shown = Progress()
    try:
        if text is not None:
            shown(text)
        yield shown
    finally:
        shown.close()


def emit(result: Mapping[str, object], text: str, *, as_json: bool) -> None:
    """Print a command's result to stdout: `result` as JSON, or else `text`."""
    if as_json:
        sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    elif text:
        sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


def print_error(error: PipelineError, *, as_json: bool) -> None:
    """Print an error to stderr, or with `--json` to stdout."""
    if not as_json:
        print_problem("\n".join(error.lines()), hint=error.hint)
        return
    place = error.location
    emit(
        {
            "error": {
                "message": error.message,
                "file": place.file if place else None,
                "line": place.line if place else None,
                "column": place.column if place else None,
                "details": list(error.details),
                "hint": error.hint,
                "exit_code": error.exit_status,
            }
        },
        "",
        as_json=True,
    )


def print_problem(text: str, *, hint: str | None = None) -> None:
    """Print `error: …` and `hint: …` to stderr."""
    print_error_line(f"{_painted('error:', '1;31')} {text}")
    if hint is not None:
        print_error_line(f"{_painted('hint:', '1;36')} {hint}")


def print_error_line(text: str) -> None:
    """Print one plain line to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that wants colours."""
    return _is_fancy(stream) and not os.environ.get("NO_COLOR")


def _is_fancy(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if has_colours(sys.stderr) else text
