"""Prove a folder to be: shared migrations run, yours run after them, and together they give the schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pgsluice import __version__
from pgsluice.errors import InputError, Location, RefusedError
from pgsluice.pipeline.branches.layout import Wanted, place
from pgsluice.pipeline.branches.staging import staged
from pgsluice.pipeline.build import Task, recorded_templates
from pgsluice.pipeline.checksum import compute_sum
from pgsluice.pipeline.devdb import bootstrap
from pgsluice.pipeline.digest import schema_files
from pgsluice.pipeline.finding import TargetFiles, quoted
from pgsluice.pipeline.fixtures import read_fixtures, split_history
from pgsluice.pipeline.history import read_history, suggest_name
from pgsluice.pipeline.lockfile import Lock
from pgsluice.pipeline.proving import make, run_one_fixture
from pgsluice.pipeline.replay import replay
from pgsluice.pipeline.snapshot import compare
from pgsluice.pipeline.states import read_states
from pgsluice.pipeline.upgrade import MigrationText

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.branches.layout import Layout, Placed
    from pgsluice.pipeline.branches.moved_fixtures import MovedFixture
    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.statement import Plan

MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Proved:
    """A folder that was proved.

    `files` are its migrations by name, `rebuilt` the ones that were made again, `fixtures` the number of
    upgrade fixtures that ran, `server` what it was proved on.
    """

    files: Mapping[str, bytes]
    sum: bytes
    lock: Lock
    plan: Plan
    server: str
    rebuilt: tuple[str, ...] = ()
    fixtures: int = 0


def prove(
    project: Project,
    target: Target,
    layout: Layout,
    *,
    ignored: Mapping[str, bytes],
    moved: Sequence[MovedFixture],
    server: DevServer,
    shared_lock: Lock | None,
    allow_destructive: bool,
    progress: Callable[[str], None],
) -> Proved:
    """Build what is open again and prove the whole in a copy; nothing of the project is written.

    Args:
        ignored: Files of the folder that say `atlas:sum ignore`.

    Raises:
        InputError: Schema or template cannot be used.
        RefusedError: A migration of yours does not run there, what comes out is not the schema, or data
            would be lost.
        FindingError: The proof failed.
    """
    schema_files(target.schema_dir, root=project.root)
    kept = {**layout.shared, **{one.new.filename: one.content for one in layout.closed}}
    with staged(project, target, {**kept, **ignored}) as (copy, to):
        _move(project, copy, moved)
        base = read_history(to.migrations_dir)
        _refuse_unrunnable(copy, to, layout, base=base, server=server, progress=progress)
        if layout.open_name is None:
            _refuse_rest(copy, to, base=base, server=server, progress=progress)
        task = Task(layout.open_name, base, (), None, online=layout.online)
        made = make(copy, to, task, server=server, allow_destructive=allow_destructive, progress=progress)
        versions: list[str | None] = [one.version for one in layout.open_files]
        versions += [None] * len(made.rendered)
        wanted = [
            Wanted(f"{layout.open_name}{file.suffix}", version)
            for file, version in zip(made.rendered, versions, strict=False)
        ]
        opened = place(to, base, wanted, now=datetime.now(UTC))
        texts = {one.filename: file.text.encode() for one, file in zip(opened, made.rendered, strict=True)}
        for filename, content in texts.items():
            (to.migrations_dir / filename).write_bytes(content)
        progress("running the upgrade fixtures")
        ran = _run_fixtures(copy, to, server=server)
        lock = Lock(
            made.schema_digest,
            recorded_templates(to, read_history(to.migrations_dir)),
            tool=__version__,
            postgres=server.major,
            open=tuple(texts),
            online=layout.online and bool(texts),
            made=made.schema_digest if texts else "",
        )
        if not texts and not layout.closed and shared_lock is not None:
            lock = replace(lock, open=shared_lock.open, online=shared_lock.online, made=shared_lock.made)
        recorded = compute_sum(to.migrations_dir)
        lock = replace(lock, history=recorded.total)
    return Proved(
        {**kept, **texts},
        recorded.render(),
        lock,
        made.plan,
        server.description,
        rebuilt=tuple(texts),
        fixtures=ran,
    )


def _move(project: Project, copy: Project, moved: Sequence[MovedFixture]) -> None:
    """Give the copy the fixtures as they will be."""
    for one in moved:
        (copy.root / one.old.relative_to(project.root)).unlink()
    for one in moved:
        path = copy.root / one.new.relative_to(project.root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.content)


def _refuse_unrunnable(
    copy: Project,
    to: Target,
    layout: Layout,
    *,
    base: Sequence[Migration],
    server: DevServer,
    progress: Callable[[str], None],
) -> None:
    """Run closed migrations one by one, so that the refusal names the one that does not fit."""
    if not layout.closed:
        return
    progress("replaying the shared migrations, then yours")
    own = {one.new.filename: one for one in layout.closed}
    with server.clone(bootstrap(server, to.requires, root=copy.root)) as conninfo:
        replay(conninfo, [one for one in base if one.filename not in own], root=copy.root)
        for migration in (one for one in base if one.filename in own):
            try:
                replay(conninfo, [migration], root=copy.root)
            except InputError as exc:
                raise _unrunnable(copy, to, own[migration.filename], layout=layout, exc=exc) from exc


def _unrunnable(
    copy: Project, to: Target, placed: Placed, *, layout: Layout, exc: InputError
) -> RefusedError:
    path = copy.relative(to.migrations_dir / placed.old.filename)
    line = exc.location.line if exc.location is not None else None
    name = f" --name {suggest_name(placed.old.name)}" if layout.open_name is None else ""
    return RefusedError(
        "the migration does not run after the shared ones",
        location=Location(path, line),
        details=(
            *exc.details,
            "what it did that the schema still needs can be built anew, or correct it by hand",
        ),
        hint=f"rm {quoted(path)} && {_rebase(copy, to)}{name}",
    )


def _refuse_rest(
    copy: Project,
    to: Target,
    *,
    base: Sequence[Migration],
    server: DevServer,
    progress: Callable[[str], None],
) -> None:
    """Without an open migration there is no place for what the migrations do not do."""
    states = read_states(server, to, base, root=copy.root, progress=progress)
    differences = compare(states.after, states.before)
    if differences:
        shown = [str(one) for one in differences[:MOST]]
        more = [f"and {len(differences) - MOST} more"] if len(differences) > MOST else []
        raise RefusedError(
            f"the merged migrations of target {to.name} do not lead to the merged schema, "
            "and none of yours is open to take the rest",
            details=(*shown, *more),
            hint=f"{_rebase(copy, to)} --name NAME, or correct {copy.relative(to.schema_dir)}",
        )


def _rebase(copy: Project, to: Target) -> str:
    return TargetFiles(copy, to).command("rebase")


def _run_fixtures(copy: Project, to: Target, *, server: DevServer) -> int:
    """Run every upgrade fixture on the folder to be; returns how many there are."""
    folder = copy.root / "tests/upgrades" / to.name
    fixtures = read_fixtures(folder, root=copy.root) if folder.is_dir() else ()
    history = read_history(to.migrations_dir)
    for fixture in fixtures:
        before, after = split_history(fixture, history)
        texts = [MigrationText(one.filename, one.path.read_text(encoding="utf-8")) for one in after]
        run_one_fixture(copy, to, fixture=fixture, before=before, texts=texts, server=server)
    return len(fixtures)
