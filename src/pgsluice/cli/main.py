"""The `pgsluice` command: finds the command's module, and turns errors into text and exit code."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import typer
from typer.core import TyperGroup

from pgsluice.cli.output import Session, print_error, print_error_line, print_problem
from pgsluice.errors import ExitCode, InputError, PipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final[Mapping[str, str]] = {
    "init": "pgsluice.cli.init",
    "demo": "pgsluice.cli.demo",
    "build": "pgsluice.cli.build",
    "diff": "pgsluice.cli.diff",
    "check": "pgsluice.cli.check",
    "lint": "pgsluice.cli.lint",
    "new": "pgsluice.cli.new",
    "release": "pgsluice.cli.release",
    "verify": "pgsluice.cli.verify",
    "drift": "pgsluice.cli.drift",
    "baseline": "pgsluice.cli.baseline",
    "apply": "pgsluice.cli.apply",
    "status": "pgsluice.cli.status",
    "rehash": "pgsluice.cli.rehash",
    "rebase": "pgsluice.cli.rebase",
    "dev": "pgsluice.cli.dev",
}
"""Each command with the module that holds it as `app`; imported only when it is used."""

EXIT_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
TRACEBACK_VARIABLE: Final = "PGSLUICE_TRACEBACK"
FOLDER_OPTIONS: Final = ("--project", "-C")
VALIDATION_PREFIX: Final = "Value error, "  # how pydantic starts its words, in a typer that asks it

# typer moved click's exceptions between its releases; a public one leads to them
_ClickException: Final[Any] = typer.BadParameter.__mro__[2]


class LazyCommands(Mapping[str, Any]):
    """Commands by name; a value is imported when it is asked for. `Any`: typer moved click's `Command`."""

    def __getitem__(self, name: str) -> Any:
        command = typer.main.get_command(importlib.import_module(COMMANDS[name]).app)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """The top command: knows the names of all others without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = LazyCommands()


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `pgsluice init`, or see it work in an empty folder: `pgsluice demo`.",
)


@app.callback(invoke_without_command=True)
def pgsluice(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option(*FOLDER_OPTIONS, metavar="PATH", help="Work in this folder instead of the current one."),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Edit a PostgreSQL schema; get a migration that is proved on a real server."""
    ctx.obj = Session(folder or Path.cwd())
    if version:
        from pgsluice import __version__

        sys.stdout.write(f"pgsluice {__version__}\n")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        sys.stdout.write(ctx.get_help() + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the only place where an error becomes text and exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in given
    _print_anything()
    try:
        code = _run(given)
        sys.stdout.flush()
    except PipelineError as error:
        print_error(error, as_json=as_json)
        return error.exit_status
    except BrokenPipeError:
        _discard_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        print_error_line("interrupted")
        return EXIT_INTERRUPTED
    except OSError as exc:
        if exc.filename is None:
            return _report_bug(exc)
        print_error(InputError(f"{exc.filename}: {exc.strerror}"), as_json=as_json)
        return int(ExitCode.USAGE)
    except Exception as exc:  # noqa: BLE001 the last resort: every fault ends as text and exit code
        return _report_bug(exc)
    return code


def _run(arguments: Sequence[str]) -> int:
    """Parse and call; click's own exceptions become ours."""
    group = typer.main.get_command(app)
    try:
        with group.make_context("pgsluice", list(arguments)) as ctx:
            group.invoke(ctx)
    except typer.Exit as exc:
        return exc.exit_code
    except typer.Abort as exc:
        raise KeyboardInterrupt from exc
    except _ClickException as exc:
        raise _usage_error(exc, arguments) from exc
    return 0


def _usage_error(exc: Any, arguments: Sequence[str]) -> InputError:
    """An error of ours from one of click's."""
    text: str = exc.format_message().rstrip(".").replace(VALIDATION_PREFIX, "")
    ctx = getattr(exc, "ctx", None)
    command = _called(arguments) if ctx is None else ctx.command_path
    return InputError(text[:1].lower() + text[1:], hint=f"{command} --help")


def _called(arguments: Sequence[str]) -> str:
    """The command that was called, where click does not say: an option without its value."""
    folder = ""
    for argument in arguments:
        if argument in COMMANDS and folder not in FOLDER_OPTIONS:
            return f"pgsluice {argument}"
        folder = argument
    return "pgsluice"


def _print_anything() -> None:
    """Escape what the terminal's encoding lacks, such as a file name that is no text, instead of failing.

    What was closed by whoever started us (`>&-`) goes nowhere.
    """
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8")


def _report_bug(exc: Exception) -> int:
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(exc)
    print_problem(
        f"this is a bug in pgsluice: {type(exc).__name__}: {exc}",
        hint=f"{TRACEBACK_VARIABLE}=1 shows the traceback; please report it",
    )
    return EXIT_BUG


def _discard_stdout() -> None:
    """Nobody reads on: let the interpreter's last flush go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
