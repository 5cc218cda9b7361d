"""`pgsluice diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load, progress
from pgsluice.errors import FindingError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice diff                        what no migration does yet, phase by phase
  pgsluice diff --explain              with the object that each statement is for
  pgsluice diff --check                exit code 1 when the migrations do not lead to the schema"""


@app.command(epilog=EXAMPLES)
def diff(
    ctx: typer.Context,
    target: TargetOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each statement is for.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail with exit code 1 on any difference.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the plan that leads from the migrations to the schema; nothing is written.

    The plan is measured on a scratch database, but not rendered: templates and proofs are `build`'s.
    """
    from pgsluice.cli.report import plan_json, plan_text
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
    emit({"target": chosen.name, **plan_json(plan)}, text, as_json=as_json)
    if check and plan.statements:
        raise FindingError(
            f"the migrations of target {chosen.name} do not lead to its schema",
            hint="pgsluice build NAME",
        )
