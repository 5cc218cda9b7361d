"""Connections to a live database: what they are called, what they set, how long they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.live.database import database_url, open_database, shown, words
from tests.e2e.applying import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb import DevServer


@pytest.fixture
def url(server: DevServer) -> Iterator[str]:
    """An empty database on each server, without the settings of a scratch server."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    with server.clone(None) as conninfo:
        parts = conninfo_to_dict(conninfo)
        yield make_conninfo("", **{key: parts[key] for key in PLACE})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (
            "postgresql://deploy:secret@db.example.com:6432/app?sslmode=require",
            "app at db.example.com:6432 as deploy",
        ),
        ("host=/run/pg dbname=app password=secret", "app at /run/pg"),
        ("service=live", "the default database of service live"),
        ("", "the default database at the local socket"),
    ],
)
def test_database_is_shown_without_its_password(given: str, name: str) -> None:
    assert shown(given) == name
    assert "secret" not in words(given)


@pytest.mark.parametrize(
    "given", ["postgresql://u:p@rt@db/app", "postgresql://u:pw@[half", "host=db port=x", "no sense"]
)
def test_broken_url_is_not_repeated(given: str) -> None:
    with pytest.raises(InputError) as caught:
        database_url(given)
    assert str(caught.value) == (
        "the database's URL is not valid\n"
        "hint: --database postgresql://deploy@db.example.com/app;"
        " in a password @ is written %40, / is %2F, : is %3A"
    )


def test_a_name_that_is_no_url_is_taken_for_a_database_here() -> None:
    with pytest.raises(InputError) as caught:
        database_url("shop-2", option="--from ")
    assert caught.value.hint == "--from postgresql:///shop-2, if that is the name of a database here"


def test_settings_of_role_and_database_do_not_reach_the_session(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        database = sql.Identifier(conn.info.dbname)
        for change in ("statement_timeout = '1s'", "search_path = pg_catalog", "idle_session_timeout = '1s'"):
            conn.execute(sql.SQL("alter database {} set ").format(database) + sql.SQL(change))
    with open_database(url) as conn:
        names = (
            "statement_timeout",
            "search_path",
            "idle_session_timeout",
            "application_name",
            "lock_timeout",
        )
        found = [conn.execute("select current_setting(%s)", [name]).fetchone() for name in names]
    assert found == [("0",), ('"$user", public',), ("0",), ("pgsluice",), ("0",)]


def test_lost_connection_is_told(url: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        lose(url)
    assert str(caught.value) == (
        f"the connection to {shown(url)} was lost\n"
        "  terminating connection due to administrator command\n"
        "hint: run the command again"
    )


def test_server_that_refuses_is_asked_again_twice(url: str) -> None:
    said: list[str] = []
    missing = url.replace("dbname=", "dbname=no_")
    with (
        pytest.raises(UnreachableError, match="cannot connect to no_"),
        open_database(missing, progress=said.append),
    ):
        pass
    assert [line.startswith(f"{shown(missing)} does not answer; trying again in ") for line in said] == [
        True,
        True,
    ]


def lose(url: str) -> None:
    """Work on a connection that somebody ends."""
    with psycopg.connect(url, autocommit=True) as other, open_database(url) as conn:
        other.execute("select pg_terminate_backend(%s)", [conn.info.backend_pid])
        conn.execute("select 1")
