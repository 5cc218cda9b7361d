"""The pipeline on one page: states, diff, plan, render, proof, files.

Straight through: what is written was proved, what is not proved is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pgsluice import __version__
from pgsluice.errors import InputError, RefusedError
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.digest import schema_files
from pgsluice.pipeline.history import Migration, check_name, next_version, read_history, split_filename
from pgsluice.pipeline.lockfile import LOCK_NAME, TEMPLATE_SUFFIX, Lock, digest_templates, read_lock
from pgsluice.pipeline.publish import StaleError, publish_files
from pgsluice.pipeline.verify import FindingCode, verify_target

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.finding import Finding
    from pgsluice.pipeline.render import Rendered
    from pgsluice.pipeline.statement import Plan

Progress = Callable[[str], None]

# What a build mends by itself.
TOLERATED: Final = frozenset(
    {
        FindingCode.STALE_SCHEMA,
        FindingCode.STALE_TEMPLATE,
        FindingCode.TEMPLATE_WITHOUT_MIGRATION,
        FindingCode.MISSING_LOCK,
    }
)
OVERWRITTEN: Final = frozenset({FindingCode.EDITED, FindingCode.REMOVED, FindingCode.CR_FOUND})
ATTEMPTS: Final = 3


class Outcome(StrEnum):
    """What a build did."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    RECORDED = "recorded"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class BuildResult:
    """`migration` is the file written or kept, relative to the project; `plan` is there when it was written.

    `server` is what the proof ran on, `rows_in` the tables that had rows in it, `no_rows_in` those that had
    none, with the reason.
    """

    target: str
    outcome: Outcome
    migration: str | None = None
    plan: Plan | None = None
    rendered: Rendered | None = None
    server: str | None = None
    rows_in: tuple[str, ...] = ()
    no_rows_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Which migration a build makes: `base` is the history before it, `old` its file so far.

    `intact` says that the folder holds what was recorded, the open migration included; `stale` that the
    schema is not the one of the last proved build.
    """

    name: str | None
    base: tuple[Migration, ...]
    old: Migration | None
    lock: Lock | None
    intact: bool = True
    stale: bool = True


def build_target(
    project: Project,
    target: Target,
    *,
    name: str | None = None,
    allow_destructive: bool = False,
    progress: Progress = lambda text: None,
) -> BuildResult:
    """Generate, prove and write one migration of a target.

    Args:
        name: What the migration does; None builds the open one again.
        allow_destructive: Whether losses of data are agreed to.
        progress: Gets a line for each stage that may take long.

    Raises:
        InputError: Configuration, schema, template or history cannot be used, or a name is missing.
        RefusedError: Data would be lost, a backfill is missing, or a difference cannot be migrated.
        FindingError: The proof failed.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _build(project, target, name, allow_destructive=allow_destructive, progress=progress)
        except StaleError:
            if attempt == ATTEMPTS:
                raise
            progress("another build wrote in the meantime: starting again")
    raise AssertionError("unreachable")


def _build(
    project: Project, target: Target, name: str | None, *, allow_destructive: bool, progress: Progress
) -> BuildResult:
    task = choose(project, target, name=name)
    if is_current(target, task, name=name):
        return BuildResult(target.name, Outcome.UNCHANGED, _shown(project, task.old))
    from pgsluice.pipeline.devdb import open_dev
    from pgsluice.pipeline.proving import make

    seen = _seen(target, task)
    with open_dev(project.dev, root=project.root, progress=progress) as server:
        made = make(
            project, target, task, server=server, allow_destructive=allow_destructive, progress=progress
        )
        lock = _lock(target, opened=None, digest=made.schema_digest, major=server.major)
        description = server.description
    if made.rendered is None:
        return _without_migration(project, target, task, lock=lock, seen=seen, plan=made.plan)
    progress("writing the migration")
    path = _path(target, task)
    _write(
        project, target, {path: made.rendered.text.encode()}, lock=replace(lock, open=path.name), seen=seen
    )
    return BuildResult(
        target.name,
        Outcome.WRITTEN,
        project.relative(path),
        plan=made.plan,
        rendered=made.rendered,
        server=description,
        rows_in=made.rows_in,
        no_rows_in=made.no_rows_in,
    )


def _seen(target: Target, task: Task) -> dict[Path, bytes | None]:
    """The files that a build starts from: when one changes meanwhile, nothing is written."""
    folder = target.migrations_dir
    paths = [folder / SUM_NAME, folder / LOCK_NAME, *([task.old.path] if task.old else [])]
    return {path: path.read_bytes() if path.exists() else None for path in paths}


def choose(project: Project, target: Target, *, name: str | None) -> Task:
    """Which migration is to be made, after a look at the state of the folder.

    Raises:
        InputError: The name cannot be used, or is one of a closed migration.
        RefusedError: The folder is not as it was recorded.
    """
    if name is not None:
        check_name(name)
    schema_files(target.schema_dir, root=project.root)
    lock = read_lock(target.migrations_dir)
    opened = lock.open if lock else None
    old = split_filename(target.migrations_dir / opened) if opened else None
    anew = opened if old is not None and name in (None, old.name) else None
    findings = verify_target(project, target)
    history = read_history(target.migrations_dir)
    alone = all(one.filename == anew for one in history)
    _refuse_changed_history(project, target, findings, opened=anew, alone=alone)
    later = [one for one in history if old is not None and one.filename > old.filename]
    if later:
        raise RefusedError(
            f"{project.relative(later[-1].path)} comes after the open migration {opened}",
            hint="pgsluice release, then build the next change under a new name",
        )
    if name is not None and (old is None or old.name != name):
        closed = next((one for one in history if one.name == name), None)
        if closed is not None:
            raise InputError(
                f"a migration of that name is closed: {project.relative(closed.path)}",
                hint=f"pgsluice build {name}_again",
            )
        old = None
    base = tuple(one for one in history if old is None or one.filename != old.filename)
    codes = {finding.code for finding in findings}
    return Task(
        name or (old.name if old else None),
        base,
        old,
        lock,
        intact=codes <= TOLERATED,
        stale=FindingCode.STALE_SCHEMA in codes,
    )


def _refuse_changed_history(
    project: Project, target: Target, found: Sequence[Finding], *, opened: str | None, alone: bool
) -> None:
    """Refuse what happened to closed migrations; the open one is written anew whatever happened to it.

    When it is `alone`, a lost sum told nothing about closed ones, and is written anew too.
    """
    happened = [one for one in found if one.code not in TOLERATED]
    findings = [
        one
        for one in happened
        if not _is_written_anew(one, project, target, opened)
        and not (alone and one.code is FindingCode.MISSING_SUM)
    ]
    if findings:
        raise RefusedError(
            f"the migrations of target {target.name} are not as they were recorded",
            details=tuple(line for one in findings for line in (one.message, *one.details)),
            hint=findings[0].hint,
        )


def _is_written_anew(finding: Finding, project: Project, target: Target, opened: str | None) -> bool:
    if opened is None or finding.code not in OVERWRITTEN:
        return False
    return project.relative(target.migrations_dir / opened) in (
        finding.location.file,
        *finding.message.split(),
    )


def is_current(target: Target, task: Task, *, name: str | None) -> bool:
    """Whether the last proved build was of exactly these files, so that no database has to be asked."""
    lock = task.lock
    if lock is None or not task.intact or task.stale or lock.tool != __version__:
        return False
    if dict(lock.templates) != digest_templates(target.templates_dir):
        return False
    starts = name is not None and task.old is None
    return not (starts and (target.templates_dir / f"{name}{TEMPLATE_SUFFIX}").is_file())


def _without_migration(
    project: Project, target: Target, task: Task, *, lock: Lock, seen: dict[Path, bytes | None], plan: Plan
) -> BuildResult:
    """Nothing differs: record the text, and take away an open migration that has become empty."""
    files: dict[Path, bytes | None] = {task.old.path: None} if task.old is not None else {}
    _write(project, target, files, lock=lock if files else replace(lock, open=_kept_open(task)), seen=seen)
    outcome = Outcome.REMOVED if files else Outcome.RECORDED
    return BuildResult(target.name, outcome, _shown(project, task.old), plan=plan)


def _kept_open(task: Task) -> str | None:
    return task.lock.open if task.lock and any(one.filename == task.lock.open for one in task.base) else None


def _shown(project: Project, migration: Migration | None) -> str | None:
    return project.relative(migration.path) if migration is not None else None


def _path(target: Target, task: Task) -> Path:
    if task.old is not None:
        return task.old.path
    version = next_version(target, task.base, now=datetime.now(UTC))
    return target.migrations_dir / f"{version}_{task.name}.sql"


def _lock(target: Target, *, opened: str | None, digest: str, major: int) -> Lock:
    return Lock(
        schema=digest,
        templates=digest_templates(target.templates_dir),
        tool=__version__,
        postgres=major,
        open=opened,
    )


def _write(
    project: Project,
    target: Target,
    files: Mapping[Path, bytes | None],
    *,
    lock: Lock,
    seen: Mapping[Path, bytes | None],
) -> None:
    """Publish a migration, the sum and the lock together, if the folder is still what the build saw."""
    folder = target.migrations_dir
    recorded = compute_sum(folder, replace={path.name: content for path, content in files.items()})
    new = {path: None for path in files if path not in seen}
    changes = {**files, folder / SUM_NAME: recorded.render(), folder / LOCK_NAME: lock.render()}
    publish_files(project.root, changes, expect={**seen, **new})
