"""The demo: a schema, an edit, the migration that it becomes, applied to rows."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from pgsluice.config import load_project
from pgsluice.errors import RefusedError
from pgsluice.pipeline.build import build_target
from pgsluice.pipeline.devdb import open_dev
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgsluice.config import Project

CONFIG: Final = """\
postgres = ["15", "18"]

[targets.shop]
manages = ["shop"]
versioning = "sequence"
"""
SCHEMA: Final = "create schema shop;\n"
CUSTOMERS: Final = """\
create table shop.customers (
  customer_id bigint generated always as identity primary key,
  name text not null
);
"""
ORDERS: Final = """\
create table shop.orders (
  order_id bigint generated always as identity primary key,
  customer_id bigint not null references shop.customers,
  total numeric(12, 2) not null
);
"""
BALANCES: Final = """\
create view shop.balances as
select c.name, sum(o.total) as total
from shop.customers as c
join shop.orders as o using (customer_id)
group by c.name;
"""
ROWS: Final = (
    "insert into shop.customers (name) values ('Ada'), ('Grace')",
    "insert into shop.orders (customer_id, total) values (1, 40), (1, 2), (2, 7)",
)
EDITED_CUSTOMERS: Final = """\
create table shop.customers (
  customer_id bigint generated always as identity primary key,
  name text not null,
  email text not null
);
"""
TEMPLATE: Final = """\
{% extends "migration.sql.j2" %}
{% import "macros.sql.j2" as sql %}

{% block backfill %}
{{ sql.backfill(table="shop.customers", set="email = lower(name) || '@example.com'", where="email is null") }}
{% endblock %}
"""
AFTER: Final = "select name, email from shop.customers order by name"


def run_demo(folder: Path, *, shown: Callable[[str], None], progress: Callable[[str], None]) -> None:
    """Write a project into `folder` and take it through two migrations, telling what happens.

    Args:
        folder: Empty or not there yet.
        shown: Gets each paragraph of the story.
        progress: Gets a line for each stage that may take long.
    """
    project = _first_migration(folder, shown, progress)
    _edit(project, shown, progress)
    _apply(project, shown, progress)
    place = shlex.quote(str(folder))
    shown("atlas.sum and pgsluice.lock record it; CI checks them without a database:")
    shown(
        f"  $ cd {place} && pgsluice verify\n"
        "  $ pgsluice dev stop     # the scratch server, when you are done"
    )


def _first_migration(folder: Path, shown: Callable[[str], None], progress: Callable[[str], None]) -> Project:
    _write(
        folder,
        {
            "pgsluice.toml": CONFIG,
            "schema/shop/schema.sql": SCHEMA,
            "schema/shop/tables/customers.sql": CUSTOMERS,
            "schema/shop/tables/orders.sql": ORDERS,
            "schema/shop/views/balances.sql": BALANCES,
        },
    )
    shown(f"A project in {folder}: schema/shop is what the database is, one object a file.")
    shown(_indented(CUSTOMERS))
    project = load_project(folder)
    first = build_target(project, project.target(None), name="first", progress=progress)
    shown(f"  $ pgsluice build first\n  wrote {first.migration}, proved on {first.server}")
    return project


def _edit(project: Project, shown: Callable[[str], None], progress: Callable[[str], None]) -> None:
    target = project.target(None)
    _write(project.root, {"schema/shop/tables/customers.sql": EDITED_CUSTOMERS})
    shown("An edit: customers get an email, and it may not be null.")
    shown(_indented(EDITED_CUSTOMERS))
    try:
        build_target(project, target, name="add_email", progress=progress)
    except RefusedError as refusal:
        shown("Rows that are there would get no value. No diff can know one, so the build refuses:")
        shown(f"  $ pgsluice build add_email\n{_indented(f'error: {refusal}')}")
    _write(project.root, {"templates/shop/add_email.sql.j2": TEMPLATE})
    shown("A template says it, and stays when the migration is generated again:")
    shown(_indented(TEMPLATE))
    second = build_target(project, target, name="add_email", progress=progress)
    assert second.migration is not None
    shown(
        f"  $ pgsluice build add_email\n  wrote {second.migration}, proved on {second.server}, "
        "and again with rows"
    )
    shown(_indented((project.root / second.migration).read_text(encoding="utf-8")))


def _apply(project: Project, shown: Callable[[str], None], progress: Callable[[str], None]) -> None:
    history = read_history(project.target(None).migrations_dir)
    progress("applying both migrations to a scratch database")
    with (
        open_dev(project.dev, root=project.root, progress=progress) as server,
        server.clone(None) as conninfo,
    ):
        replay(conninfo, history[:1], root=project.root)
        with connected(conninfo) as conn:
            for statement in ROWS:
                conn.execute(statement.encode())
        replay(conninfo, history[1:], root=project.root)
        with connected(conninfo) as conn:
            rows = conn.execute(AFTER.encode()).fetchall()
    shown("Both migrations applied, with rows put in between:")
    shown("\n".join(f"  {name:<8} {email}" for name, email in rows))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.strip("\n").splitlines())


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
