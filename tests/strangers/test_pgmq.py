"""PGMQ in a live database beside an application: adopted as managed, and as somebody else's."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.strangers.live import Live, live_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer

pytestmark = pytest.mark.slow

APPLICATION: Final = """
create schema app;
create table app.orders (
  order_id bigint generated always as identity primary key,
  customer text not null,
  placed_at timestamptz not null default now()
);
create function app.place_order(p_customer text) returns bigint language plpgsql as $$
declare v_id bigint;
begin
  insert into app.orders (customer) values (p_customer) returning order_id into v_id;
  perform pgmq.send('orders', jsonb_build_object('order_id', v_id));
  return v_id;
end $$;
create view app.backlog as select m.queue_length from pgmq.metrics('orders') as m;
"""
# Queues as met in production: plain, mixed case, unlogged; messages that wait, are read, archived, deleted.
QUEUES: Final = """
select pgmq.create('orders');
select pgmq.create('Mixed');
select pgmq.create_unlogged('fast');
select app.place_order('c' || n) from generate_series(1, 20) as n;
select pgmq.send('Mixed', '{"delayed": true}', 3600);
select pgmq.send('fast', '[1, 2]');
select pgmq.read('orders', 600, 3);
select pgmq.archive('orders', 4);
select pgmq.delete('orders', 5::bigint);
select pgmq.enable_notify_insert('orders', 1000);
select pgmq.create_fifo_index('orders');
select pgmq.bind_topic('order.*', 'orders');
"""
TABLES: Final = tuple(f"table pgmq.{kind}_{queue}" for kind in "aq" for queue in ("fast", "mixed", "orders"))
IGNORE: Final = ("--ignore", "pgmq.q_*", "--ignore", "pgmq.a_*")
PGMQ: Final = "--schema=pgmq"


@pytest.fixture
def live(server: DevServer, tmp_path: Path) -> Iterator[Live]:
    """An application that uses queues, with orders and messages."""
    with live_database(server, tmp_path / "live", sql=[pgmq_sql(), APPLICATION, QUEUES]) as made:
        yield made


def test_pgmq_is_adopted_with_its_queues_left_out(live: Live) -> None:
    printed = live.adopt(*IGNORE)
    _, _, ignored = printed.partition("ignored:\n")
    assert ignored.splitlines()[:6] == [f"  {table}" for table in TABLES]
    assert live.undrifted()["ignored"] == list(TABLES)
    assert (live.root / "schema/app/pgmq/functions/send.sql").is_file()
    assert not any("q_" in path.name for path in (live.root / "schema").rglob("*/tables/*.sql"))
    change_table_and_function(live, folder="schema/app/app")


def test_an_application_is_adopted_without_the_pgmq_that_it_requires(live: Live) -> None:
    printed = live.adopt("--requires", "pgmq", "--schema", "app")
    assert "of schema pgmq: not managed" in printed
    files = sorted(
        path.relative_to(live.root / "schema/app").as_posix()
        for path in (live.root / "schema/app").rglob("*.sql")
    )
    assert files == [
        "functions/place_order.sql",
        "schema.sql",
        "tables/orders.sql",
        "views/backlog.sql",
    ]
    change_table_and_function(live, folder="schema/app")


def change_table_and_function(live: Live, *, folder: str) -> None:
    """Edit the application's schema, build and apply; no queue may notice."""
    live.on("baseline")
    schema, rows = live.dump(PGMQ), live.rows(PGMQ)
    assert len(rows["pgmq.q_orders"]) == 18
    edit(
        live, f"{folder}/tables/orders.sql", "customer text not null", "customer text not null,\n  note text"
    )
    edit(live, f"{folder}/functions/place_order.sql", "'order_id', v_id", "'order_id', v_id, 'note', null")
    live.ok("build", "add_note")
    assert "_add_note.sql (" in live.on("apply")
    live.undrifted()
    assert live.dump(PGMQ) == schema
    assert live.rows(PGMQ) == rows
    assert live.query("select app.place_order('new')") == ["21"]
    assert live.query("select message from pgmq.q_orders order by msg_id desc limit 1") == [
        '{"note": null, "order_id": 21}'
    ]
    assert live.query("select queue_length from app.backlog") == ["19"]


def edit(live: Live, name: str, old: str, new: str) -> None:
    """Replace a text in a file of the project, where it stands once."""
    text = (live.root / name).read_text(encoding="utf-8")
    assert text.count(old) == 1, text
    live.write(name, text.replace(old, new))


def pgmq_sql() -> str:
    """PGMQ as its Python package carries it."""
    package = importlib.metadata.distribution("pgmq")
    return Path(str(package.locate_file("pgmq/sql/pgmq.sql"))).read_text(encoding="utf-8")
