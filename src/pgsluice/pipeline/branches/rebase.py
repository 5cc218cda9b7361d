"""Two branches added migrations: put yours after the shared ones, build the open one again, prove it all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.branches.conflict import refuse_unsettled, split_conflict
from pgsluice.pipeline.branches.git import find_repository
from pgsluice.pipeline.branches.git_sides import read_sides
from pgsluice.pipeline.branches.layout import lay_out
from pgsluice.pipeline.branches.moved_fixtures import move_fixtures
from pgsluice.pipeline.branches.refs import find_refs
from pgsluice.pipeline.branches.sides import named_sides, present_migrations
from pgsluice.pipeline.checksum import SUFFIX, SUM_NAME, compute_sum, list_sql
from pgsluice.pipeline.finding import TargetFiles, quoted
from pgsluice.pipeline.history import check_name, split_stem
from pgsluice.pipeline.lockfile import LOCK_NAME, parse_lock
from pgsluice.pipeline.publish import publish_files
from pgsluice.pipeline.verify import verify_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.branches.layout import Layout
    from pgsluice.pipeline.branches.moved_fixtures import MovedFixture
    from pgsluice.pipeline.branches.proving import Proved
    from pgsluice.pipeline.branches.sides import Sides
    from pgsluice.pipeline.lockfile import Lock

UNKNOWN: Final = "?"


class RebaseOutcome(StrEnum):
    """What a rebase did."""

    REBASED = "rebased"
    SETTLED = "settled"
    UNCHANGED = "unchanged"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Rebased:
    """What a rebase did, or would do when it is only planned; paths are relative to the project.

    `renamed` are closed migrations with their new paths, `kept` the ones that follow already, `rebuilt` the
    files of the open migration that is made again, each with what it was if there was one, `removed` files of
    yours that are gone, `moved` fixtures that were renamed or name another version. `after` is the last
    shared migration, `onto` where the shared ones come from if git was asked, `then` the commands that end
    what git is doing.
    """

    target: str
    outcome: RebaseOutcome
    onto: str | None
    after: str | None = None
    renamed: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    rebuilt: tuple[tuple[str | None, str], ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    server: str | None = None
    fixtures: int = 0
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    then: str | None = None


def rebase_target(
    project: Project,
    target: Target,
    *,
    onto: str | None = None,
    files: Sequence[str] = (),
    name: str | None = None,
    allow_destructive: bool = False,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Rebased:
    """Put the migrations of one branch after the shared ones, all or nothing.

    Args:
        onto: The revision whose migrations are shared; None asks git.
        files: Migrations of yours, by name or path; git is not asked.
        name: What to call a migration with what is left, where none of yours is open.
        allow_destructive: Whether losses of data are agreed to in the migration that is built again.
        dry_run: Say what would be done; no database is asked and nothing is written.

    Raises:
        InputError: Something is in conflict still, or nothing says which migrations are yours.
        RefusedError: A shared migration was changed, or yours do not lead to the schema.
        FindingError: The proof failed.
    """
    if name is not None:
        check_name(name)
    repository = find_repository(project.root)
    refuse_unsettled(project, target, repository)
    seen = _seen(target)
    if files:
        sides = named_sides(project, target, files)
    elif repository is not None:
        sides = read_sides(project, target, repository, refs=find_refs(repository, onto))
    else:
        raise InputError(
            f"{project.root} is in no git repository, so nothing says which migrations are yours",
            hint="pgsluice rebase FILE, once for each migration of yours",
        )
    layout = lay_out(project, target, sides, name=name, now=datetime.now(UTC))
    _refuse_name(project, target, layout, name=name)
    upgrades = project.root / "tests/upgrades" / target.name
    moved = move_fixtures(upgrades, layout, shared=sides.fixtures)
    if name is None and not moved and _is_current(project, target, layout):
        return _told(project, target, sides, layout, moved=moved, outcome=RebaseOutcome.UNCHANGED)
    if dry_run:
        return _told(project, target, sides, layout, moved=moved, outcome=RebaseOutcome.PLANNED)
    if layout.is_empty:
        return _settle(project, target, sides, layout, seen=seen)
    from pgsluice.pipeline.branches.proving import prove
    from pgsluice.pipeline.devdb import open_dev

    with open_dev(project.dev, root=project.root, progress=progress) as server:
        proved = prove(
            project,
            target,
            layout,
            ignored=_ignored(target),
            moved=moved,
            server=server,
            shared_lock=sides.shared_lock,
            allow_destructive=allow_destructive,
            progress=progress,
        )
    progress("writing the migrations")
    lock = _kept_made(target, proved, seen=seen)
    changes = _migrations(target, proved.files) | {
        target.migrations_dir / SUM_NAME: proved.sum,
        target.migrations_dir / LOCK_NAME: lock.render(),
        **{one.old: None for one in moved},
        **{one.new: one.content for one in moved},
    }
    outcome = _publish(
        project, changes, seen={**seen, **{one.old: one.before for one in moved}}, done=RebaseOutcome.REBASED
    )
    return _told(project, target, sides, layout, moved=moved, outcome=outcome, proved=proved)


def _is_current(project: Project, target: Target, layout: Layout) -> bool:
    """Whether everything stands where it should, as the last proof left it."""
    files = [one.filename for one in layout.open_files]
    if any(one.is_renamed for one in layout.closed) or files != [one.filename for one in layout.open_places]:
        return False
    return not verify_target(project, target)


def _settle(
    project: Project, target: Target, sides: Sides, layout: Layout, *, seen: Mapping[Path, bytes | None]
) -> Rebased:
    """None of the migrations is yours: take the shared ones with their lock."""
    folder = target.migrations_dir
    files = _migrations(target, sides.shared)
    recorded = compute_sum(folder, replace={path.name: content for path, content in files.items()})
    changes = files | {folder / SUM_NAME: recorded.render()}
    if sides.takes_lock and sides.shared_lock is not None:
        changes[folder / LOCK_NAME] = sides.shared_lock.render()
    outcome = _publish(project, changes, seen=seen, done=RebaseOutcome.SETTLED)
    return _told(project, target, sides, layout, moved=(), outcome=outcome)


def _seen(target: Target) -> dict[Path, bytes | None]:
    """The folder as it is now: when a file changes meanwhile, nothing is written."""
    folder = target.migrations_dir
    names = (*list_sql(folder), SUM_NAME, LOCK_NAME)
    return {path: path.read_bytes() if path.exists() else None for path in (folder / name for name in names)}


def _ignored(target: Target) -> dict[str, bytes]:
    """Files that say `atlas:sum ignore`: they stay, and their names count in the sum."""
    present = present_migrations(target)
    names = (name for name in list_sql(target.migrations_dir) if name not in present)
    return {name: (target.migrations_dir / name).read_bytes() for name in names}


def _migrations(target: Target, files: Mapping[str, bytes]) -> dict[Path, bytes | None]:
    """What has to be written so that the folder has exactly these migrations."""
    present = present_migrations(target)
    changes: dict[Path, bytes | None] = {
        target.migrations_dir / name: None for name in present if name not in files
    }
    changes |= {
        target.migrations_dir / name: content
        for name, content in files.items()
        if present.get(name) != content
    }
    return changes


def _kept_made(target: Target, proved: Proved, *, seen: Mapping[Path, bytes | None]) -> Lock:
    """The lock, with what it says of the newest migration when nothing else of it changed."""
    content = seen[target.migrations_dir / LOCK_NAME]
    if content is None or _migrations(target, proved.files) or proved.rebuilt:
        return proved.lock
    same = replace(proved.lock, made=UNKNOWN)
    texts = split_conflict(content.decode("utf-8", "replace"))
    locks = [parse_lock(text, path=target.migrations_dir / LOCK_NAME) for text in texts]
    kept = [one for one in locks if replace(one, made=UNKNOWN) == same]
    return kept[0] if kept else proved.lock


def _publish(
    project: Project,
    changes: Mapping[Path, bytes | None],
    *,
    seen: Mapping[Path, bytes | None],
    done: RebaseOutcome,
) -> RebaseOutcome:
    """Write what differs, all or nothing."""
    before = {path: seen[path] if path in seen else _content(path) for path in changes}
    differing = {path: content for path, content in changes.items() if before[path] != content}
    if not differing:
        return RebaseOutcome.UNCHANGED
    publish_files(project.root, differing, expect={**seen, **{path: before[path] for path in differing}})
    return done


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _refuse_name(project: Project, target: Target, layout: Layout, *, name: str | None) -> None:
    if name is None:
        return
    if layout.old_name is not None:
        raise InputError(
            f"{layout.old_name} is open and takes what is left, so no other migration is started",
            hint=TargetFiles(project, target).command("rebase"),
        )
    closed = (*(split_stem(one.removesuffix(SUFFIX))[1] for one in layout.shared), *_names(layout))
    if name in closed:
        raise InputError(f"a migration called {name} is there already", hint=f"--name {name}_again")


def _names(layout: Layout) -> tuple[str, ...]:
    return tuple(one.new.name for one in layout.closed)


def _told(
    project: Project,
    target: Target,
    sides: Sides,
    layout: Layout,
    *,
    moved: Sequence[MovedFixture],
    outcome: RebaseOutcome,
    proved: Proved | None = None,
) -> Rebased:
    """The result as it is shown."""

    def shown(name: str) -> str:
        return project.relative(target.migrations_dir / name)

    places = tuple(one.filename for one in layout.open_places)
    rebuilt = places if proved is None else proved.rebuilt
    before: list[str | None] = [one.filename for one in layout.open_files]
    gone = tuple(one.filename for one in layout.open_files[len(rebuilt) :])
    before += [None] * len(rebuilt)
    folders = dict.fromkeys((target.migrations_dir, *(one.new.parent.parent for one in moved)))
    add = "git add " + " ".join(quoted(project.relative(folder)) for folder in folders)
    return Rebased(
        target.name,
        outcome,
        sides.name if sides.fixtures is not None else None,
        after=shown(list(layout.shared)[-1]) if layout.shared else None,
        renamed=tuple(
            (shown(one.old.filename), shown(one.new.filename)) for one in layout.closed if one.is_renamed
        ),
        kept=tuple(shown(one.new.filename) for one in layout.closed if not one.is_renamed),
        rebuilt=tuple(
            (shown(old) if old is not None else None, shown(new))
            for old, new in zip(before, rebuilt, strict=False)
        ),
        removed=tuple(map(shown, gone)),
        moved=tuple((project.relative(one.old), project.relative(one.new)) for one in moved),
        server=proved.server if proved is not None else None,
        fixtures=proved.fixtures if proved is not None else 0,
        losses=tuple(one.what for one in proved.plan.losses) if proved is not None else (),
        notes=proved.plan.notes if proved is not None else (),
        then=f"{add} && {sides.then}" if sides.then is not None else None,
    )
