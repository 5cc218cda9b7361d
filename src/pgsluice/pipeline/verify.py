"""The gate for CI and pre-commit: whether a target's files are the ones of its last proved build.

No database and no heavy import: hashes, and a scan of the schema's tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.errors import Location
from pgsluice.pipeline.checksum import SUM_NAME, ConflictMarkersError, list_sql, read_sum
from pgsluice.pipeline.finding import Finding, FindingCode, TargetFiles, migration_name, quoted
from pgsluice.pipeline.history import RESERVED_NAMES
from pgsluice.pipeline.lockfile import LOCK_NAME, TEMPLATE_SUFFIX, Lock, digest_templates, read_lock
from pgsluice.pipeline.sum_check import verify_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgsluice.config import Project, Target

__all__ = ["Finding", "FindingCode", "verify_target"]


def verify_target(project: Project, target: Target) -> tuple[Finding, ...]:
    """Compare a target's folders with its `atlas.sum` and `pgsluice.lock`; nothing is written.

    Raises:
        InputError: A file cannot be read, or a lock cannot be understood.
    """
    files = TargetFiles(project, target)
    try:
        lock = read_lock(target.migrations_dir)
    except ConflictMarkersError as exc:
        return (*verify_sum(files, opened=()), files.conflict(LOCK_NAME, exc))
    changed = tuple(verify_sum(files, opened=lock.open if lock else ()))
    # a history that is not the recorded one has been named already
    stale = _stale_history(files, lock) if lock is not None and not changed else ()
    return (*changed, *stale, *_verify_lock(files, lock))


def _verify_lock(files: TargetFiles, lock: Lock | None) -> Iterator[Finding]:
    """Whether schema and templates are the ones of the last proved build."""
    target, migrations = files.target, list_sql(files.folder)
    if lock is not None:
        yield from _stale_schema(files, lock)
    elif migrations:
        place = Location(files.path(LOCK_NAME))
        yield Finding(
            FindingCode.MISSING_LOCK,
            f"{place} is missing, so nothing says what was proved",
            place,
            files.build,
        )
        return
    elif any(target.schema_dir.rglob("*.sql")):
        place = Location(files.project.relative(target.schema_dir))
        yield Finding(FindingCode.STALE_SCHEMA, f"{place} was never built", place, f"{files.build} first")
    opened = lock.open if lock is not None else ()
    named = [name for name in migrations if name not in opened[1:]]
    yield from _verify_templates(files, lock, names={migration_name(name): name for name in named})


def _stale_history(files: TargetFiles, lock: Lock) -> Iterator[Finding]:
    """Whether the migrations that `atlas.sum` records are the ones of the last proved build."""
    recorded = read_sum(files.folder / SUM_NAME)
    if recorded is None or lock.history in ("", recorded.total):
        return
    place = Location(files.path(SUM_NAME))
    yield Finding(
        FindingCode.STALE_HISTORY,
        f"{place} was written anew after the last proved build",
        place,
        files.build,
        (f"it records h1:{recorded.total}, {files.path(LOCK_NAME)} h1:{lock.history}",),
    )


def _stale_schema(files: TargetFiles, lock: Lock) -> Iterator[Finding]:
    # pglast's scanner is the largest import here, and needed for nothing else
    from pgsluice.pipeline.digest import schema_digest

    if schema_digest(files.target.schema_dir) != lock.schema:
        place = Location(files.project.relative(files.target.schema_dir))
        yield Finding(
            FindingCode.STALE_SCHEMA,
            f"{place} was changed after the last proved build",
            place,
            files.build if lock.open else f"{files.build} NAME",
            (f"{files.path(LOCK_NAME)} records {lock.schema[:12]}…",),
        )


def _verify_templates(
    files: TargetFiles, lock: Lock | None, *, names: Mapping[str, str]
) -> Iterator[Finding]:
    """Compare the templates with the lock; `names` are the migrations' files by name."""
    recorded: Mapping[str, str] = lock.templates if lock else {}
    opened = lock.open if lock else ()
    actual = digest_templates(files.target.templates_dir)
    for template in sorted({*recorded, *actual}):
        name = template.removesuffix(TEMPLATE_SUFFIX)
        if recorded.get(template) == actual.get(template):
            continue
        path = files.template(template)
        if template not in actual:
            yield _stale_template(files, template, opened=opened, what="was removed", names=names)
        elif template in recorded:
            yield _stale_template(files, template, opened=opened, what="was changed", names=names)
        elif name in names:
            yield _stale_template(files, template, opened=opened, what="was added", names=names)
        elif not name.startswith("_") and name not in RESERVED_NAMES:
            yield Finding(
                FindingCode.TEMPLATE_WITHOUT_MIGRATION,
                f"{path} belongs to no migration yet",
                Location(path),
                f"{files.build} {name}",
            )


def _stale_template(
    files: TargetFiles, template: str, *, opened: tuple[str, ...], what: str, names: Mapping[str, str]
) -> Finding:
    path = files.template(template)
    owner = names.get(template.removesuffix(TEMPLATE_SUFFIX))
    is_closed = owner is not None and owner not in opened
    undo = f"rm {quoted(path)}" if what == "was added" else files.checkout(path)
    return Finding(
        FindingCode.STALE_TEMPLATE,
        f"{path} {what} after the last proved build",
        Location(path),
        undo if is_closed else files.build,
        (f"{files.path(owner)} is closed and is not built again",) if is_closed and owner else (),
    )
