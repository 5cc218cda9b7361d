"""`pgsluice release`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load
from pgsluice.errors import FindingError, InputError

if TYPE_CHECKING:
    from pgsluice.config import Project, Target

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice release                     the next change needs a new migration
  pgsluice release --target app"""

TOLERATED: Final = frozenset({"stale-schema", "template-without-migration"})
"""Findings that belong to the next migration, not to the one that is closed."""


@app.command(epilog=EXAMPLES, short_help="Close the open migration: no later build changes it.")
def release(ctx: typer.Context, target: TargetOption = None, as_json: JsonOption = False) -> None:
    """Close the open migration, so that no later build changes its file.

    Do it when the migration leaves your hands: when it is merged, or applied to a database that you keep.
    `pgsluice build NAME` with another name closes it too.
    """
    project = load(ctx)
    chosen = project.target(target)
    files = close_migration(project, chosen)
    closed = f"{', '.join(files)} {'is' if len(files) == 1 else 'are'} closed"
    emit(
        {"target": chosen.name, "released": files[0], "files": list(files)},
        f"{closed}; the next change starts another: pgsluice build NAME",
        as_json=as_json,
    )


def close_migration(project: Project, target: Target) -> tuple[str, ...]:
    """Record in the lock that no migration is open, and return the files of the one that was."""
    from pgsluice.pipeline.lockfile import LOCK_NAME, read_lock
    from pgsluice.pipeline.publish import publish_files
    from pgsluice.pipeline.verify import verify_target

    lock = read_lock(target.migrations_dir)
    if lock is None or not lock.open:
        raise InputError(f"no migration of target {target.name} is open", hint="pgsluice build NAME")
    findings = [finding for finding in verify_target(project, target) if finding.code not in TOLERATED]
    if findings:
        raise FindingError(
            f"{lock.open[0]} is not as it was built, so it stays open",
            details=tuple(finding.message for finding in findings),
            hint="pgsluice verify",
        )
    path = target.migrations_dir / LOCK_NAME
    closed = replace(lock, open=(), online=False)
    publish_files(project.root, {path: closed.render()}, expect={path: path.read_bytes()})
    return tuple(project.relative(target.migrations_dir / name) for name in lock.open)
