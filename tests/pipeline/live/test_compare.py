"""How two servers' catalogs are compared, and the plans between two databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgsluice.errors import RefusedError
from pgsluice.pipeline.live.between import everything, plan_between, without_project
from pgsluice.pipeline.live.compare import settled, without_parts
from pgsluice.pipeline.snapshot import Address, Difference
from tests.conftest import server_url
from tests.pipeline.live.shop import SHOP, Shop, run, silent

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

VIEW = Address("view", ("shop", "v"))
INDEX = Address("index", ("shop", "i"))
LEFT_BEHIND = Address("index", ("shop", "i_ccnew"))
POLICY = Address("policy", ("shop", "t", "p"))


def test_a_copy_tells_spelling_from_change() -> None:
    direct = [
        Difference(VIEW, "definition", "a", "b"),
        Difference(VIEW, "comment", "one", "two"),
        Difference(POLICY, "using", "a", "b"),
        Difference(INDEX, "definition", "a", "b"),
        Difference(INDEX, "invalid", None, True),
        Difference(LEFT_BEHIND, None, False, True),
    ]
    copied = [
        Difference(VIEW, "comment", "one", "2"),
        Difference(VIEW, "lost on the way", "x", None),
        Difference(POLICY, "using", "a", "c"),
        Difference(INDEX, None, True, False),
    ]
    assert settled(direct, copied) == (
        Difference(VIEW, "comment", "one", "two"),  # alike on every server
        Difference(POLICY, "using", "a", "c"),  # as the one server prints both
        # pg_dump leaves invalid indexes out
        Difference(INDEX, "definition", "a", "b"),
        Difference(INDEX, "invalid", None, True),
        Difference(LEFT_BEHIND, None, False, True),
    )


def test_parts_go_with_their_table() -> None:
    table = Difference(Address("table", ("shop", "t")), None, False, True)
    column = Difference(Address("column", ("shop", "t", "c")), None, False, True)
    default = Difference(Address("default", ("shop", "t", "c")), None, False, True)
    other = Difference(Address("column", ("shop", "u", "c")), None, False, True)
    others = Difference(Address("default", ("shop", "u", "c")), None, False, True)
    shown = without_parts([column, other, default, others, table])
    assert shown == ((other, 1), (table, 2))


@pytest.mark.parametrize("places", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
def test_a_plan_between_databases_leads_from_one_to_the_other(
    tmp_path: Path, servers: tuple[DevServer, ...], places: tuple[int, int]
) -> None:
    shop = Shop(tmp_path)
    shop.write(m0001_shop=SHOP)
    project = without_project(tmp_path, dev=server_url(servers[min(places)]))
    target = everything(project)
    changes = (
        "alter table shop.orders add column paid_at timestamptz, alter column note drop default",
        "create or replace view shop.open_orders as select order_id, state, note from shop.orders",
        "create table shop.extra (extra_id int not null, primary key (extra_id))",
        "drop view shop.totals",
    )
    first, second = (servers[place] for place in places)
    with shop.database(first) as have, shop.database(second, *changes) as want:
        found = plan_between(project, target, have, want, progress=silent)
        assert found.plan.statements
        run(have, *(statement.sql for statement in found.plan.statements))
        again = plan_between(project, target, have, want, progress=silent)
    assert again.plan.statements == ()


def test_passwords_of_user_mappings_are_in_no_plan(tmp_path: Path, server: DevServer) -> None:
    project = without_project(tmp_path, dev=server_url(server))
    mapping = (
        "create foreign data wrapper far",
        "create server shop foreign data wrapper far",
        "create user mapping for current_user server shop options (password 's3cret')",
    )
    with server.clone(None) as have, server.clone(None) as want:
        run(want, *mapping)
        found = plan_between(project, everything(project), have, want, progress=silent)
    assert "s3cret" not in str(found)
    assert found.plan.notes == ("user mappings are not compared: they may hold passwords",)


def test_what_no_plan_brings_home_is_refused_without_talk_of_templates(
    tmp_path: Path, server: DevServer
) -> None:
    project = without_project(tmp_path, dev=server_url(server))
    parser = (
        "create text search parser public.words"
        " (start = prsd_start, gettoken = prsd_nexttoken, end = prsd_end, lextypes = prsd_lextype)"
    )
    with server.clone(None) as have, server.clone(None) as want:
        run(want, parser)
        with pytest.raises(RefusedError) as caught:
            plan_between(project, everything(project), have, want, progress=silent)
    assert caught.value.hint == "write this change by hand; docs/reference/coverage.md lists the kinds"
