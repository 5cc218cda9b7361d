"""Where each migration goes: shared ones stay, yours follow in their own order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.history import Migration, next_version, order_history, split_filename
from pgsluice.pipeline.lockfile import TEMPLATE_SUFFIX
from pgsluice.pipeline.parts import PARTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.branches.sides import Sides


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to be placed: `version` is kept where it follows; `filename` is how it is spelled so far."""

    name: str
    version: str | None = None
    filename: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A closed migration of yours: its bytes are kept, its name may change."""

    old: Migration
    new: Migration
    content: bytes

    @property
    def is_renamed(self) -> bool:
        """Whether the file gets another name."""
        return self.old.filename != self.new.filename


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder to be.

    `open_name` is the migration that is built again, of which `open_files` are the files so far and
    `open_places` the ones to be if there are as many; None when none of yours is open. `old_name` is what it
    was called.
    """

    shared: Mapping[str, bytes]
    closed: tuple[Placed, ...]
    open_name: str | None = None
    open_files: tuple[Migration, ...] = ()
    open_places: tuple[Migration, ...] = ()
    old_name: str | None = None
    online: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing of yours is there to be placed."""
        return not self.closed and self.open_name is None


def lay_out(project: Project, target: Target, sides: Sides, *, name: str | None, now: datetime) -> Layout:
    """Place your migrations after the shared ones.

    Args:
        name: What to call a migration with what is left, where none of yours is open.

    Raises:
        InputError: A file's name has no version, or both sides have a template of one name.
    """
    folder = target.migrations_dir
    history = order_history(folder / one for one in sides.shared)
    opened = {split_filename(folder / one).name for one in (sides.lock.open if sides.lock else ())}
    own = [split_filename(folder / one) for one in sides.mine]
    closed = [one for one in own if one.name not in opened]
    rebuilt = [one for one in own if one.name in opened]
    going_on = [split_filename(folder / one) for one in sides.dropped]
    first = next(iter((*rebuilt, *going_on)), None)
    free = _free_names(
        (one.name for one in (*closed, *rebuilt, *going_on[:1])), taken={one.name for one in history}
    )
    for old, new in free.items():
        _refuse_template(project, target, sides, old=old, new=new)
    placed = place(target, history, [_kept(one, free[one.name]) for one in closed], now=now)
    open_name = free[first.name] if first is not None else name
    parts = [Wanted(free[one.name], one.version) for one in rebuilt]
    parts = parts or ([Wanted(open_name)] if open_name is not None else [])
    return Layout(
        sides.shared,
        tuple(Placed(old, new, sides.mine[old.filename]) for old, new in zip(closed, placed, strict=True)),
        open_name,
        tuple(rebuilt),
        tuple(place(target, [*history, *placed], parts, now=now)),
        old_name=first.name if first is not None else None,
        online=bool(rebuilt) and sides.lock is not None and sides.lock.online,
    )


def place(
    target: Target, history: Sequence[Migration], wanted: Iterable[Wanted], *, now: datetime
) -> list[Migration]:
    """Migrations after a history: a version that follows already is kept, any other is given anew.

    Raises:
        InputError: No version in the target's style follows.
    """
    before = list(history)
    for one in wanted:
        version, filename = one.version, one.filename
        if version is None or not _follows(version, filename or _spelled(version, one.name), before):
            version, filename = next_version(target, before, now=now), None
        path = target.migrations_dir / (filename or _spelled(version, one.name))
        before.append(Migration(version, one.name, path))
    return before[len(history) :]


def _kept(migration: Migration, name: str) -> Wanted:
    """A file that stays as it is spelled unless its name or version has to change."""
    filename = migration.filename if name == migration.name else None
    return Wanted(name, migration.version, filename)


def _spelled(version: str, name: str) -> str:
    return f"{version}_{name}.sql" if name else f"{version}.sql"


def _follows(version: str, filename: str, before: Sequence[Migration]) -> bool:
    if any(one.version == version for one in before):
        return False
    return not before or os.fsencode(filename) > os.fsencode(before[-1].filename)


def _free_names(names: Iterable[str], *, taken: Collection[str]) -> dict[str, str]:
    """A name for each that no shared migration has; the files of one online migration stay together."""
    found: dict[str, str] = {}
    for name in names:
        ends = (f"_{part}" for part in PARTS if name.endswith(f"_{part}"))
        head = next((name.removesuffix(end) for end in ends if name.removesuffix(end) in found), None)
        if head is not None:
            found[name] = found[head] + name.removeprefix(head)
            continue
        free = name
        while free and free in taken:
            free = f"{free}_again"
        found[name] = free
    return found


def _refuse_template(project: Project, target: Target, sides: Sides, *, old: str, new: str) -> None:
    """A template goes by its migration's name: where both sides have one, a person has to part them."""
    if old == new or f"{old}{TEMPLATE_SUFFIX}" not in sides.own_templates:
        return
    theirs, yours = (target.templates_dir / f"{one}{TEMPLATE_SUFFIX}" for one in (old, new))
    if not yours.exists():
        path = project.relative(theirs)
        raise InputError(
            f"both branches have a migration {old}, and yours has a template",
            location=Location(path),
            details=(f"yours becomes {new}, so its template has to be {project.relative(yours)}",),
            hint=f"write yours to {project.relative(yours)}, then: git checkout {sides.name} -- {path}",
        )
