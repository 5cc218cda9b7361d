"""The migrations of a target as two branches have them: what is shared, what is yours."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgsluice.errors import InputError
from pgsluice.pipeline.branches.conflict import split_conflict
from pgsluice.pipeline.checksum import is_ignored, list_sql
from pgsluice.pipeline.finding import quoted
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock, parse_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgsluice.config import Project, Target


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides of one target.

    `shared` are the shared migrations by file name, as they shall be; `mine` are yours in the order in which
    they were made. A name may be in both: then `mine` has the content of your own commit. `dropped` are
    files of yours that go on with a shared migration which is no longer open. `shared_lock` and `lock` are
    what each side recorded; `fixtures` are the shared upgrade fixtures, None when git was not asked;
    `own_templates` are templates that your commit has otherwise. `takes_lock` says that the folder's lock is
    in conflict. `name` is how messages call the shared side, `then` the command that ends what git is doing.
    """

    name: str
    shared: Mapping[str, bytes]
    mine: Mapping[str, bytes]
    dropped: tuple[str, ...] = ()
    shared_lock: Lock | None = None
    lock: Lock | None = None
    fixtures: frozenset[str] | None = None
    own_templates: frozenset[str] = frozenset()
    takes_lock: bool = False
    then: str | None = None


def named_sides(project: Project, target: Target, files: Sequence[str]) -> Sides:
    """Both sides where the user names the files that are theirs; git is not asked.

    Raises:
        InputError: A file is not one of the target's migrations.
    """
    present = present_migrations(target)
    own = frozenset(_filename(project, target, given, present=present) for given in files)
    shared = {name: content for name, content in present.items() if name not in own}
    locks = locks_here(target)
    theirs = [one for one in locks if one.open and shared.keys() >= set(one.open)]
    yours = [one for one in locks if one.open and own >= set(one.open)]
    return Sides(
        "the others",
        shared,
        {name: present[name] for name in sorted(own, key=os.fsencode)},
        shared_lock=theirs[0] if theirs else None,
        lock=max(yours, key=lambda one: os.fsencode(one.open[0]), default=None),
    )


def present_migrations(target: Target) -> dict[str, bytes]:
    """The migrations of the folder as they are now, without files that say `atlas:sum ignore`."""
    folder = target.migrations_dir
    return {name: (folder / name).read_bytes() for name in list_sql(folder) if not is_ignored(folder / name)}


def locks_here(target: Target) -> tuple[Lock, ...]:
    """The lock of the folder: none, one, or one a side when it is in conflict."""
    path = target.migrations_dir / LOCK_NAME
    if not path.exists():
        return ()
    texts = split_conflict(path.read_bytes().decode("utf-8", "replace"))
    return tuple(parse_lock(text, path=path) for text in texts)


def _filename(project: Project, target: Target, given: str, *, present: Mapping[str, bytes]) -> str:
    """The name of a migration that the user gave as a name or as a path."""
    name = os.path.basename(given)
    if name not in present or os.path.dirname(given) not in ("", project.relative(target.migrations_dir)):
        raise InputError(
            f"{given} is no migration of target {target.name}",
            hint=f"ls {quoted(project.relative(target.migrations_dir))}",
        )
    return name
