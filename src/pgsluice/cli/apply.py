"""`pgsluice apply`."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pgsluice.cli.output import (
    DatabaseOption,
    JsonOption,
    Progress,
    TargetOption,
    emit,
    load_for,
    print_error_line,
)
from pgsluice.errors import InputError

if TYPE_CHECKING:
    from pgsluice.config import Project, Target
    from pgsluice.pipeline.live.apply import AppliedFile
    from pgsluice.pipeline.live.steps import Resume

app = typer.Typer(rich_markup_mode=None, add_completion=False)

FIRST_LINE_S: Final = 2.0
EVERY_S: Final = 10.0

EXAMPLES = """\b
Examples:
  pgsluice apply --database postgresql://deploy@db.example.com/app
  pgsluice apply --dry-run             all checks, and what would run
  pgsluice apply --to 20261130120000   no further than that version
  pgsluice apply --lock-timeout 2 --retries 20

\b
Exit codes:
  0 applied, or nothing to do
  1 a migration failed: rolled back, or recorded statement by statement
  2 wrong input
  3 not reachable, read-only, no rights, a missing role, no lock
  4 refused: dirty, changed or out-of-order history, broken atlas.sum
  130, 143 interrupted, terminated"""


class ConsoleReporter:
    """Files on stdout when they are done; the rest on stderr, in a log not more often than it is read."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._guard = threading.Lock()
        self._spinner = Progress() if sys.stderr.isatty() else None
        self._next_line = time.monotonic() + FIRST_LINE_S
        self.notes: list[str] = []

    def progress(self, text: str) -> None:
        """What goes on now."""
        with self._guard:
            if self._spinner is not None:
                from rich.markup import escape  # a terminal is there to look at it

                self._spinner(escape(text))
            elif time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + EVERY_S
                print_error_line(f"{text} …")

    def note(self, text: str) -> None:
        """Something that the user should see."""
        with self._guard:
            self._clear()
            self.notes.append(text)
            print_error_line(f"note: {text}")

    def applied(self, filename: str, *, statements: int, duration_s: float) -> None:
        """A file is done."""
        with self._guard:
            self._clear()
            self._next_line = time.monotonic() + FIRST_LINE_S
            line = f"applied {filename} ({count(statements)}, {duration_s:.2f} s)"
            emit({}, "" if self._as_json else line, as_json=False)

    def close(self) -> None:
        """Take the spinner away."""
        with self._guard:
            self._clear()

    def _clear(self) -> None:
        if self._spinner is not None:
            self._spinner.close()


@app.command(epilog=EXAMPLES)
def apply(  # noqa: PLR0917 typer calls it by the options' names
    ctx: typer.Context,
    target: TargetOption = None,
    database: DatabaseOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, say what would run, write nothing.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="VERSION", help="No further than this version, or this file."),
    ] = None,
    lock_timeout: Annotated[
        float,
        typer.Option("--lock-timeout", metavar="S", help="Seconds that a statement may wait for a lock."),
    ] = 5.0,
    retries: Annotated[
        int, typer.Option("--retries", metavar="N", help="How often a file without a lock is tried again.")
    ] = 5,
    wait: Annotated[
        float, typer.Option("--wait", metavar="S", help="Seconds to wait for another run of apply.")
    ] = 60.0,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="rerun|skip",
            help="What to do with the statement that stopped half-way, where nothing else can tell.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the pending migrations on a database.

    Each file runs in one transaction with its record in the ledger, pgsluice.migrations; one that says
    `atlas:txmode none` runs statement by statement, and goes on where it stopped. Nothing runs when the
    folder is not the recorded one, when an applied file changed, or when a role or a right is missing.
    """
    from pgsluice.pipeline.live.apply import ApplyOptions, apply_targets
    from pgsluice.pipeline.live.database import database_url, shown
    from pgsluice.pipeline.live.interrupt import Stop
    from pgsluice.pipeline.live.session import Patience

    project = load_for(ctx, target)
    targets = _targets(project, target, to)
    options = ApplyOptions(to, dry_run, _resume(resume), Patience(lock_timeout, retries, wait))
    url = database_url(database)
    reporter, stop = ConsoleReporter(as_json=as_json), Stop()
    try:
        with stop.on_signals():
            files = apply_targets(project, targets, url=url, options=options, reporter=reporter, stop=stop)
    except KeyboardInterrupt as exc:
        raise stop.at_once() from exc
    finally:
        reporter.close()
    for file in files if not dry_run else ():
        if file.is_open:
            reporter.note(
                f"{file.filename} is still open: a build may make it again; close it: pgsluice release"
            )
    result = {
        "ok": True,
        "database": shown(url),
        "dry_run": dry_run,
        "files": [_as_json(file) for file in files],
        "notes": reporter.notes,
    }
    names = ", ".join(one.name for one in targets)
    nothing = f"{names}: nothing to do on {shown(url)}" + (f" up to {to}" if to else "")
    text = _foreseen(files, shown(url)) if dry_run else ""
    emit(result, text if files else nothing, as_json=as_json)


def count(statements: int) -> str:
    """So many statements, in words."""
    return "1 statement" if statements == 1 else f"{statements} statements"


def _targets(project: Project, name: str | None, to: str | None) -> tuple[Target, ...]:
    """One target by its name, or all of them unless a version is given."""
    return project.targets if name is None and to is None else (project.target(name),)


def _resume(word: str | None) -> Resume | None:
    from pgsluice.pipeline.live.steps import Resume

    if word is None:
        return None
    try:
        return Resume(word)
    except ValueError as exc:
        raise InputError(f"--resume takes rerun or skip, not {word}", hint="--resume rerun") from exc


def _foreseen(files: tuple[AppliedFile, ...], database: str) -> str:
    lines = [f"would apply to {database}:"]
    for file in files:
        how = "in one transaction" if file.transactional else "each on its own"
        start = f", from statement {file.done_before + 1} on" if file.done_before else ""
        lines.append(f"  {file.filename} ({count(file.statements)}, {how}{start})")
        lines += [f"    hazard {hazard}" for hazard in file.hazards]
    return "\n".join(lines)


def _as_json(file: AppliedFile) -> dict[str, object]:
    return {
        "target": file.target,
        "file": file.filename,
        "statements": file.statements,
        "transactional": file.transactional,
        "done_before": file.done_before,
        "duration_s": round(file.duration_s, 3),
        "hazards": list(file.hazards),
        "open": file.is_open,
    }
