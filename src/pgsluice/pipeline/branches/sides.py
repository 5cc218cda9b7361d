"""The migrations of a target as two branches have them: what is shared, what is yours."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location, RefusedError
from pgsluice.pipeline.branches.conflict import split_conflict
from pgsluice.pipeline.branches.refs import Operation
from pgsluice.pipeline.checksum import is_ignored, is_sql, list_sql
from pgsluice.pipeline.finding import quoted
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock, parse_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.branches.git import Repository
    from pgsluice.pipeline.branches.refs import Refs

NEXT: Final[Mapping[Operation, str]] = {
    Operation.MERGE: "git commit",
    Operation.REBASE: "git rebase --continue",
    Operation.CHERRY_PICK: "git cherry-pick --continue",
    Operation.NONE: "git commit",
}


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
    locks = _locks_here(target)
    theirs = [one for one in locks if one.open and shared.keys() >= set(one.open)]
    yours = [one for one in locks if one.open and own >= set(one.open)]
    return Sides(
        "the other migrations",
        shared,
        {name: present[name] for name in _in_order(own)},
        shared_lock=theirs[0] if theirs else None,
        lock=max(yours, key=lambda one: os.fsencode(one.open[0]), default=None),
    )


def read_sides(project: Project, target: Target, repository: Repository, *, refs: Refs) -> Sides:
    """Both sides as git knows them.

    Raises:
        InputError: What is shared was not merged yet, or differs from the folder by carriage returns.
        RefusedError: A shared migration was edited or removed.
    """
    folder = target.migrations_dir
    shared = repository.read_folder(refs.shared, folder)
    mine = repository.read_folder(refs.mine, folder)
    base = repository.read_folder(refs.base, folder) if refs.base is not None else {}
    present = present_migrations(target)
    theirs = _only_sql(shared)
    head = repository.read_folder("HEAD", folder)
    own = sorted(present.keys() - theirs.keys(), key=lambda name: (name not in head, os.fsencode(name)))
    upgrades = project.root / "tests/upgrades" / target.name
    templates = repository.read_folder(refs.shared, target.templates_dir)
    sides = Sides(
        refs.name,
        theirs,
        {name: present[name] for name in own},
        shared_lock=_lock_of(shared, target),
        lock=_own_lock(mine, target, refs=refs, names=frozenset(own)),
        fixtures=frozenset(repository.read_folder(refs.shared, upgrades)),
        own_templates=frozenset(
            name
            for name, content in repository.read_folder(refs.mine, target.templates_dir).items()
            if templates.get(name) != content
        ),
        takes_lock=bool(repository.unmerged([folder / LOCK_NAME])) or len(_locks_here(target)) > 1,
        then=NEXT[refs.operation],
    )
    _refuse_unmerged(sides, repository, refs=refs, present=present)
    _refuse_edited(project, target, sides, refs=refs, present=present, mine=mine)
    return _with_continued(project, target, sides, base=base, mine=_only_sql(mine))


def present_migrations(target: Target) -> dict[str, bytes]:
    """The migrations of the folder as they are now, without files that say `atlas:sum ignore`."""
    folder = target.migrations_dir
    return {name: (folder / name).read_bytes() for name in list_sql(folder) if not is_ignored(folder / name)}


def _filename(project: Project, target: Target, given: str, *, present: Mapping[str, bytes]) -> str:
    """The name of a migration that the user gave as a name or as a path."""
    name = os.path.basename(given)
    if name not in present or os.path.dirname(given) not in ("", project.relative(target.migrations_dir)):
        raise InputError(
            f"{given} is no migration of target {target.name}",
            hint=f"ls {quoted(project.relative(target.migrations_dir))}",
        )
    return name


def _in_order(names: frozenset[str]) -> list[str]:
    return sorted(names, key=os.fsencode)


def _only_sql(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: files[name] for name in _in_order(frozenset(files)) if is_sql(name) and "/" not in name}


def _locks_here(target: Target) -> tuple[Lock, ...]:
    """The lock of the folder: one, or one a side when it is in conflict."""
    path = target.migrations_dir / LOCK_NAME
    if not path.exists():
        return ()
    texts = split_conflict(path.read_bytes().decode("utf-8", "replace"))
    return tuple(parse_lock(text, path=path) for text in texts)


def _lock_of(files: Mapping[str, bytes], target: Target) -> Lock | None:
    content = files.get(LOCK_NAME)
    if content is None:
        return None
    return parse_lock(content.decode("utf-8", "replace"), path=target.migrations_dir / LOCK_NAME)


def _own_lock(
    committed: Mapping[str, bytes], target: Target, *, refs: Refs, names: frozenset[str]
) -> Lock | None:
    """What your side recorded: the folder's lock may be newer than the commit while git does nothing."""
    if refs.operation is Operation.NONE:
        for lock in reversed(_locks_here(target)):
            if lock.open and names >= set(lock.open):
                return lock
    return _lock_of(committed, target)


def _refuse_unmerged(
    sides: Sides, repository: Repository, *, refs: Refs, present: Mapping[str, bytes]
) -> None:
    if refs.operation is not Operation.NONE or sides.shared.keys() <= present.keys():
        return
    if not repository.is_ancestor(refs.shared, "HEAD"):
        missing = next(name for name in sides.shared if name not in present)
        raise InputError(
            f"{sides.name} has {missing}, which is not here: it was not merged yet",
            hint=f"git merge {sides.name}, then pgsluice rebase",
        )


def _refuse_edited(
    project: Project,
    target: Target,
    sides: Sides,
    *,
    refs: Refs,
    present: Mapping[str, bytes],
    mine: Mapping[str, bytes],
) -> None:
    """A shared migration is what it is; only git's own conflict about it may stand in the folder."""
    for name, content in sides.shared.items():
        here, path = present.get(name), project.relative(target.migrations_dir / name)
        if here == content or (here is not None and here == mine.get(name)):
            continue
        if here is not None and here.replace(b"\r\n", b"\n") == content:
            raise InputError(
                f"CR found in {path}",
                details=("it was committed with LF; .gitattributes keeps it so: *.sql text eol=lf",),
                hint=f"sed -i 's/\\r$//' {quoted(path)}",
            )
        if refs.operation is Operation.NONE or (here is not None and b"\n>>>>>>> " not in here):
            what = "removed" if here is None else "edited"
            raise RefusedError(
                f"{path} was {what}, and {sides.name} has it",
                location=Location(path),
                hint=f"git checkout {sides.name} -- {quoted(path)}",
            )


def _with_continued(
    project: Project, target: Target, sides: Sides, *, base: Mapping[str, bytes], mine: Mapping[str, bytes]
) -> Sides:
    """The sides with what your commit did to migrations that the shared side has under the same name.

    Both may have added it; or it was open where the branches parted, and you went on with it.
    """
    shared, own, dropped = dict(sides.shared), dict(sides.mine), list[str]()
    base_lock = _lock_of(base, target)
    was_open = base_lock.open if base_lock is not None else ()
    still_open = sides.shared_lock.open if sides.shared_lock is not None else ()
    for name, content in mine.items():
        if name not in shared or content in (shared[name], base.get(name)):
            continue
        if name not in base:
            own[name] = content
        elif name not in was_open:
            path = project.relative(target.migrations_dir / name)
            raise RefusedError(
                f"{path} was edited after it was closed, and {sides.name} has it too",
                location=Location(path),
                hint=f"git checkout {sides.name} -- {quoted(path)}",
            )
        elif name in still_open and shared[name] == base[name]:
            own[name] = content
            del shared[name]
        else:
            dropped.append(name)
    return replace(sides, shared=shared, mine=own, dropped=tuple(dropped))
