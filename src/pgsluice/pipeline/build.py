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
from pgsluice.pipeline.history import (
    RESERVED_NAMES,
    Migration,
    check_name,
    next_version,
    read_history,
    split_filename,
)
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
        FindingCode.STALE_HISTORY,
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

    `files` are all of them when the migration has several, in the order in which they are applied.
    `server` is what the proof ran on, `rows_in` the tables that had rows in it, `no_rows_in` those that had
    none, with the reason.
    """

    target: str
    outcome: Outcome
    migration: str | None = None
    plan: Plan | None = None
    rendered: tuple[Rendered, ...] = ()
    files: tuple[str, ...] = ()
    server: str | None = None
    rows_in: tuple[str, ...] = ()
    no_rows_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Which migration a build makes: `base` is the history before it, `old` its files so far.

    `intact` says that the folder holds what was recorded, the open migration included; `stale` that schema
    or migrations are not the ones of the last proved build; `online` asks for files between which the
    database stays in use.
    """

    name: str | None
    base: tuple[Migration, ...]
    old: tuple[Migration, ...]
    lock: Lock | None
    intact: bool = True
    stale: bool = True
    online: bool = False


def build_target(
    project: Project,
    target: Target,
    *,
    name: str | None = None,
    allow_destructive: bool = False,
    online: bool | None = None,
    progress: Progress = lambda text: None,
) -> BuildResult:
    """Generate, prove and write one migration of a target.

    Args:
        name: What the migration does; None builds the open one again.
        allow_destructive: Whether losses of data are agreed to.
        online: Whether to write files between which the database stays in use; None keeps the open
            migration as it was built, and means one file for a new one.
        progress: Gets a line for each stage that may take long.

    Raises:
        InputError: Configuration, schema, template or history cannot be used, or a name is missing.
        RefusedError: Data would be lost, a backfill is missing, or a difference cannot be migrated.
        FindingError: The proof failed.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _build(
                project,
                target,
                name,
                allow_destructive=allow_destructive,
                online=online,
                progress=progress,
            )
        except StaleError:
            if attempt == ATTEMPTS:
                raise
            progress("another build wrote in the meantime: starting again")
    raise AssertionError("unreachable")


def _build(
    project: Project,
    target: Target,
    name: str | None,
    *,
    allow_destructive: bool,
    online: bool | None,
    progress: Progress,
) -> BuildResult:
    task = choose(project, target, name=name, online=online)
    if is_current(target, task, name=name):
        kept = _shown(project, task.old)
        return BuildResult(target.name, Outcome.UNCHANGED, _first(kept), files=kept)
    from pgsluice.pipeline.devdb import open_dev
    from pgsluice.pipeline.proving import make

    seen = _seen(target, task)
    with open_dev(project.dev, root=project.root, progress=progress) as server:
        made = make(
            project, target, task, server=server, allow_destructive=allow_destructive, progress=progress
        )
        lock = Lock(made.schema_digest, tool=__version__, postgres=server.major)
        description = server.description
    if not made.rendered:
        return _without_migration(project, target, task, lock=lock, seen=seen, plan=made.plan)
    progress("writing the migration")
    paths = _paths(target, task, made.rendered)
    files: dict[Path, bytes | None] = {one.path: None for one in task.old}
    files |= {path: file.text.encode() for path, file in zip(paths, made.rendered, strict=True)}
    opened = replace(
        lock,
        templates=recorded_templates(target, (*task.base, *map(split_filename, paths))),
        open=tuple(path.name for path in paths),
        online=task.online,
        made=lock.schema,
    )
    _write(project, target, files, lock=opened, seen=seen)
    return BuildResult(
        target.name,
        Outcome.WRITTEN,
        project.relative(paths[0]),
        plan=made.plan,
        rendered=made.rendered,
        files=tuple(map(project.relative, paths)),
        server=description,
        rows_in=made.rows_in,
        no_rows_in=made.no_rows_in,
    )


def _seen(target: Target, task: Task) -> dict[Path, bytes | None]:
    """The files that a build starts from: when one changes meanwhile, nothing is written."""
    folder = target.migrations_dir
    paths = [folder / SUM_NAME, folder / LOCK_NAME, *(one.path for one in task.old)]
    return {path: path.read_bytes() if path.exists() else None for path in paths}


def choose(project: Project, target: Target, *, name: str | None, online: bool | None = None) -> Task:
    """Which migration is to be made, after a look at the state of the folder.

    The first file of a migration has its name.

    Raises:
        InputError: The name cannot be used, or is one of a closed migration.
        RefusedError: The folder is not as it was recorded.
    """
    if name is not None:
        check_name(name)
    schema_files(target.schema_dir, root=project.root)
    lock = read_lock(target.migrations_dir)
    opened = lock.open if lock else ()
    old = tuple(split_filename(target.migrations_dir / one) for one in opened)
    anew = opened if old and name in (None, old[0].name) else ()
    findings = verify_target(project, target)
    history = read_history(target.migrations_dir)
    alone = all(one.filename in anew for one in history)
    refuse_changed_history(project, target, findings, opened=anew, alone=alone)
    if name is None and old:
        _refuse_unclear(findings, old[0])
    later = [one for one in history if old and one.filename > old[-1].filename]
    if later:
        raise RefusedError(
            f"{project.relative(later[-1].path)} comes after the open migration {opened[0]}",
            hint="pgsluice release, then build the next change under a new name",
        )
    if name is not None and (not old or old[0].name != name):
        closed = next((one for one in history if one.name == name), None)
        if closed is not None:
            raise InputError(
                f"a migration of that name is closed: {project.relative(closed.path)}",
                hint=f"pgsluice build {name}_again",
            )
        old = ()
    base = tuple(one for one in history if one not in old)
    codes = {finding.code for finding in findings}
    was_online = lock is not None and lock.online and bool(old)
    return Task(
        name or (old[0].name if old else None),
        base,
        old,
        lock,
        intact=codes <= TOLERATED,
        stale=bool(codes & {FindingCode.STALE_SCHEMA, FindingCode.STALE_HISTORY}),
        online=was_online if online is None else online,
    )


def refuse_changed_history(
    project: Project,
    target: Target,
    found: Sequence[Finding],
    *,
    opened: tuple[str, ...] = (),
    alone: bool = False,
) -> None:
    """Refuse what happened to migrations, except to the `opened` one, which is written anew.

    When it is `alone`, a lost sum told nothing about closed ones, and is written anew too.

    Raises:
        RefusedError: The folder is not as it was recorded.
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


def _refuse_unclear(findings: Sequence[Finding], old: Migration) -> None:
    """Refuse to guess when one migration is open and a template waits for another."""
    for finding in findings:
        if finding.code is FindingCode.TEMPLATE_WITHOUT_MIGRATION:
            raise InputError(
                f"{finding.message}, and {old.filename} is open: which of both is to be built",
                hint=f"{finding.hint}, or pgsluice build {old.name}",
            )


def _is_written_anew(finding: Finding, project: Project, target: Target, opened: tuple[str, ...]) -> bool:
    if finding.code not in OVERWRITTEN:
        return False
    named = {finding.location.file, *finding.message.split()}
    return any(project.relative(target.migrations_dir / one) in named for one in opened)


def is_current(target: Target, task: Task, *, name: str | None) -> bool:
    """Whether the last proved build was of exactly these files, so that no database has to be asked."""
    lock = task.lock
    if lock is None or not lock.history or not task.intact or task.stale or lock.tool != __version__:
        return False
    if task.old and lock.online != task.online:
        return False
    if dict(lock.templates) != recorded_templates(target, (*task.base, *task.old)):
        return False
    starts = name is not None and not task.old
    return not (starts and (target.templates_dir / f"{name}{TEMPLATE_SUFFIX}").is_file())


def _without_migration(
    project: Project, target: Target, task: Task, *, lock: Lock, seen: dict[Path, bytes | None], plan: Plan
) -> BuildResult:
    """Nothing differs: record the text, and take away an open migration that has become empty."""
    files: dict[Path, bytes | None] = {one.path: None for one in task.old}
    lock = replace(lock, templates=recorded_templates(target, task.base), made=lock.schema)
    _write(project, target, files, lock=lock if files else _kept_open(lock, task), seen=seen)
    outcome = Outcome.REMOVED if files else Outcome.RECORDED
    shown = _shown(project, task.old)
    return BuildResult(target.name, outcome, _first(shown), plan=plan, files=shown)


def _kept_open(lock: Lock, task: Task) -> Lock:
    """The new lock with what the old one said of the newest migration, open or not, if it is still there."""
    if task.lock is None:
        return lock
    lock = replace(lock, made=task.lock.made)
    there = {one.filename for one in task.base}
    if not task.lock.open or not there.issuperset(task.lock.open):
        return lock
    return replace(lock, open=task.lock.open, online=task.lock.online)


def _shown(project: Project, migrations: Sequence[Migration]) -> tuple[str, ...]:
    return tuple(project.relative(one.path) for one in migrations)


def _first(files: Sequence[str]) -> str | None:
    return files[0] if files else None


def _paths(target: Target, task: Task, rendered: Sequence[Rendered]) -> list[Path]:
    """The files of a migration: versions that it has already are kept, further ones follow."""
    history = list(task.base)
    now = datetime.now(UTC)
    for number, file in enumerate(rendered):
        kept = task.old[number].version if number < len(task.old) else None
        version = kept or next_version(target, history, now=now)
        name = f"{task.name}{file.suffix}"
        history.append(Migration(version, name, target.migrations_dir / f"{version}_{name}.sql"))
    return [one.path for one in history[len(task.base) :]]


def recorded_templates(target: Target, migrations: Sequence[Migration]) -> dict[str, str]:
    """The digests of the templates that belong to a migration, or are there for all."""
    names = {one.name for one in migrations} | RESERVED_NAMES
    digests = digest_templates(target.templates_dir).items()
    return {
        template: digest
        for template, digest in digests
        if template.startswith("_") or template.removesuffix(TEMPLATE_SUFFIX) in names
    }


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
    lock = replace(lock, history=recorded.total)
    changes = {**files, folder / SUM_NAME: recorded.render(), folder / LOCK_NAME: lock.render()}
    publish_files(project.root, changes, expect={**seen, **new})
