"""Which files are linted, and as what.

Without paths: each target's schema files, templates and migrations. With paths, as pre-commit gives them:
those files alone; folders stand for what is in them. A migration that `atlas.sum` records and `pgsluice.lock`
does not name as open is closed: it may have run somewhere, nobody can change it, and what is found in it
stops nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum, is_ignored, list_sql, read_sum
from pgsluice.pipeline.digest import schema_files
from pgsluice.pipeline.lint.model import FileKind, LintFile
from pgsluice.pipeline.lockfile import TEMPLATE_SUFFIX, read_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgsluice.config import Project, Target

SHARED_TEMPLATES: Final = "templates"
SQL_SUFFIX: Final = ".sql"


def choose_all(
    project: Project, targets: Sequence[Target], *, since: str | None = None
) -> tuple[LintFile, ...]:
    """Every file of the targets, and the templates that all share."""
    chosen: dict[Path, LintFile] = {}
    for target in targets:
        files = TargetLint(project, target, since=since)
        for file in files.all():
            chosen.setdefault(file.path, file)
    shared = project.root / SHARED_TEMPLATES
    for path in sorted(shared.glob(f"*{TEMPLATE_SUFFIX}")):
        chosen.setdefault(path, LintFile(path, project.relative(path), FileKind.TEMPLATE, None))
    return tuple(chosen.values())


def choose_paths(
    project: Project,
    targets: Sequence[Target],
    *,
    paths: Iterable[Path],
    since: str | None = None,
) -> tuple[tuple[LintFile, ...], tuple[str, ...]]:
    """The given files that belong to the targets, and the names of those that do not.

    Raises:
        InputError: A path does not exist.
    """
    known = {file.path.resolve(): file for file in choose_all(project, targets, since=since)}
    chosen: dict[Path, LintFile] = {}
    outside: list[str] = []
    for path in _expanded(paths):
        file = known.get(path.resolve())
        if file is not None:
            chosen.setdefault(file.path, file)
        else:
            outside.append(project.relative(Path(os.path.abspath(path))))
    return tuple(chosen.values()), tuple(outside)


def choose_without_project(paths: Iterable[Path], *, root: Path) -> tuple[LintFile, ...]:
    """Files where no project is configured: migrations beside an `atlas.sum`, else schema files.

    Raises:
        InputError: A path does not exist.
    """
    return tuple(_plain(path, root=root) for path in _expanded(paths))


class TargetLint:
    """One target's files."""

    def __init__(self, project: Project, target: Target, *, since: str | None = None) -> None:
        self.project = project
        self.target = target
        self.since = since

    def all(self) -> Iterator[LintFile]:
        """Schema files, templates, migrations."""
        root = self.project.root
        if self.target.schema_dir.is_dir():
            for _, path in schema_files(self.target.schema_dir, root=root):
                yield self._file(path, FileKind.SCHEMA)
        for path in sorted(self.target.templates_dir.rglob(f"*{TEMPLATE_SUFFIX}")):
            yield self._file(path, FileKind.TEMPLATE)
        folder = self.target.migrations_dir
        closed = self._closed()
        for name in list_sql(folder):
            if not is_ignored(folder / name):
                yield self._file(folder / name, FileKind.MIGRATION, is_closed=name in closed)

    def _file(self, path: Path, kind: FileKind, *, is_closed: bool = False) -> LintFile:
        return LintFile(path, self.project.relative(path), kind, self.target, is_closed)

    def _closed(self) -> frozenset[str]:
        """The migrations that nobody can change any more."""
        folder = self.target.migrations_dir
        if self.since is not None:
            return _names_at(folder, self.since)
        recorded = read_sum(folder / SUM_NAME)
        if recorded is None:
            return frozenset()
        lock = read_lock(folder)
        opened = lock.open if lock is not None else ()
        actual = {entry.name: entry.digest for entry in compute_sum(folder).entries}
        return frozenset(
            entry.name
            for entry in recorded.entries
            if entry.name not in opened and actual.get(entry.name) == entry.digest
        )


def earlier_migrations(file: LintFile) -> Iterator[tuple[str, str]]:
    """Name and text of the migrations before this one, in their order; what is no UTF-8 is left out."""
    folder = file.path.parent
    for name in list_sql(folder):
        if os.fsencode(name) < os.fsencode(file.path.name) and not is_ignored(folder / name):
            yield name, (folder / name).read_bytes().decode("utf-8", "replace")


def other_schema_files(file: LintFile) -> Iterator[tuple[str, str]]:
    """Name and text of the target's other schema files."""
    if file.target is None:
        return
    for name, path in schema_files(file.target.schema_dir):
        if path != file.path:
            yield name, path.read_bytes().decode("utf-8", "replace")


def _expanded(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(names):
                    if name.endswith((SQL_SUFFIX, TEMPLATE_SUFFIX)):
                        yield Path(folder, name)
        elif path.is_file():
            yield path
        else:
            raise InputError(f"{path} does not exist")


def _plain(path: Path, *, root: Path) -> LintFile:
    if path.name.endswith(TEMPLATE_SUFFIX):
        kind = FileKind.TEMPLATE
    else:
        kind = FileKind.MIGRATION if (path.parent / SUM_NAME).is_file() else FileKind.SCHEMA
    absolute = Path(os.path.abspath(path))
    shown = absolute.relative_to(root) if absolute.is_relative_to(root) else absolute
    return LintFile(absolute, shown.as_posix(), kind, None)


def _names_at(folder: Path, revision: str) -> frozenset[str]:
    """The migrations that a git revision has already.

    Raises:
        InputError: git does not know the revision, or is not there.
    """
    if not folder.is_dir():
        return frozenset()
    from pgsluice.pipeline.branches.git import run_git

    try:
        done = run_git(folder, "ls-tree", "-z", "--name-only", "--end-of-options", revision, "./")
    except FileNotFoundError as exc:
        raise InputError("--since needs git, and there is no git program") from exc
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(
            f"git does not know {revision}: {reason[-1] if reason else 'no reason given'}",
            hint="git fetch origin main",
        )
    return frozenset(os.path.basename(name) for name in os.fsdecode(done.stdout).split("\0") if name)
