"""A small shop: its migrations in a folder, and databases that have them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgsluice.config import Project, Target
from pgsluice.pipeline.history import Migration, read_history
from pgsluice.pipeline.live.catalog import LiveCatalog, open_reader, read_live
from pgsluice.pipeline.live.compare import Comparison, compare_live
from pgsluice.pipeline.live.drift import expected_catalog
from pgsluice.pipeline.replay import replay
from tests.conftest import server_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

SHOP: Final = """\
create schema shop;
create table shop.orders (
  order_id bigint generated always as identity primary key,
  note text default 'none',
  state text not null,
  total numeric(12, 2)
);
create index orders_state_idx on shop.orders (state);
alter table shop.orders enable row level security;
create policy orders_all on shop.orders to shop_reader using (total > 0);
create function shop.touch() returns trigger language plpgsql as $$
begin
  new.note := 'touched';
  return new;
end
$$;
create trigger orders_touch before update on shop.orders for each row execute function shop.touch();
create view shop.open_orders as select order_id, state from shop.orders where state in ('new', 'open');
create view shop.totals as select state, sum(total) as total from shop.orders group by state;
grant select on shop.orders to shop_reader;
comment on table shop.orders is 'Orders of customers';
"""
CREATE_ROLE: Final = "create role {} {}"


def silent(_text: str) -> None:
    """No progress."""


@dataclass(frozen=True, slots=True)
class Shop:
    """A project with one target, whose migrations are files of the test's choice."""

    root: Path
    manages: tuple[str, ...] = ("shop",)
    ignore: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    @property
    def target(self) -> Target:
        """Its target."""
        return Target(
            name="shop",
            schema_dir=self.root / "schema",
            migrations_dir=self.root / "migrations",
            templates_dir=self.root / "templates",
            manages=self.manages,
            ignore=self.ignore,
            requires=self.requires,
        )

    def project(self, server: DevServer) -> Project:
        """Its project, with that dev server."""
        return Project(root=self.root, dev=server_url(server), postgres=(15, 18), targets=(self.target,))

    def write(self, **migrations: str) -> None:
        """Write migrations; a name is the file's, without `m` before the version."""
        self.target.migrations_dir.mkdir(exist_ok=True)
        for name, text in migrations.items():
            (self.target.migrations_dir / f"{name[1:]}.sql").write_text(text, encoding="utf-8")

    def history(self) -> tuple[Migration, ...]:
        """Its migrations."""
        return read_history(self.target.migrations_dir)

    @contextmanager
    def database(self, server: DevServer, *changes: str) -> Iterator[str]:
        """A database with its migrations, and then changed by hand."""
        with server.clone(None) as conninfo:
            replay(conninfo, self.history(), root=self.root)
            run(conninfo, *changes)
            yield conninfo

    def read(self, conninfo: str) -> LiveCatalog:
        """What a database holds."""
        with open_reader(conninfo, progress=silent) as conn:
            return read_live(conn, conninfo, self.target)

    def compare(self, conninfo: str, server: DevServer) -> Comparison:
        """How a database differs from the migrations, replayed on `server`."""
        project = self.project(server)
        expected = expected_catalog(server, project, self.target, history=self.history())
        return compare_live(
            self.read(conninfo), expected, server, target=self.target, root=self.root, progress=silent
        )


def run(conninfo: str, *statements: str) -> None:
    """Run statements as the connection's role."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement.encode())


def make_role(conninfo: str, name: str, options: str = "nologin") -> None:
    """Make a role of the server, unless an earlier test did."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        if not conn.execute("select from pg_roles where rolname = %s", [name]).rowcount:
            conn.execute(sql.SQL(CREATE_ROLE).format(sql.Identifier(name), sql.SQL(options)))


def as_role(conninfo: str, name: str) -> str:
    """The same database for another role."""
    return make_conninfo(conninfo, user=name)
