"""`pgsluice new`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgsluice.cli.output import JsonOption, TargetOption, emit, load
from pgsluice.errors import InputError, Location

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.config import Project, Target

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice new fill_queue_names                 writes templates/<target>/fill_queue_names.sql.j2
  pgsluice build fill_queue_names               renders and proves it"""

TEMPLATE = """\
{% extends "migration.sql.j2" %}
{% import "macros.sql.j2" as sql %}

{#
  Hand-written SQL of the migration MIGRATION. Move the blocks that you need below this comment;
  what the schema's change needs is generated around them, in this order: settings, locks, preflight,
  prepare, expand, backfill, enforce, install, retire, postflight.

  Refuse before anything is written:

{% block preflight %}
{{ sql.refuse_if(rows="select u.user_id from public.users as u where u.email = ''",
                 message="users without an email",
                 hint="Fill in their email, then run the migration again.") }}
{% endblock %}

  Change rows:

{% block backfill %}
update public.users as u
set email = lower(u.email)
where u.email <> lower(u.email);
{% endblock %}

  The file runs in one transaction: no begin, no commit, names qualified, `set local` only.
#}
"""


@app.command(epilog=EXAMPLES, short_help="Start a migration with SQL of your own.")
def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the migration does: a-z, 0-9 and _.")],
    target: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a migration with SQL of your own, such as a change of data.

    Writes a template to fill in. `pgsluice build NAME` then renders it together with what the schema's
    change needs, proves the result and writes the migration.
    """
    project = load(ctx)
    chosen = project.target(target)
    path = write_template(project, chosen, name=name)
    option = f" --target {chosen.name}" if len(project.targets) > 1 else ""
    following = f"pgsluice build {name}{option}"
    emit(
        {"target": chosen.name, "template": project.relative(path), "next": following},
        f"wrote {project.relative(path)}\nfill in its blocks, then: {following}",
        as_json=as_json,
    )


def write_template(project: Project, target: Target, *, name: str) -> Path:
    """Write the template of a migration that is new or open."""
    from pgsluice.pipeline.history import check_name, read_history
    from pgsluice.pipeline.lockfile import TEMPLATE_SUFFIX, read_lock
    from pgsluice.pipeline.publish import publish_files

    check_name(name)
    path = target.templates_dir / f"{name}{TEMPLATE_SUFFIX}"
    if path.exists():
        raise InputError(
            "the template exists already",
            location=Location(project.relative(path)),
            hint=f"pgsluice build {name}",
        )
    lock = read_lock(target.migrations_dir)
    for migration in read_history(target.migrations_dir):
        if migration.name == name and (lock is None or migration.filename not in lock.open):
            raise InputError(
                f"a migration of that name is closed: {project.relative(migration.path)}",
                hint=f"pgsluice new {name}_again",
            )
    publish_files(project.root, {path: TEMPLATE.replace("MIGRATION", name).encode()}, expect={path: None})
    return path
