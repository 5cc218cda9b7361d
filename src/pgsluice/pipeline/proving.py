"""From two states to a migration that was run: plan, render, and every proof that can be made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.errors import FindingError, InputError, Location
from pgsluice.pipeline.devdb import bootstrap
from pgsluice.pipeline.diff import find_plan
from pgsluice.pipeline.fixtures import read_fixtures, split_history
from pgsluice.pipeline.history import Migration, read_history
from pgsluice.pipeline.lockfile import TEMPLATE_SUFFIX
from pgsluice.pipeline.online import split_online
from pgsluice.pipeline.opinion import SecondOpinion, second_opinion
from pgsluice.pipeline.parts import Part
from pgsluice.pipeline.proof import connected, run_rendered, validate_functions
from pgsluice.pipeline.render import Rendered, render_migration, render_online, written_statements
from pgsluice.pipeline.replay import replay
from pgsluice.pipeline.seed import seed_rows
from pgsluice.pipeline.snapshot import Address, compare
from pgsluice.pipeline.statement import Phase, Plan, Statement
from pgsluice.pipeline.states import States, read_states, search_path, snapshot_of
from pgsluice.pipeline.upgrade import MigrationText, run_fixture

NOT_NULL: Final = "23502"
REFUSAL: Final = "SL100"

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.build import Task
    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.fixtures import Fixture
    from pgsluice.pipeline.snapshot import Difference


@dataclass(frozen=True, slots=True)
class Made:
    """A proved migration.

    `rendered` are its files in the order in which they are applied: one, or some when it is built online;
    none where nothing differs and no template has anything to add.
    """

    plan: Plan
    rendered: tuple[Rendered, ...]
    schema_digest: str
    rows_in: tuple[str, ...] = ()
    no_rows_in: tuple[str, ...] = ()


def make(
    project: Project,
    target: Target,
    task: Task,
    *,
    server: DevServer,
    allow_destructive: bool,
    progress: Callable[[str], None],
) -> Made:
    """Plan, render and prove one migration; nothing is written.

    Raises:
        InputError: Something given cannot be used, or a change has no name to be built under.
        RefusedError: Data would be lost, a backfill is missing, or a difference cannot be migrated.
        FindingError: The proof failed.
    """
    states = read_states(server, target, task.base, root=project.root, progress=progress)
    with second_opinion(server, target, states.goal) as opinion:
        return _make(
            project, target, task, states=states, opinion=opinion, agreed=allow_destructive, progress=progress
        )


def _make(
    project: Project,
    target: Target,
    task: Task,
    *,
    states: States,
    opinion: SecondOpinion,
    agreed: bool,
    progress: Callable[[str], None],
) -> Made:
    template = target.templates_dir / f"{task.name}{TEMPLATE_SUFFIX}" if task.name else None
    progress("planning and measuring")
    plan = _plan(states, project, target, template, part=Part.EXPAND if task.online else None)
    if not plan.statements and not (template is not None and template.is_file()):
        _refuse_unseen(states, opinion)
        return Made(_noted(plan, opinion), (), states.source.digest)
    if task.name is None:
        option = f" --target {target.name}" if len(project.targets) > 1 else ""
        raise InputError(
            f"the schema of target {target.name} changed, and no migration is open",
            details=tuple(statement.claim for statement in plan.statements[:10]),
            hint=f"give it a name: pgsluice build NAME{option}",
        )
    render = _render_online if task.online else _render
    plan, rendered = render(plan, states, project, template=template, agreed=agreed)
    if not plan.statements and not any(one.template for file in rendered for one in file.statements):
        shown = project.relative(template) if template is not None else ""
        raise InputError(
            "the template writes nothing, and the schema does not differ",
            location=Location(shown),
            hint=f"fill its blocks, or rm {shown}",
        )
    progress("proving the migration")
    with ThreadPoolExecutor(2) as pool:
        without_rows = pool.submit(_prove, states, rendered, rows=(), opinion=opinion)
        with_rows = pool.submit(_prove_on_rows, states, plan, rendered)
        without_rows.result()
        rows, skipped = with_rows.result()
    run_fixtures(project, target, task, states=states, rendered=rendered)
    return Made(_noted(plan, opinion), rendered, states.source.digest, rows, skipped)


def _render(
    plan: Plan, states: States, project: Project, *, template: Path | None, agreed: bool
) -> tuple[Plan, tuple[Rendered, ...]]:
    rendered = render_migration(
        plan, template=template, target=states.target, root=project.root, allow_destructive=agreed
    )
    return plan, (rendered,)


def _render_online(
    plan: Plan, states: States, project: Project, *, template: Path | None, agreed: bool
) -> tuple[Plan, tuple[Rendered, ...]]:
    """The files, and the plan with their statements in place of its own."""
    written = written_statements(
        template, target=states.target, root=project.root, block=Phase.BACKFILL, part=Part.CONCURRENTLY
    )
    files = split_online(plan, states.before, states.after, backfill=[statement.sql for statement in written])
    rendered = render_online(
        plan, files, template=template, target=states.target, root=project.root, allow_destructive=agreed
    )
    statements = tuple(statement for file in files for statement in file.plan.statements)
    return replace(plan, statements=statements, order=frozenset()), rendered


def plan_of(project: Project, target: Target, *, server: DevServer, progress: Callable[[str], None]) -> Plan:
    """The measured plan from the whole history to the schema, without rendering it."""
    history = read_history(target.migrations_dir)
    states = read_states(server, target, history, root=project.root, progress=progress)
    progress("planning and measuring")
    return _plan(states, project, target, None, part=None)


def _plan(
    states: States, project: Project, target: Target, template: Path | None, *, part: Part | None
) -> Plan:
    """Plan from where the template's own statements in block prepare lead."""
    own = tuple(
        Statement(statement.sql, "template", Phase.PREPARE)
        for statement in written_statements(
            template, target=target, root=project.root, block="prepare", part=part
        )
    )
    before = states.measure(own) if own else states.before
    plan = find_plan(
        before,
        states.after,
        lambda statements: states.measure((*own, *statements)),
        hints=states.source.renames,
    )
    return replace(plan, notes=plan.notes + states.notes)


def _noted(plan: Plan, opinion: SecondOpinion) -> Plan:
    """The plan with a note on an opinion that could not be had."""
    return plan if opinion.note is None else replace(plan, notes=(*plan.notes, opinion.note))


def _refuse_unseen(states: States, opinion: SecondOpinion) -> None:
    """Where the snapshots find nothing to do, an edit that they do not read would be lost in silence."""
    with states.clone_of_base() as conninfo:
        opinion.refuse_differences(
            opinion.start(conninfo),
            what=f"the migrations of target {states.target.name} do not lead to its schema",
            way_out="write the statements in a migration of your own: pgsluice new NAME",
        )


def _prove(
    states: States,
    rendered: Sequence[Rendered],
    *,
    rows: Sequence[tuple[str, str]],
    opinion: SecondOpinion | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Run the migration on a clone, and compare what comes out; returns the tables with and without rows."""
    with states.clone_of_base() as conninfo:
        seeded: tuple[str, ...] = ()
        skipped: tuple[str, ...] = ()
        if rows:
            with connected(conninfo) as conn:
                result = seed_rows(conn, rows)
            seeded = tuple(f"{schema}.{table}" for schema, table in result.seeded)
            skipped = tuple(f"{one.schema}.{one.table}: {one.reason}" for one in result.skipped)
        for file in rendered:
            run_rendered(conninfo, file)
        dumped = opinion.start(conninfo) if opinion is not None else None
        with connected(conninfo) as conn:
            reached = snapshot_of(conn, states.target, like=states.after)
            refuse_differences(compare(states.after, reached), rendered[0])
            validate_functions(conn, states.target.manages, search_path=search_path(states.target))
        if opinion is not None:
            opinion.refuse_differences(
                dumped,
                what=f"proof of {rendered[0].name} failed",
                way_out=f"write the missing statements in block install of {rendered[0].template}",
            )
    return seeded, skipped


def _prove_on_rows(
    states: States, plan: Plan, rendered: Sequence[Rendered]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Again with a row in each table that the migration touches.

    A made-up row may break what real rows keep, such as a new check or bound: that is told, and proves
    nothing. A null in a column that should have been filled is a fault of the backfill.
    """
    if not plan.touched:
        return (), ()
    try:
        return _prove(states, rendered, rows=plan.touched)
    except FindingError as exc:
        cause = exc.__cause__
        if not isinstance(cause, psycopg.Error) or not _is_about_values(cause.sqlstate):
            raise
        if _shows_a_null(cause, states):
            raise
        tables = ", ".join(f"{schema}.{table}" for schema, table in plan.touched)
        word = "is refused" if cause.sqlstate == REFUSAL else "does not fit"
        return (), (f"{tables}: the row made for the proof {word}: {cause.diag.message_primary}",)


def _is_about_values(sqlstate: str | None) -> bool:
    """Data exceptions, broken constraints and refusals; a null is none of these."""
    return (
        sqlstate is not None
        and sqlstate != NOT_NULL
        and (sqlstate[:2] in ("22", "23") or sqlstate == REFUSAL)
    )


def _shows_a_null(cause: psycopg.Error, states: States) -> bool:
    """Whether a check was broken that the schema does not have: it only stands for a column's not null."""
    if not isinstance(cause, psycopg.errors.CheckViolation):
        return False
    schema, table, name = cause.diag.schema_name, cause.diag.table_name, cause.diag.constraint_name
    if schema is None or table is None or name is None:
        return False
    return Address("constraint", (schema, table, name)) not in states.after.objects


def refuse_differences(differences: Sequence[Difference], rendered: Rendered) -> None:
    """Raise when the migration does not lead to the schema.

    Raises:
        FindingError: It names each object, facet and both values.
    """
    if not differences:
        return
    raise FindingError(
        f"proof of {rendered.name} failed: the migrated catalog is not the schema's",
        details=tuple(str(difference) for difference in differences[:20]),
        hint=f"the template changes what the schema does not say; look at {rendered.template}, "
        "or write what is missing in its block install",
    )


def run_fixtures(
    project: Project, target: Target, task: Task, *, states: States, rendered: Sequence[Rendered]
) -> int:
    """Run the upgrade fixtures that reach the new migration; returns how many ran.

    Raises:
        FindingError: A fixture did not go as it says.
    """
    fixtures = project.root / "tests" / "upgrades" / target.name
    if not fixtures.is_dir():
        return 0
    last = "9" * 14
    new = [
        Migration(last, f"{task.name}{file.suffix}", target.migrations_dir / file.name) for file in rendered
    ]
    texts = {migration.filename: migration.path.read_text(encoding="utf-8") for migration in task.base}
    texts |= {one.filename: file.text for one, file in zip(new, rendered, strict=True)}
    ran = 0
    for fixture in read_fixtures(fixtures, root=project.root):
        if fixture.through is not None and any(
            fixture.through in (one.version, one.name, one.path.stem) for one in task.base
        ):
            continue
        before, through = split_history(fixture, (*task.base, *new))
        chosen = [MigrationText(one.filename, texts[one.filename]) for one in through]
        run_one_fixture(project, target, fixture=fixture, before=before, texts=chosen, server=states.server)
        ran += 1
    return ran


def run_one_fixture(
    project: Project,
    target: Target,
    *,
    fixture: Fixture,
    before: Sequence[Migration],
    texts: Sequence[MigrationText],
    server: DevServer,
) -> None:
    """Run a fixture on a scratch database at its from-version.

    Raises:
        FindingError: It did not go as it says.
    """
    with server.clone(bootstrap(server, target.requires, root=project.root)) as conninfo:
        replay(conninfo, before, root=project.root)
        result = run_fixture(
            conninfo, fixture, texts, snapshot=lambda conn: snapshot_of(conn, target).digest()
        )
        if result.problem is not None:
            raise result.problem
