"""Drift: a live database against its migrations, on servers of one major and of two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.live import catalog
from pgsluice.pipeline.live.catalog import find_runner, open_reader
from pgsluice.pipeline.live.database import shown
from pgsluice.pipeline.live.drift import applied, find_drift, ledger_notes, servers_for, up_to
from pgsluice.pipeline.live.ledger import ensure_ledger, read_ledger, record_baseline
from tests.pipeline.live.shop import SHOP, Shop, as_role, make_role, run, silent

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb import DevServer

RICH: Final = Path(__file__).parents[2] / "cases" / "schema_from_nothing_rich" / "after.sql"
BY_HAND: Final = (
    "alter table shop.orders add column nick text",
    "drop index shop.orders_state_idx",
    "create or replace function shop.touch() returns trigger language plpgsql as $$\n"
    "begin\n  new.note := 'changed';\n  return new;\nend\n$$",
    "grant update on shop.orders to shop_reader",
    "alter table shop.orders disable row level security",
    "alter table shop.orders disable trigger orders_touch",
    "alter table shop.orders alter column note set default 'nothing'",
    "alter view shop.totals owner to shop_other",
    "comment on table shop.orders is 'Orders'",
    "create or replace view shop.open_orders as select order_id, state from shop.orders where state = 'new'",
    "alter policy orders_all on shop.orders using (total > 1)",
    "create table shop.extra (extra_id bigint primary key)",
)
NAMING_THE_RUNNER: Final = """\
alter schema shop owner to shop_owner;
alter table shop.orders owner to shop_owner;
alter view shop.totals owner to shop_owner;
grant all on shop.totals to shop_owner;
grant select, update on shop.open_orders to shop_owner;
grant select (note) on shop.orders to shop_owner;
grant execute on function shop.touch() to shop_owner;
alter default privileges for role shop_owner in schema shop grant select on tables to shop_reader;
"""
LINES: Final = """\
create type shop.mood as enum ('fine');
create table shop.lines (line int, order_id bigint constraint line_of references shop.orders);
create materialized view shop.sums as select sum(line) as line from shop.lines;
"""
# What pg_dump does not print, or prints alike for both, beside a change of what servers spell in two ways.
UNDUMPED: Final = (
    "alter table shop.lines disable trigger all",
    "alter table shop.lines drop column line cascade",
    "alter table shop.lines add column line int",
    "create materialized view shop.sums as select sum(line) as line from shop.lines with no data",
    "create cast (shop.mood as int) with inout",
    "create index orders_note_idx on shop.orders (note)",
    "update pg_index set indisvalid = false where indexrelid in ('shop.orders_note_idx'::regclass, "
    "'shop.orders_state_idx'::regclass)",
    "create or replace view shop.open_orders as select order_id, state from shop.orders where state = 'new'",
)
NAMED: Final = {
    ("column shop.orders.nick", None),
    ("index shop.orders_state_idx", None),
    ("function shop.touch()", "definition"),
    ("table shop.orders", "grants"),
    ("table shop.orders", "row_security"),
    ("trigger shop.orders.orders_touch", "enabled"),
    ("default shop.orders.note", "expression"),
    ("view shop.totals", "owner"),
    ("table shop.orders", "comment"),
    ("view shop.open_orders", "definition"),
    ("policy shop.orders.orders_all", "using"),
    ("table shop.extra", None),
    ("column shop.extra.extra_id", None),
    ("constraint shop.extra.extra_pkey", None),
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The shop with its first migration."""
    made = Shop(tmp_path)
    made.write(m0001_shop=SHOP)
    return made


@pytest.mark.parametrize("dev_place", [0, 1])
@pytest.mark.parametrize("live_place", [0, 1])
def test_what_the_migrations_made_has_not_drifted(
    tmp_path: Path, servers: tuple[DevServer, ...], live_place: int, dev_place: int
) -> None:
    if max(live_place, dev_place) >= len(servers):
        pytest.fail("needs an installed server beside the embedded one")
    rich = Shop(tmp_path, manages=("*",))
    rich.write(m0001_rich=RICH.read_text(encoding="utf-8"), m0002_shop=SHOP)
    with rich.database(servers[live_place]) as conninfo:
        found = rich.compare(conninfo, servers[dev_place])
    assert found.differences == ()
    assert not any("spelling" in note for note in found.notes)


@pytest.mark.parametrize("dev_place", [0, 1])
@pytest.mark.parametrize("live_place", [0, 1])
def test_changes_by_hand_are_named_and_nothing_else(
    shop: Shop, servers: tuple[DevServer, ...], live_place: int, dev_place: int
) -> None:
    with shop.database(servers[live_place], *BY_HAND[:7]) as conninfo:
        make_role(conninfo, "shop_other")
        run(conninfo, *BY_HAND[7:])
        found = shop.compare(conninfo, servers[dev_place])
    assert {(str(one.address), one.facet) for one in found.differences} == NAMED
    by_facet = {(str(one.address), one.facet): one for one in found.differences}
    owner = by_facet["view shop.totals", "owner"]
    assert (owner.before, owner.after) == (None, "shop_other")


@pytest.mark.parametrize("dev_place", [0, 1], ids=["dev 18", "dev 15"])
@pytest.mark.parametrize("live_place", [0, 1], ids=["live 18", "live 15"])
def test_what_no_dump_carries_is_named_on_any_server(
    shop: Shop, servers: tuple[DevServer, ...], live_place: int, dev_place: int
) -> None:
    shop.write(m0002_lines=LINES)
    with shop.database(servers[live_place], *UNDUMPED) as conninfo:
        found = shop.compare(conninfo, servers[dev_place])
    assert [str(one) for one in found.differences if one.address.kind != "view"] == [
        "cast (shop.mood as integer): not expected",
        'constraint shop.lines.line_of: triggers is [["shop", "lines", "disable"]], expected the default',
        "index shop.orders_note_idx: not expected",
        "index shop.orders_state_idx: invalid is true, expected the default",
        "materialized view shop.sums: unpopulated is true, expected the default",
    ]
    assert found.notes == (
        "column order of shop.lines is order_id, line; the migrations have line, order_id",
    )


def test_any_role_may_look_and_owners_are_the_ones_of_most_objects(shop: Shop, server: DevServer) -> None:
    with server.clone(None) as conninfo:
        make_role(conninfo, "shop_owner", "superuser login")
        make_role(conninfo, "shop_looker", "login")
        make_role(conninfo, "shop_reader")
        run(as_role(conninfo, "shop_owner"), SHOP)
        for role in ("shop_owner", "shop_looker"):
            assert shop.compare(as_role(conninfo, role), server).differences == ()
        assert shop.read(as_role(conninfo, "shop_looker")).snapshot.runner == "shop_owner"


def test_migrations_may_name_the_role_that_runs_them(tmp_path: Path, server: DevServer) -> None:
    shop = Shop(tmp_path)
    shop.write(m0001_shop=SHOP, m0002_owners=NAMING_THE_RUNNER)
    with server.clone(None) as conninfo:
        for role in ("shop_owner", "shop_reader", "shop_other"):
            make_role(conninfo, role, "superuser login" if role == "shop_owner" else "nologin")
        run(as_role(conninfo, "shop_owner"), SHOP, NAMING_THE_RUNNER)
        assert shop.compare(conninfo, server).differences == ()
        run(
            conninfo,
            "revoke select (note) on shop.orders from shop_owner",
            "alter view shop.totals owner to shop_other",
            "revoke update on shop.open_orders from shop_owner",
        )
        found = shop.compare(conninfo, server)
    assert [(str(one.address), one.facet) for one in found.differences] == [
        ("column shop.orders.note", "grants"),
        ("view shop.open_orders", "grants"),
        ("view shop.totals", "owner"),
    ]


def test_a_role_without_rights_to_tables_gets_a_caveat_on_another_major(
    shop: Shop, servers: tuple[DevServer, ...]
) -> None:
    embedded, local = servers[:2]
    with shop.database(local) as conninfo:
        make_role(conninfo, "shop_looker", "login")
        found = shop.compare(as_role(conninfo, "shop_looker"), embedded)
    assert [str(one.address) for one in found.differences] == ["view shop.open_orders", "view shop.totals"]
    (note,) = found.notes
    assert "some differences may be of spelling alone (pg_dump cannot read the schema of" in note
    assert "permission denied" in note


def test_what_stays_out_is_listed(tmp_path: Path, server: DevServer) -> None:
    shop = Shop(tmp_path, ignore=("shop.scratch_*",))
    shop.write(m0001_shop=SHOP)
    extra = (
        "create table shop.scratch_1 (id int)",
        "create table shop.scratch_2 (id int)",
        "create schema audit create table log (id int)",
        "create extension citext schema shop",
        "create publication everything",
    )
    with shop.database(server, *extra) as conninfo:
        live = shop.read(conninfo)
        assert shop.compare(conninfo, server).differences == ()
    outside = {one.holder: one.names for one in live.outside}
    assert live.snapshot.ignored == ("table shop.scratch_1", "table shop.scratch_2")
    assert outside["schema audit"] == ("table audit.log",)
    assert {"extension citext", "publication everything"} <= set(outside[""])
    assert len(outside["extension citext"]) > 20
    assert set(outside) == {"", "schema audit", "extension citext"}


def test_ignored_parts_of_a_table_are_listed(tmp_path: Path, server: DevServer) -> None:
    shop = Shop(tmp_path, ignore=("shop.orders.old_*", "shop.old_*"))
    shop.write(m0001_shop=SHOP)
    changes = (
        "alter table shop.orders add column old_note text not null default 'none'",
        "create index old_orders on shop.orders (note)",
        "create table shop.old_orders_2 (order_id int primary key)",
    )
    with shop.database(server, *changes) as conninfo:
        live = shop.read(conninfo)
        assert shop.compare(conninfo, server).differences == ()
    assert live.snapshot.ignored == (
        "column shop.orders.old_note",
        "default shop.orders.old_note",
        "index shop.old_orders",
        "table shop.old_orders_2",
    )


def test_a_role_that_may_not_call_what_prints_is_told_so(shop: Shop, server: DevServer) -> None:
    with shop.database(server, "revoke execute on function pg_get_viewdef(oid) from public") as conninfo:
        make_role(conninfo, "shop_looker", "login")
        looker = as_role(conninfo, "shop_looker")
        with pytest.raises(UnreachableError) as caught:
            shop.read(looker)
    assert str(caught.value) == (
        f"cannot read the catalog of {shown(looker)}\n"
        "  permission denied for function pg_get_viewdef (SQLSTATE 42501)\n"
        "hint: grant our role what is denied, or connect as a superuser"
    )


def test_text_that_is_none_is_told_as_that(shop: Shop, server: DevServer) -> None:
    name = "shop_bytes"
    with server.clone(None) as conninfo:
        run(
            conninfo,
            f"drop database if exists {name}",
            f"create database {name} template template0 encoding 'SQL_ASCII' locale 'C'",
        )
        place = make_conninfo(conninfo, dbname=name)
        try:
            with psycopg.connect(place, client_encoding="SQL_ASCII", autocommit=True) as conn:
                conn.execute(b"create schema shop; comment on schema shop is 'caf\xe9'")
            with pytest.raises(UnreachableError) as caught:
                shop.read(place)
        finally:
            run(conninfo, f"drop database {name}")
    assert str(caught.value).startswith(f"cannot read the catalog of {shown(place)}\n  invalid byte sequence")
    assert caught.value.hint == (
        "a name, comment or definition there is no text of the database's encoding; mend it first"
    )


def test_the_table_of_atlas_is_no_drift(tmp_path: Path, server: DevServer) -> None:
    shop = Shop(tmp_path, manages=("*",))
    shop.write(m0001_shop=SHOP)
    table = (
        "create schema atlas_schema_revisions create table atlas_schema_revisions (version text primary key)"
    )
    with shop.database(server, table) as conninfo:
        assert shop.compare(conninfo, server).differences == ()


def test_only_what_the_ledger_has_is_compared(shop: Shop, server: DevServer) -> None:
    with shop.database(server) as conninfo:
        with psycopg.connect(conninfo) as conn:
            ensure_ledger(conn)
            record_baseline(conn, "shop", shop.history())
        shop.write(
            m0002_more="create table shop.more (id int);", m0003_most="create table shop.most (id int);"
        )
        found = find_drift(shop.project(server), shop.target, conninfo, progress=silent)
        ahead = find_drift(shop.project(server), shop.target, conninfo, to="0002", progress=silent)
    assert (found.differences, found.last) == ((), "0001_shop.sql")
    assert found.notes == ("pending: 0002_more.sql, 0003_most.sql",)
    assert [str(one) for one, _ in ahead.shown] == ["table shop.more: missing"]
    assert ahead.last == "0002_more.sql"


def test_what_the_ledger_says_beside_the_catalog_is_noted(shop: Shop, server: DevServer) -> None:
    shop.write(m0002_more="create table shop.more (id int);", m0003_most="create table shop.most (id int);")
    with shop.database(server) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        record_baseline(conn, "shop", shop.history())
        conn.execute(
            "update pgsluice.migrations set kind = 'applied', finished_at = null, statements_total = 3,"
            " statements_done = 1 where filename = '0003_most.sql'"
        )
        entries = read_ledger(conn, "shop")
    shop.write(m0001_shop=SHOP + "-- edited\n")
    (shop.target.migrations_dir / "0002_more.sql").unlink()
    assert ledger_notes(shop.history(), entries, "postgres") == (
        "0003_most.sql was applied in part, 1 of 3 statements: what it did shows as drift",
        "changed since they ran: 0001_shop.sql",
        "in the ledger and not in the folder: 0002_more.sql",
    )
    assert [one.filename for one in applied(shop.history(), entries)] == ["0001_shop.sql"]


def test_the_runner_is_who_applied_last_and_a_baseline_tells_nothing(shop: Shop, server: DevServer) -> None:
    with shop.database(server) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        record_baseline(conn, "shop", shop.history())
        baseline = read_ledger(conn, "shop")
        conn.execute("update pgsluice.migrations set kind = 'applied', applied_by = 'deploy'")
        ran = read_ledger(conn, "shop")
    assert find_runner((), "most") == ("most", frozenset())
    assert find_runner(baseline, "most") == ("most", frozenset())
    assert find_runner(ran, "most") == ("deploy", frozenset())
    assert find_runner((*baseline, *ran), "most") == ("deploy", frozenset({"most"}))


def test_objects_from_before_the_baseline_are_noted_not_listed(shop: Shop, server: DevServer) -> None:
    with shop.database(server) as conninfo:
        make_role(conninfo, "shop_deploy", "superuser login")
        with psycopg.connect(conninfo, autocommit=True) as conn:
            record_baseline(conn, "shop", shop.history())
            shop.write(m0002_more="create table shop.more (id int);")
            run(as_role(conninfo, "shop_deploy"), "create table shop.more (id int)")
            record_baseline(conn, "shop", shop.history()[1:])
            conn.execute(
                "update pgsluice.migrations set kind = 'applied', applied_by = 'shop_deploy'"
                " where filename = '0002_more.sql'"
            )
        found = shop.compare(conninfo, server)
    assert found.differences == ()
    assert found.notes == ("5 objects belong to pgsluice_dev, from before migrations ran as shop_deploy",)


def test_an_unreadable_ledger_is_noted(shop: Shop, server: DevServer) -> None:
    with shop.database(server) as conninfo:
        make_role(conninfo, "shop_looker", "login")
        with psycopg.connect(conninfo, autocommit=True) as conn:
            record_baseline(conn, "shop", shop.history())
        live = shop.read(as_role(conninfo, "shop_looker"))
    assert live.entries is None
    assert ledger_notes(shop.history(), None, "postgres") == (
        "our role may not read pgsluice.migrations: compared with all migrations, as the ones of postgres",
    )


def test_an_unknown_version_is_refused(shop: Shop) -> None:
    with pytest.raises(InputError) as caught:
        up_to(shop.history(), "0007")
    assert str(caught.value) == "no migration has version 0007\nhint: the last versions are 0001"


def test_reading_writes_nothing(shop: Shop, server: DevServer) -> None:
    with shop.database(server) as conninfo:
        with pytest.raises(UnreachableError) as caught, open_reader(conninfo, progress=silent) as conn:
            conn.execute("create table shop.written (id int)")
        assert "cannot execute CREATE TABLE in a read-only transaction" in str(caught.value)
        assert "cannot read the catalog of pgsluice_scratch" in str(caught.value)


def test_a_stronger_lock_is_not_waited_for_long(
    shop: Shop, server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "LOCK_TIMEOUT_S", 0.1)
    with shop.database(server) as conninfo, psycopg.connect(conninfo) as holder:
        holder.execute("lock table shop.orders in access exclusive mode")
        with pytest.raises(UnreachableError) as caught:
            shop.read(conninfo)
    assert "hint: another session holds a stronger lock, such as a running migration" in str(caught.value)


def test_a_server_of_the_databases_major_comes_first(shop: Shop, servers: tuple[DevServer, ...]) -> None:
    embedded, local = servers[:2]
    project = shop.project(embedded)
    assert servers_for(project, embedded.major) == (project.dev,)
    assert servers_for(project, local.major) == (f"local:{local.bin_dir}", project.dev)
    assert servers_for(project, 99) == (project.dev,)
