"""Changes by hand that leave no trace in a definition, each seen as what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.pipeline.snapshot import Address, Difference, compare, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer

SCHEMA: Final = """\
create extension hstore;
create schema shop;
create table shop.customers (customer_id int primary key, email text constraint email unique deferrable);
create table shop.orders (customer_id int constraint customer references shop.customers);
create table shop.days (day int not null) partition by range (day);
create table shop.monday partition of shop.days for values from (1) to (2);
create table shop.slots (lo int, hi int, constraint apart exclude using gist (int4range(lo, hi) with &&));
create index orders_customer on shop.orders (customer_id);
create function shop.touch() returns trigger language plpgsql as 'begin return new; end';
create trigger touch before update on shop.orders for each row execute function shop.touch();
create materialized view shop.mails as select email from shop.customers;
create operator family shop.ops using btree;
"""
CHANGES: Final = {
    "alter table shop.orders disable trigger all": [
        'constraint shop.orders.customer: triggers is [["shop", "orders", "disable"]], expected the default',
        'trigger shop.orders.touch: enabled is "disable", expected the default',
    ],
    "alter table shop.customers disable trigger all": [
        'constraint shop.customers.email: triggers is [["shop", "customers", "disable"]], '
        "expected the default",
        'constraint shop.orders.customer: triggers is [["shop", "customers", "disable"]], '
        "expected the default",
    ],
    # what `detach partition concurrently` leaves when it is interrupted, and a build of an index that failed
    "update pg_inherits set inhdetachpending = true where inhrelid = 'shop.monday'::regclass": [
        "table shop.monday: detach_pending is true, expected the default"
    ],
    "update pg_index set indisvalid = false where indexrelid = 'shop.orders_customer'::regclass": [
        "index shop.orders_customer: invalid is true, expected the default"
    ],
    "alter table only shop.days add constraint days_pkey primary key (day)": [
        "constraint shop.days.days_pkey: not expected"
    ],
    "alter index shop.apart alter column 1 set statistics 7": [
        'constraint shop.slots.apart: index_statistics is {"1": 7}, expected the default'
    ],
    "alter function shop.touch() depends on extension hstore": [
        'function shop.touch(): extensions is ["hstore"], expected the default'
    ],
    "alter trigger touch on shop.orders depends on extension hstore": [
        'trigger shop.orders.touch: extensions is ["hstore"], expected the default'
    ],
    "alter index shop.orders_customer depends on extension hstore": [
        'index shop.orders_customer: extensions is ["hstore"], expected the default'
    ],
    "alter materialized view shop.mails depends on extension hstore": [
        'materialized view shop.mails: extensions is ["hstore"], expected the default'
    ],
    "alter materialized view shop.mails alter column email set storage external": [
        'materialized view shop.mails: column_settings is {"email": {"storage": "external"}}, '
        "expected the default"
    ],
    "alter operator family shop.ops using btree add operator 1 < (int4, int8)": [
        'operator family shop.ops.btree: operators is [[1, "<(integer,bigint)", null, "integer", "bigint"]], '
        "expected the default"
    ],
    "revoke usage on language plpgsql from public": [
        "extension member plpgsql.LANGUAGE plpgsql: not expected"
    ],
}


@pytest.fixture(scope="module")
def conn(server: DevServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with server.clone(None) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(SCHEMA)
        yield conn


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_hand_is_seen(conn: psycopg.Connection[tuple[object, ...]], change: str) -> None:
    before = read_snapshot(conn, manages=["*"])
    with conn.transaction(force_rollback=True):
        conn.execute("set local allow_system_table_mods = on")
        conn.execute(change.encode())
        found = list(map(str, compare(before, read_snapshot(conn, manages=["*"]))))
    assert [one for one in found if "days_day_not_null" not in one] == CHANGES[change]


def test_a_key_whose_partitions_have_none_is_seen(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    with conn.transaction(force_rollback=True):
        conn.execute("alter table shop.days add constraint days_pkey primary key (day)")
        before = read_snapshot(conn, manages=["*"])
        conn.execute("alter table shop.days drop constraint days_pkey")
        conn.execute("alter table only shop.days add constraint days_pkey primary key (day)")
        found = list(map(str, compare(before, read_snapshot(conn, manages=["*"]))))
    assert "constraint shop.days.days_pkey: index_invalid is true, expected the default" in found


def test_options_of_user_mappings_are_never_shown() -> None:
    address = Address("user mapping", ("shop", "PUBLIC"))
    secret = Difference(address, "options", {"password": "s3cret"}, {"password": "t0p", "user": "me"})
    assert str(secret) == (
        'user mapping shop.PUBLIC: options is {"password": "***", "user": "***"}, '
        'expected {"password": "***"}'
    )
    assert secret.shown_values == ({"password": "***"}, {"password": "***", "user": "***"})
