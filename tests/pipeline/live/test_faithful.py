"""What `pg_dump` leaves out of a copy, in the plans between databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from psycopg.conninfo import conninfo_to_dict

from pgsluice.pipeline.live.between import everything, plan_between, without_project
from pgsluice.pipeline.live.copy import CopyError, as_runner
from pgsluice.pipeline.live.database import shown
from pgsluice.pipeline.live.faithful import HalfDoneError
from tests.conftest import server_url
from tests.pipeline.live.shop import Shop, as_role, make_role, run, silent

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

BOTH: Final = """\
create schema shop;
create table shop.orders (order_id int primary key, note text);
create table shop.lines (line int, order_id bigint constraint line_of references shop.orders);
create table shop.notes (note text);
create table shop.extra (extra int);
create table shop.days (day int not null) partition by range (day);
create table shop.monday partition of shop.days for values from (1) to (2);
create materialized view shop.sums as select sum(line) as line from shop.lines;
create index orders_note on shop.orders (note);
"""


def test_a_plan_tells_the_dev_servers_role_from_the_runner(tmp_path: Path, server: DevServer) -> None:
    project = without_project(tmp_path, dev=server_url(server))
    with server.clone(None) as have, server.clone(None) as want:
        own = str(conninfo_to_dict(have)["user"])
        make_role(have, "shop_owner", "superuser login")
        for conninfo in (have, want):
            run(as_role(conninfo, "shop_owner"), BOTH)
        run(
            want,
            f"alter table shop.extra owner to {own}",
            f"grant select on shop.notes to {own}",
            f"create table shop.fresh (fresh int); alter table shop.fresh owner to {own}",
        )
        found = plan_between(project, everything(project), have, want, progress=silent)
        assert found.plan.notes == (
            "run it as shop_owner: new objects belong to whoever does, and those that are there mostly to "
            "shop_owner",
        )
        run(as_role(have, "shop_owner"), *(statement.sql for statement in found.plan.statements))
        again = plan_between(project, everything(project), have, want, progress=silent)
    assert [statement.sql.replace("\n", "") for statement in found.plan.statements] == [
        "CREATE TABLE shop.fresh (  fresh integer)",
        f"ALTER TABLE shop.extra OWNER TO {own}",
        f"ALTER TABLE shop.fresh OWNER TO {own}",
        f"GRANT SELECT ON TABLE shop.notes TO {own}",
    ]
    assert (again.plan.statements, again.apart) == ((), ())


def test_what_a_copy_lacks_is_put_into_it_or_named(tmp_path: Path, server: DevServer) -> None:
    shop = Shop(tmp_path)
    project = without_project(tmp_path, dev=server_url(server))
    cast = ("create type shop.mood as enum ('fine')", "create cast (shop.mood as int) with inout")
    with server.clone(None) as have, server.clone(None) as want:
        run(have, BOTH, *cast)
        run(
            want,
            BOTH,
            *cast,
            "comment on cast (shop.mood as int) is 'mood'",
            "create materialized view shop.copy as select line as n from shop.sums",
            "create materialized view shop.void as select line as n from shop.sums with no data",
            "alter table shop.lines disable trigger all",
            "alter table shop.orders drop column note",
            "alter table shop.orders add column note text",
            "alter table shop.lines drop column line cascade",
            "alter table shop.lines add column line int",
            "create index orders_note on shop.orders (note)",
            "create materialized view shop.sums as select sum(line) as line from shop.lines",
            "create materialized view shop.copy as select line as n from shop.sums",
            "create materialized view shop.void as select line as n from shop.sums with no data",
        )
        found = plan_between(project, shop.target, have, want, progress=silent)
        run(have, *(statement.sql for statement in found.plan.statements))
        again = plan_between(project, shop.target, have, want, progress=silent)
    # 15 qualifies columns that 18 does not
    said = [
        " ".join(statement.sql.replace("sums.line", "line").split()) for statement in found.plan.statements
    ]
    assert said == [
        "CREATE MATERIALIZED VIEW shop.copy AS SELECT line AS n FROM shop.sums WITH DATA",
        "CREATE MATERIALIZED VIEW shop.void AS SELECT line AS n FROM shop.sums WITH NO DATA",
        "COMMENT ON CAST (shop.mood AS integer) IS 'mood'",
    ]
    disabled = (
        'constraint shop.lines.line_of: triggers is the default, expected [["shop", "lines", "disable"]]'
    )
    for plan in (found, again):
        assert list(map(str, plan.apart)) == [disabled]
    assert again.plan.statements == ()
    assert again.plan.notes == (
        f"column order of shop.lines is line, order_id; {again.second} has order_id, line",
    )


def test_what_was_left_half_done_is_refused(tmp_path: Path, server: DevServer) -> None:
    project = without_project(tmp_path, dev=server_url(server))
    with server.clone(None) as have, server.clone(None) as want:
        run(have, BOTH)
        run(
            want,
            BOTH,
            "update pg_index set indisvalid = false "
            "where indexrelid in ('shop.orders_note'::regclass, 'shop.orders_pkey'::regclass)",
            "update pg_inherits set inhdetachpending = true where inhrelid = 'shop.monday'::regclass",
        )
        with pytest.raises(HalfDoneError) as caught:
            plan_between(project, everything(project), have, want, progress=silent)
    assert str(caught.value) == (
        f"{shown(want)} holds what was left half-done: index shop.orders_note is invalid\n"
        "  table shop.monday is being detached\n"
        "  the index of constraint shop.orders.orders_pkey is invalid\n"
        "hint: end or undo it first: drop index concurrently shop.orders_note; "
        "alter table shop.days detach partition shop.monday finalize; "
        "reindex index concurrently shop.orders_pkey;"
    )


def test_a_copy_by_a_plain_role_cannot_hold_its_namesake(server: DevServer) -> None:
    with server.clone(None) as conninfo:
        make_role(conninfo, "shop_plain", "login")
        plain = as_role(conninfo, "shop_plain")
        assert as_runner(plain, frozenset({"other"}), origin="shop", where="dev") == plain
        with pytest.raises(CopyError) as caught:
            as_runner(plain, frozenset({"shop_plain"}), origin="shop at db:5432", where="PostgreSQL 18")
    assert str(caught.value) == (
        "the schema of shop at db:5432 cannot be copied to PostgreSQL 18\n"
        "  it names role shop_plain, which is our own on the dev server\n"
        'hint: choose a dev server on which we are superuser, such as: dev = "embedded"'
    )


@pytest.mark.parametrize("is_one_server", [True, False], ids=["one server", "two servers"])
def test_versions_of_extensions_are_a_note_between_majors(
    tmp_path: Path, servers: tuple[DevServer, ...], *, is_one_server: bool
) -> None:
    new, old = servers[:2]
    project = without_project(tmp_path, dev=server_url(new))
    with (new if is_one_server else old).clone(None) as have, new.clone(None) as want:
        run(have, "create extension citext version '1.6'" if is_one_server else "create extension citext")
        run(want, "create extension citext")
        found = plan_between(project, everything(project), have, want, progress=silent)
    said = ('extension citext: version is "1.6", expected "1.8"',)
    assert (tuple(map(str, found.apart)), found.plan.notes) == ((said, ()) if is_one_server else ((), said))
