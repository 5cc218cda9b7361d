"""`pgsluice status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import DatabaseOption, JsonOption, TargetOption, emit, load_for, progress
from pgsluice.errors import ExitCode, PipelineError

if TYPE_CHECKING:
    from pgsluice.config import Project, Target
    from pgsluice.pipeline.live.ledger import LockHolder
    from pgsluice.pipeline.live.status import FileStatus, Status

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice status --database postgresql://deploy@db.example.com/app
  pgsluice status --check              fails when something is pending: for CI
  pgsluice status --json | jq '.targets[0].files'

\b
Exit codes:
  0 ledger and folder fit              1 with --check: something is pending
  2 wrong input                        3 not reachable, no rights
  4 dirty, changed, missing or out of order"""


@app.command(epilog=EXAMPLES)
def status(
    ctx: typer.Context,
    target: TargetOption = None,
    database: DatabaseOption = None,
    check: Annotated[bool, typer.Option("--check", help="Fail when a migration is pending.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which migrations a database has.

    Reads the ledger and compares it with the migrations folder; writes nothing, so that a standby can be
    asked too. A file that stopped half-way is told with the statement that it came to.
    """
    from pgsluice.pipeline.live.database import database_url, open_database, shown
    from pgsluice.pipeline.live.ledger import limit_waits
    from pgsluice.pipeline.live.status import read_status

    project = load_for(ctx, target)
    targets = project.targets if target is None else (project.target(target),)
    url = database_url(database)
    with progress("connecting") as say, open_database(url, progress=say) as conn:
        limit_waits(conn)
        found = [read_status(project, one, conn) for one in targets]
    run = found[0].run if found else None
    bad = [file for one in found for file in one.problems]
    pending = [file for one in found for file in one.pending]
    notes = [f"apply would refuse: {reason}" for one in targets if (reason := _broken_sum(project, one))]
    result = {
        "ok": not bad,
        "database": shown(url),
        "notes": notes,
        "running": None if run is None else _run_as_json(run),
        "targets": [{"target": one.target, "files": [_as_json(file) for file in one.files]} for one in found],
    }
    lines = [f"{shown(url)}"]
    lines += [f"a run works on it now: {run}"] if run is not None else []
    lines += [line for one in found for line in _lines(one)]
    lines += [f"note: {note}" for note in notes]
    emit(result, "\n".join(lines), as_json=as_json)
    if bad:
        raise typer.Exit(ExitCode.REFUSED)
    if check and pending:
        raise typer.Exit(ExitCode.FINDING)


def _broken_sum(project: Project, target: Target) -> str | None:
    """What `apply` says of a folder that is not the recorded one."""
    from pgsluice.pipeline.live.apply import refuse_broken_sum

    try:
        refuse_broken_sum(project, target)
    except PipelineError as exc:
        return exc.message
    return None


def _lines(status: Status) -> list[str]:
    width = max((len(file.filename) for file in status.files), default=0)
    rows = [f"  {file.state:<12}  {file.filename:<{width}}  {file.detail}".rstrip() for file in status.files]
    states = dict.fromkeys(file.state for file in status.files)
    summary = ", ".join(f"{status.count(state)} {state}" for state in states) or "no migrations"
    return [f"{status.target}: {summary}", *rows]


def _as_json(file: FileStatus) -> dict[str, object]:
    entry = file.entry
    return {
        "file": file.filename,
        "state": file.state,
        "detail": file.detail,
        "open": file.is_open,
        "applied_by": entry.applied_by if entry else None,
        "started_at": entry.started_at.isoformat() if entry else None,
        "finished_at": entry.finished_at.isoformat() if entry and entry.finished_at else None,
        "statements_total": entry.statements_total if entry else None,
        "statements_done": entry.statements_done if entry else None,
        "running": entry.running if entry else None,
        "error": entry.error if entry else None,
    }


def _run_as_json(run: LockHolder) -> dict[str, object]:
    return {
        "pid": run.pid,
        "user": run.username,
        "application_name": run.application_name,
        "since": run.since.isoformat() if run.since else None,
    }
