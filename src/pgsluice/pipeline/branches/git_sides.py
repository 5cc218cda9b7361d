"""Both sides of a target as git has them, while branches are merged, rebased, or after that."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location, RefusedError
from pgsluice.pipeline.branches.conflict import split_conflict
from pgsluice.pipeline.branches.refs import Operation
from pgsluice.pipeline.branches.sides import Sides, locks_here, present_migrations
from pgsluice.pipeline.checksum import is_sql
from pgsluice.pipeline.finding import TargetFiles, quoted
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock, parse_lock
from pgsluice.pipeline.sum_check import verify_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.branches.git import Repository
    from pgsluice.pipeline.branches.refs import Refs

NEXT: Final[Mapping[Operation, str]] = {
    Operation.MERGE: "git commit",
    Operation.REBASE: "git rebase --continue",
    Operation.CHERRY_PICK: "git cherry-pick --continue",
    Operation.NONE: "git commit",
}
MARKER: Final = b"\n>>>>>>> "


@dataclass(frozen=True, slots=True)
class _Folder:
    """A migrations folder in one commit."""

    files: Mapping[str, bytes]
    lock: Lock | None


def read_sides(project: Project, target: Target, repository: Repository, *, refs: Refs) -> Sides:
    """Both sides as git knows them.

    A folder that its `atlas.sum` records is settled: then yours are all that the shared side does not have,
    and the folder's own lock tells which one is open. Else your commit tells.

    Raises:
        InputError: What is shared was not merged yet, or differs from the folder by carriage returns.
        RefusedError: A shared migration was edited or removed.
    """
    present = present_migrations(target)
    shared, mine = (_read(repository, target, commit) for commit in (refs.shared, refs.mine))
    base = _read(repository, target, refs.base) if refs.base is not None else _Folder({}, None)
    is_settled = len(locks_here(target)) < 2 and not any(verify_sum(TargetFiles(project, target), opened=()))
    _refuse_unmerged(repository, refs, shared, present)
    sides = Sides(
        refs.name,
        shared.files,
        _own_files(repository, target, present, shared=shared, refs=refs),
        shared_lock=shared.lock,
        lock=_own_lock(
            target, mine, refs=refs, is_settled=is_settled, own=present.keys() - shared.files.keys()
        ),
        fixtures=frozenset(repository.read_folder(refs.shared, _upgrades(project, target))),
        own_templates=frozenset(_own_templates(repository, target, refs)),
        takes_lock=bool(repository.unmerged([target.migrations_dir / LOCK_NAME])),
        then=NEXT[refs.operation],
    )
    own = present if is_settled else mine.files
    sides = _with_continued(project, target, sides, refs=refs, present=present, own=own, base=base)
    return replace(sides, mine=_in_order(repository, target, sides, refs=refs))


def _read(repository: Repository, target: Target, commit: str) -> _Folder:
    files = repository.read_folder(commit, target.migrations_dir)
    own = sorted((name for name in files if is_sql(name) and "/" not in name), key=os.fsencode)
    content = files.get(LOCK_NAME)
    path = target.migrations_dir / LOCK_NAME
    texts = () if content is None else split_conflict(content.decode("utf-8", "replace"))
    # a commit with an unsettled lock has none: the proof of what is here tells, and writes a new one
    lock = parse_lock(texts[0], path=path) if len(texts) == 1 else None
    return _Folder({name: files[name] for name in own}, lock)


def _own_files(
    repository: Repository, target: Target, present: Mapping[str, bytes], *, shared: _Folder, refs: Refs
) -> dict[str, bytes]:
    """Yours as they are here; one in which git put both sides, because it was renamed, as `HEAD` has it."""
    own = {name: content for name, content in present.items() if name not in shared.files}
    if refs.operation is Operation.NONE or not any(MARKER in content for content in own.values()):
        return own
    head = repository.read_folder("HEAD", target.migrations_dir)
    return {name: head.get(name, content) if MARKER in content else content for name, content in own.items()}


def _upgrades(project: Project, target: Target) -> Path:
    return project.root / "tests/upgrades" / target.name


def _in_order(repository: Repository, target: Target, sides: Sides, *, refs: Refs) -> dict[str, bytes]:
    """Yours in the order in which they were made: while git rebases, what it has not yet applied is last."""
    head = repository.read_folder("HEAD", target.migrations_dir)
    if refs.operation is Operation.REBASE:
        head = {name: content for name, content in head.items() if name not in sides.shared}
    names = sorted(sides.mine, key=lambda name: (name not in head, os.fsencode(name)))
    return {name: sides.mine[name] for name in names}


def _own_lock(
    target: Target, mine: _Folder, *, refs: Refs, is_settled: bool, own: AbstractSet[str]
) -> Lock | None:
    """What your side recorded: the folder's own lock is newer than a commit where both can be right.

    In a conflict without a merge, as `git stash pop` leaves one, yours is the side whose open files are not
    shared.
    """
    here = locks_here(target)
    if len(here) == 1 and (is_settled or refs.operation is Operation.NONE):
        return here[0]
    if refs.operation is Operation.NONE:
        yours = [lock for lock in here if lock.open and own >= set(lock.open)]
        if len(yours) == 1:
            return yours[0]
    return mine.lock


def _own_templates(repository: Repository, target: Target, refs: Refs) -> Iterator[str]:
    shared = repository.read_folder(refs.shared, target.templates_dir)
    mine = repository.read_folder(refs.mine, target.templates_dir)
    return (name for name, content in mine.items() if shared.get(name) != content)


def _refuse_unmerged(
    repository: Repository, refs: Refs, shared: _Folder, present: Mapping[str, bytes]
) -> None:
    missing = [name for name in shared.files if name not in present]
    if not missing or refs.operation is not Operation.NONE:
        return
    if not repository.is_ancestor(refs.shared, "HEAD"):
        fetch = "git fetch --unshallow && " if repository.is_shallow() else ""
        raise InputError(
            f"{refs.name} has {missing[0]}, which is not here: it was not merged yet",
            hint=f"{fetch}git merge {refs.name}, then pgsluice rebase",
        )


def _with_continued(
    project: Project,
    target: Target,
    sides: Sides,
    *,
    refs: Refs,
    present: Mapping[str, bytes],
    own: Mapping[str, bytes],
    base: _Folder,
) -> Sides:
    """The sides with what you did to migrations that the shared side has under the same name.

    Both may have added it; or it was open where the branches parted, and you went on with it.
    """
    shared, mine, dropped = dict(sides.shared), dict(sides.mine), list[str]()
    was_open = base.lock.open if base.lock is not None else ()
    still_open = sides.shared_lock.open if sides.shared_lock is not None else ()
    for name, content in sides.shared.items():
        changed = own.get(name)
        if changed is None or changed in (content, base.files.get(name)):
            _refuse_edited(project, target, name, shared=sides.shared, present=present, refs=refs)
        elif name in still_open and content == base.files.get(name):
            mine[name] = changed
            del shared[name]
        elif name in was_open:
            dropped.append(name)
        elif name not in base.files:
            mine[name] = changed
        else:
            raise _changed(project, target, name, what="edited", refs=refs)
    return replace(sides, shared=shared, mine=mine, dropped=tuple(dropped))


def _refuse_edited(
    project: Project,
    target: Target,
    name: str,
    *,
    shared: Mapping[str, bytes],
    present: Mapping[str, bytes],
    refs: Refs,
) -> None:
    """A shared migration is what it is; only git's own conflict about it may stand in the folder."""
    here = present.get(name)
    if here == shared[name]:
        return
    if _differs_by_ends(here, shared[name]):
        alike = [one for one in shared if _differs_by_ends(present.get(one), shared[one])]
        paths = [project.relative(target.migrations_dir / one) for one in alike]
        raise InputError(
            f"CR found in {paths[0]}",
            details=(
                *((f"and in {len(paths) - 1} more",) if len(paths) > 1 else ()),
                "it was committed with LF; .gitattributes keeps it so: *.sql text eol=lf",
            ),
            hint=f"sed -i 's/\\r$//' {' '.join(map(quoted, paths))}",
        )
    is_gits = refs.operation is not Operation.NONE and (here is None or MARKER in here)
    if not is_gits:
        raise _changed(project, target, name, what="removed" if here is None else "edited", refs=refs)


def _differs_by_ends(here: bytes | None, content: bytes) -> bool:
    """Whether a file has carriage returns that it was committed without."""
    return here is not None and here != content and here.replace(b"\r\n", b"\n") == content


def _changed(project: Project, target: Target, name: str, *, what: str, refs: Refs) -> RefusedError:
    path = project.relative(target.migrations_dir / name)
    return RefusedError(
        f"the migration was {what}, and {refs.name} has it",
        location=Location(path),
        hint=f"git checkout {refs.name} -- {quoted(path)}",
    )
