"""The plan that leads a real database to another one, or to a schema folder; all of it on the dev server."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgsluice.config import Project, Target
from pgsluice.errors import RefusedError
from pgsluice.pipeline.devdb import open_dev
from pgsluice.pipeline.diff import find_plan
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.live.catalog import OF_ATLAS, open_reader, read_live
from pgsluice.pipeline.live.compare import NAMED_NOT_NULL, SECRET, column_order, without_not_null_names
from pgsluice.pipeline.live.copy import schema_copy
from pgsluice.pipeline.live.drift import servers_for
from pgsluice.pipeline.live.faithful import complete, not_planned, refuse_half_done
from pgsluice.pipeline.live.naming_runner import as_run_by
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.snapshot import Snapshot, read_snapshot
from pgsluice.pipeline.states import read_states, run_planned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import psycopg

    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.live.catalog import LiveCatalog
    from pgsluice.pipeline.snapshot import Difference
    from pgsluice.pipeline.statement import Plan, Statement

ANY_MAJOR: Final = (15, 99)
EMBEDDED: Final = "embedded"
SECRET_NOTE: Final = "user mappings are not compared: they may hold passwords"


@dataclass(frozen=True, slots=True)
class Between:
    """A measured plan from one database to another; `first` and `second` are their names for messages.

    `apart` are differences that the plan leaves: `pg_dump` prints both databases alike.
    """

    first: str
    second: str
    plan: Plan
    apart: tuple[Difference, ...] = ()


def without_project(root: Path, *, dev: str | None) -> Project:
    """What stands for a project in a folder that has none: a dev server, and no target."""
    return Project(root=root, dev=dev or EMBEDDED, postgres=ANY_MAJOR, targets=())


def everything(project: Project) -> Target:
    """All schemas of a database as a target, on what any of the project's targets requires."""
    requires = tuple(dict.fromkeys(name for target in project.targets for name in target.requires))
    root = project.root
    return Target(
        name="database",
        schema_dir=root,
        migrations_dir=root,
        templates_dir=root,
        manages=("*",),
        requires=requires,
    )


def plan_between(
    project: Project, target: Target, first: str, second: str, *, progress: Callable[[str], None]
) -> Between:
    """The plan that brings the first database to what the second one is; both are only read.

    Args:
        project: Its dev server, or one of the databases' major where this machine has one, holds the copies.
        target: What of them is compared.
        first: The database to be changed.
        second: The one to be reached.

    Raises:
        InputError: A schema cannot be loaded on the dev server.
        RefusedError: A difference that no plan brings home, or what a database holds half-done.
        UnreachableError: A server cannot be reached or read.
    """
    have, want = (_read(url, target, progress) for url in (first, second))
    view = _View(target, named=min(have.major, want.major) >= NAMED_NOT_NULL // 10000)
    dev = servers_for(project, max(have.major, want.major))[0]
    with open_dev(dev, root=project.root, progress=progress) as server, ExitStack() as stack:
        progress(f"copying both schemas to {server.description}")
        base, goal = (stack.enter_context(_copied(server, live, view, project.root)) for live in (have, want))
        progress("planning and measuring")
        plan = _plan(server, base, goal.snapshot, view, made_by=f"{want.place} has")
        plan = _for_runner(plan, have)
        apart = not_planned(want.snapshot, have.snapshot, goal=goal.snapshot, base=base.snapshot)
        if have.major != want.major:
            plan, apart = _versions_noted(plan, apart)
        return Between(have.place, want.place, plan, apart)


def plan_to_schema(project: Project, target: Target, url: str, *, progress: Callable[[str], None]) -> Between:
    """The plan that brings a database to what the target's schema files say; it is only read.

    Raises:
        As `plan_between`, and as a build does for the schema files.
    """
    live = _read(url, target, progress)
    view = _View(target, named=live.major >= NAMED_NOT_NULL // 10000)
    with open_dev(project.dev, root=project.root, progress=progress) as server:
        history = read_history(target.migrations_dir)
        states = read_states(server, target, history, root=project.root, progress=progress)
        progress(f"copying the schema of {live.place} to {server.description}")
        with _copied(server, live, view, project.root) as base:
            progress("planning and measuring")
            goal = as_run_by(view.of(states.after), live.snapshot.runner)
            plan = _for_runner(_plan(server, base, goal, view, made_by="the schema has"), live)
            apart = not_planned(goal, live.snapshot, goal=goal, base=base.snapshot)
    return Between(live.place, f"the schema of target {target.name}", *_versions_noted(plan, apart))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy: how to connect to it on the dev server, and its catalog."""

    conninfo: str
    snapshot: Snapshot

    @property
    def name(self) -> str:
        """Its database."""
        return str(conninfo_to_dict(self.conninfo)["dbname"])

    def clone_at(self, conninfo: str) -> str:
        """How to connect to a clone of it as to the copy itself."""
        return make_conninfo(self.conninfo, dbname=conninfo_to_dict(conninfo)["dbname"])


def _read(url: str, target: Target, progress: Callable[[str], None]) -> LiveCatalog:
    progress("reading the databases")
    with open_reader(url, progress=progress) as conn:
        live = read_live(conn, url, target)
    refuse_half_done(live)
    return live


@contextmanager
def _copied(server: DevServer, live: LiveCatalog, view: _View, root: Path) -> Iterator[_Copy]:
    target = view.target
    with schema_copy(
        server,
        live.url,
        manages=target.manages,
        requires=target.requires,
        root=root,
        runner=live.snapshot.runner,
    ) as conninfo:
        with connected(conninfo) as conn:
            snapshot = view.read(conn)
            if complete(conn, live, snapshot):
                snapshot = view.read(conn)
        yield _Copy(conninfo, snapshot)


@dataclass(frozen=True, slots=True)
class _View:
    """How the catalogs of copies are seen; `named` says whether the real servers keep names of not null."""

    target: Target
    named: bool

    def read(self, conn: psycopg.Connection[Any]) -> Snapshot:
        """The catalog of a copy."""
        ignore = (*self.target.ignore, *OF_ATLAS)
        return self.of(read_snapshot(conn, manages=self.target.manages, ignore=ignore))

    def of(self, found: Snapshot) -> Snapshot:
        """A catalog less what holds passwords, which no plan may print."""
        found = found if self.named else without_not_null_names(found)
        if not any(address.kind == SECRET for address in found.objects):
            return found
        objects = {address: obj for address, obj in found.objects.items() if address.kind != SECRET}
        return replace(found, objects=objects, ignored=(*found.ignored, SECRET))


def _plan(server: DevServer, base: _Copy, goal: Snapshot, view: _View, *, made_by: str) -> Plan:
    def measure(statements: Sequence[Statement]) -> Snapshot:
        with server.clone(base.name) as conninfo, connected(base.clone_at(conninfo)) as conn:
            run_planned(conn, statements)
            return view.read(conn)

    try:
        plan = find_plan(base.snapshot, goal, measure)
    except RefusedError as exc:
        exc.hint = "write this change by hand; docs/reference/coverage.md lists the kinds"
        raise
    notes = plan.notes + column_order(goal, base.snapshot, made_by=made_by, but=plan.touched)
    if SECRET in (*base.snapshot.ignored, *goal.ignored):
        notes += (SECRET_NOTE,)
    return replace(plan, notes=notes)


def _for_runner(plan: Plan, live: LiveCatalog) -> Plan:
    """The plan with a note on who has to run it, where that is not who looked."""
    runner = live.snapshot.runner
    if not plan.statements or runner == conninfo_to_dict(live.url).get("user"):
        return plan
    note = (
        f"run it as {runner}: new objects belong to whoever does, and those that are there mostly to {runner}"
    )
    return replace(plan, notes=(note, *plan.notes))


def _versions_noted(plan: Plan, apart: Sequence[Difference]) -> tuple[Plan, tuple[Difference, ...]]:
    """Versions of extensions as notes, where the packages of two servers decide on them."""
    versions = [one for one in apart if one.address.kind == "extension" and one.facet == "version"]
    notes = plan.notes + tuple(map(str, versions))
    return replace(plan, notes=notes), tuple(one for one in apart if one not in versions)
