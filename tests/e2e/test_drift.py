"""`pgsluice drift`: databases that were migrated by our own files, and then changed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.client import apply_migration
from tests.conftest import EMBEDDED, server_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject
    from tests.e2e.project import Project

RICH: Final = Path(__file__).parent / "rich"
ROLES: Final = "do $$ begin create role {0}; exception when duplicate_object then null; end $$"
TWO_TARGETS: Final = """\
[targets.shop]
versioning = "sequence"
manages = ["shop"]
ignore = ["shop.scratch_*"]

[targets.stock]
versioning = "sequence"
manages = ["stock"]
"""


@pytest.fixture
def live(open_server: Callable[[str], DevServer]) -> Iterator[str]:
    """An empty database on the embedded server."""
    with open_server(EMBEDDED).clone(None) as conninfo:
        yield conninfo


def run(conninfo: str, *statements: str) -> None:
    """Run statements."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement.encode())


def two_targets(make: MakeProject, live: str) -> Project:
    """A project whose two targets were applied to the database."""
    project = make(
        {
            "schema/shop/shop.sql": "create schema shop;\ncreate table shop.orders (order_id int);\n",
            "schema/stock/stock.sql": "create schema stock;\ncreate table stock.items (item_id int);\n",
        },
        config=TWO_TARGETS,
    )
    for target in ("shop", "stock"):
        project.ok("build", "start", "--target", target)
        apply_migration(live, project.migrations(target)[0])
    return project


def test_a_rich_schema_that_was_migrated_has_not_drifted(make: MakeProject, server: DevServer) -> None:
    files = {f"schema/app/{path.name}": path.read_bytes() for path in RICH.iterdir()}
    project = make(files)
    project.ok("build", "start")
    with server.clone(None) as live:
        run(live, *(ROLES.format(role) for role in ("app_reader", "app_writer")))
        apply_migration(live, project.migrations()[0])
        out = project.ok("drift", "--database", live, PGSLUICE_DEV=server_url(server))
    name = psycopg.conninfo.conninfo_to_dict(live)["dbname"]
    assert out.startswith(f"no drift: {name} at ")
    assert "is what the migrations of app up to 0001_start.sql make\n" in out
    assert "note: there is no ledger of this target: compared with all migrations" in out


def test_each_target_is_compared_alone_and_says_what_it_leaves_out(make: MakeProject, live: str) -> None:
    project = two_targets(make, live)
    run(
        live,
        "alter table shop.orders add column nick text",
        "create function stock.f(int) returns int language sql as $$ select\n 1 $$",
        "create table shop.scratch_1 (id int)",
    )
    shop = project.run("drift", "--target", "shop", "--database", live)
    assert shop.code == 1, shop
    lines = shop.stdout.splitlines()
    assert lines[0] == "column shop.orders.nick: not expected"
    assert lines[1] == "ignored: 1 object (table shop.scratch_1)"
    assert "not compared, schema stock: 2 objects (function stock.f(), table stock.items)" in lines
    found = json.loads(project.run("drift", "--target", "shop", "--database", live, "--json").stdout)
    assert "function stock.f(integer)" in found["not_managed"]["schema stock"]
    assert "has drifted from the migrations of shop: 1 difference\nhint: pgsluice diff" in shop.stderr
    stock = project.run("drift", "--target", "stock", "--json", PGSLUICE_DATABASE=live)
    assert stock.code == 1, stock
    found = json.loads(stock.stdout)
    assert stock.stderr == ""
    assert found["differences"] == [
        {
            "object": "function stock.f(integer)",
            "kind": "function",
            "name": ["stock", "f", "integer"],
            "change": "not expected",
        }
    ]
    assert found["not_managed"]["schema shop"] == ["table shop.orders", "table shop.scratch_1"]


def test_values_are_shown_side_by_side_and_long_ones_as_a_diff(make: MakeProject, live: str) -> None:
    body = "create function app.f() returns int language plpgsql as $$\nbegin\n  return {};\nend\n$$"
    project = make(
        {
            "schema/app/app.sql": "create schema app;\ncreate table app.t (id int default 1);\n",
            "schema/app/f.sql": body.format(1) + ";\n",
        }
    )
    project.ok("build", "start")
    apply_migration(live, project.migrations()[0])
    run(
        live,
        "alter table app.t enable row level security, alter column id set default 2",
        body.format(2).replace("create", "create or replace"),
    )
    done = project.run("drift", "--database", live)
    assert done.code == 1, done
    shown, _, _ = done.stdout.partition("note: ")
    assert 'default app.t.id: expression is "2", expected "1"\n' in shown
    assert "table app.t: row_security is " in shown
    assert "function app.f(): definition differs\n  --- expected\n  +++ found\n" in shown
    assert "\n  -  return 1;\n  +  return 2;\n" in shown


def test_a_password_is_shown_nowhere(make: MakeProject, live: str) -> None:
    project = two_targets(make, live)
    run(live, "drop table stock.items")
    done = project.run("drift", "--target", "stock", "--database", f"{live} password=s3cret")
    assert done.code == 1, done
    assert "s3cret" not in str(done)


def test_bad_input_and_unreachable_servers_have_their_codes(
    make: MakeProject, live: str, tmp_path: Path
) -> None:
    project = make({"migrations/app/0001_one.sql": "select 1;\n"})
    target = ("drift",)
    assert "no database is named" in project.fails(2, *target)
    assert "no migration has version 0009" in project.fails(2, *target, "--database", live, "--to", "0009")
    gone = f"host={tmp_path} dbname=gone connect_timeout=2"
    assert "cannot connect to gone" in project.fails(3, *target, "--database", gone)
    done = project.run(*target, "--database", live, PGSLUICE_DEV=f"postgresql:///x?host={tmp_path}")
    assert done.code == 3
    assert "cannot reach the dev server" in done.stderr
