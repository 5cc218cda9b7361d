"""`pgsluice diff`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load, load_for, progress, session
from pgsluice.errors import ExitCode, FindingError

if TYPE_CHECKING:
    from pgsluice.config import Project
    from pgsluice.pipeline.live.between import Between
    from pgsluice.pipeline.statement import Plan

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice diff                        what no migration does yet, phase by phase
  pgsluice diff --explain              with the object that each statement is for
  pgsluice diff --check                exit code 1 when the migrations do not lead to the schema
  pgsluice diff "$STAGING" "$LIVE"     what would make staging like live; needs no project
  pgsluice diff "$LIVE"                what would make live like the schema files"""

MAKES_ROUTINES: Final = re.compile(r"\s*create\s+(or\s+replace\s+)?(function|procedure)\b", re.IGNORECASE)
MOST_APART: Final = 20
UNCHECKED: Final = "set check_function_bodies = off;"

UrlArgument = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", help="A database; the plan starts from it.", show_default=False),
]
OtherArgument = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", help="The database that it leads to.", show_default=False),
]


@app.command(epilog=EXAMPLES, short_help="Print the plan from migrations, or a database, to the schema.")
def diff(
    ctx: typer.Context,
    first: UrlArgument = None,
    second: OtherArgument = None,
    *,
    target: TargetOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each statement is for.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail with exit code 1 on any difference.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the plan that leads from the migrations to the schema; nothing is written.

    With two databases, the plan that leads from the first to the second: of all schemas, or of those that
    --target manages. With one, the plan that leads from it to the schema. Databases are only read. What
    no dump of them shows, such as tablespaces, is named as not in the plan.

    The plan is measured on a scratch database, but not rendered: templates and proofs are `build`'s.
    """
    if first is None:
        _diff_folders(ctx, target, explain=explain, check=check, as_json=as_json)
        return
    found = _between(ctx, target, first, second)
    _emit(_head(found), found.plan, _between_text(found, explain=explain), as_json=as_json)
    if check and (found.plan.statements or found.apart):
        _fail(f"{found.first} is not as {found.second}", None, as_json=as_json)


def _head(found: Between) -> dict[str, object]:
    from pgsluice.cli.drift_report import difference_json

    apart = [difference_json(one) for one in found.apart]
    return {"from": found.first, "to": found.second, "not_planned": apart}


def _between_text(found: Between, *, explain: bool) -> str:
    """The plan, or that there is none to make, and what it leaves."""
    lines = [f"-- not in the plan: {one}" for one in found.apart[:MOST_APART]]
    if (more := len(found.apart) - MOST_APART) > 0:
        lines.append(f"-- not in the plan: {more} more differences")
    text = _sql(found.plan, explain=explain)
    if not found.plan.statements and not lines:
        text = "\n".join((f"no difference: {found.first} is as {found.second}", text))
    return "\n".join((text, *lines)).strip()


def _diff_folders(
    ctx: typer.Context, target: str | None, *, explain: bool, check: bool, as_json: bool
) -> None:
    from pgsluice.cli.report import plan_text
    from pgsluice.pipeline.devdb import open_dev
    from pgsluice.pipeline.proving import plan_of

    project = load(ctx)
    chosen = project.target(target)
    with progress() as shown, open_dev(project.dev, root=project.root, progress=shown) as server:
        plan = plan_of(project, chosen, server=server, progress=shown)
    text = (
        plan_text(plan, explain=explain)
        or f"no difference: the migrations of {chosen.name} lead to the schema"
    )
    _emit({"target": chosen.name}, plan, text, as_json=as_json)
    if check and plan.statements:
        what = f"the migrations of target {chosen.name} do not lead to its schema"
        _fail(what, "pgsluice build NAME", as_json=as_json)


def _between(ctx: typer.Context, target: str | None, first: str, second: str | None) -> Between:
    from pgsluice.pipeline.live.between import everything, plan_between, plan_to_schema
    from pgsluice.pipeline.live.database import database_url

    urls = [database_url(url, option="") for url in (first, second) if url is not None]
    with progress() as shown:
        if len(urls) == 1:
            project = load_for(ctx, target)
            return plan_to_schema(project, project.target(target), urls[0], progress=shown)
        project = _project_or_none(ctx, target)
        chosen = project.target(target) if target is not None else everything(project)
        return plan_between(project, chosen, urls[0], urls[1], progress=shown)


def _project_or_none(ctx: typer.Context, target: str | None) -> Project:
    """The project around the folder; where there is none, what stands for one."""
    from pgsluice.config import DEV_VARIABLE, find_config
    from pgsluice.pipeline.live.between import without_project

    folder = session(ctx).folder.resolve()
    if target is not None:
        return load_for(ctx, target)
    if any(find_config(one) is not None for one in (folder, *folder.parents)):
        return load(ctx)
    return without_project(folder, dev=os.environ.get(DEV_VARIABLE))


def _sql(plan: Plan, *, explain: bool) -> str:
    """The plan as a script that `psql -1` runs."""
    from pgsluice.cli.report import plan_text

    text = plan_text(plan, explain=explain)
    unchecked = any(MAKES_ROUTINES.match(statement.sql) for statement in plan.statements)
    return f"{UNCHECKED}\n\n{text}" if unchecked else text


def _emit(head: dict[str, object], plan: Plan, text: str, *, as_json: bool) -> None:
    from pgsluice.cli.report import plan_json

    emit({**head, **plan_json(plan)}, text, as_json=as_json)


def _fail(message: str, hint: str | None, *, as_json: bool) -> NoReturn:
    """End with a finding; with `--json` the plan was the one document already."""
    if as_json:
        raise typer.Exit(int(ExitCode.FINDING))
    raise FindingError(message, hint=hint)
