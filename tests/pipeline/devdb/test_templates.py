"""Templates are filled once, seen whole or not at all, and bounded in number."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb import DevServer, open_dev
from pgsluice.pipeline.devdb.templates import KEPT, PINNED

from .processes import actor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EMBEDDED = "embedded"


@pytest.fixture
def server(root: Path) -> Iterator[DevServer]:
    with open_dev(EMBEDDED, root=root) as opened:
        yield opened


def creates(table: str) -> Callable[[str], None]:
    """A filler that makes one table."""

    def fill(conninfo: str) -> None:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute(psycopg.sql.SQL("create table {} (n int)").format(psycopg.sql.Identifier(table)))

    return fill


def refuses(_conninfo: str) -> None:
    """A filler that must not be called."""
    pytest.fail("filled again")


def tables(server: DevServer, template: str | None) -> list[str]:
    with server.clone(template) as conninfo, psycopg.connect(conninfo) as conn:
        rows = conn.execute("select tablename::text from pg_tables where schemaname = 'public' order by 1")
        return [row[0] for row in rows]


def databases(server: DevServer, pattern: str) -> list[str]:
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        found = conn.execute(
            "select datname::text from pg_database where datname ~ %s and datname <> current_database()",
            [pattern],
        )
        return [row[0] for row in found]


def test_a_template_is_filled_once_and_cloned_from_then_on(server: DevServer) -> None:
    template = server.template("one", parent=None, fill=creates("a"))
    assert server.template("one", parent=None, fill=refuses) == template
    assert tables(server, template) == ["a"]
    assert tables(server, None) == []


def test_another_command_finds_the_template(root: Path, spec: str) -> None:
    with open_dev(spec, root=root) as server:
        template = server.template("one", parent=None, fill=creates("a"))
    with open_dev(spec, root=root) as server:
        assert server.template("one", parent=None, fill=refuses) == template


def test_a_template_starts_from_its_parent_and_is_named_after_it(server: DevServer) -> None:
    first = server.template("base", parent=None, fill=creates("a"))
    second = server.template("other", parent=None, fill=creates("b"))
    on_first = server.template("top", parent=first, fill=creates("c"))
    on_second = server.template("top", parent=second, fill=creates("c"))
    assert on_first != on_second
    assert tables(server, on_first) == ["a", "c"]
    assert tables(server, on_second) == ["b", "c"]


def test_an_empty_database_has_utf8_locale_c_and_the_public_schema_as_shipped(root: Path, spec: str) -> None:
    with (
        open_dev(spec, root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        row = conn.execute(
            "select pg_encoding_to_char(encoding), datcollate, datctype, datlocprovider::text"
            " from pg_database where datname = current_database()"
        ).fetchone()
        assert row == ("UTF8", "C", "C", "c")
        schemas = conn.execute(
            "select nspname::text, nspowner::regrole::text from pg_namespace"
            " where nspname !~ '^(pg_|information)'"
        ).fetchall()
        assert schemas == [("public", "pg_database_owner")]


def test_two_processes_fill_a_template_once(root: Path, spec: str) -> None:
    with actor("fill", spec, root, "shared") as one, actor("fill", spec, root, "shared") as two:
        for each in (one, two):
            each.hears("open")
        one.go()
        one.hears("filling")
        two.go()
        with open_dev(spec, root=root) as watcher:
            wait_for_advisory_waiter(watcher)
        one.go()
        assert one.hears("done")["name"] == two.hears("done")["name"]


def wait_for_advisory_waiter(server: DevServer) -> None:
    """Wait until one session waits for the lock of a template."""
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    with server.clone(None) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        for _ in range(10_000):
            if conn.execute(waiting).fetchone() == (1,):
                return
    pytest.fail("the second process does not wait for the first")


def test_a_half_filled_template_of_a_killed_process_is_never_seen(root: Path, spec: str) -> None:
    with actor("fill", spec, root, "half") as command:
        command.hears("open")
        command.go()
        draft = command.hears("filling")["name"]
        command.kill()
    with open_dev(spec, root=root) as server:
        template = server.template("half", parent=None, fill=creates("mine"))
        assert template != draft
        assert tables(server, template) == ["mine"]
    with open_dev(spec, root=root) as server:
        assert databases(server, draft) == []


def test_a_process_takes_over_from_one_that_is_killed_while_filling(root: Path) -> None:
    with actor("fill", EMBEDDED, root, "half") as one, actor("fill", EMBEDDED, root, "half") as two:
        for each in (one, two):
            each.hears("open")
        one.go()
        one.hears("filling")
        two.go()
        with open_dev(EMBEDDED, root=root) as watcher:
            wait_for_advisory_waiter(watcher)
        one.kill()
        two.hears("filling")
        two.go()
        two.hears("done")


def test_a_filler_s_error_comes_through_and_leaves_nothing(server: DevServer) -> None:
    def fails(conninfo: str) -> None:
        creates("a")(conninfo)
        raise InputError("the file is wrong")

    with pytest.raises(InputError, match=r"^the file is wrong$"):
        server.template("bad", parent=None, fill=fails)
    assert databases(server, "pgsluice_") == []


def test_a_driver_s_error_in_a_filler_comes_through_as_it_is(server: DevServer) -> None:
    def fails(conninfo: str) -> None:
        with psycopg.connect(conninfo) as conn:
            conn.execute("set lock_timeout = 1; select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(psycopg.OperationalError):
        server.template("bad", parent=None, fill=fails)
    assert tables(server, server.template("bad", parent=None, fill=creates("a"))) == ["a"]


def test_a_session_that_a_filler_leaves_open_is_ended(server: DevServer) -> None:
    left: list[psycopg.Connection[tuple[object, ...]]] = []

    def fill(conninfo: str) -> None:
        conn = psycopg.connect(conninfo, autocommit=True)
        conn.execute("create table a (n int)")
        left.append(conn)

    assert tables(server, server.template("open", parent=None, fill=fill)) == ["a"]
    left[0].close()


def test_two_threads_fill_a_template_once(server: DevServer) -> None:
    calls: list[str] = []
    barrier = threading.Barrier(2, timeout=30)

    def fill(conninfo: str) -> None:
        calls.append(conninfo)
        creates("a")(conninfo)

    def get() -> str:
        barrier.wait()
        return server.template("threads", parent=None, fill=fill)

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.submit(get), pool.submit(get)
        assert one.result(timeout=30) == two.result(timeout=30)
    assert len(calls) == 1


def test_a_filler_may_ask_for_another_template(server: DevServer) -> None:
    def fill(conninfo: str) -> None:
        assert tables(server, server.template("inner", parent=None, fill=creates("b"))) == ["b"]
        creates("a")(conninfo)

    assert tables(server, server.template("outer", parent=None, fill=fill)) == ["a"]


def test_the_least_lately_used_templates_are_dropped_beyond_the_bound(root: Path) -> None:
    with open_dev(EMBEDDED, root=root) as server:
        old = [server.template(f"old {n}", parent=None, fill=creates("a")) for n in range(KEPT)]
    with open_dev(EMBEDDED, root=root) as server:
        used = server.template("old 0", parent=None, fill=refuses)
        new = server.template("new", parent=None, fill=creates("a"))
        assert set(databases(server, "^pgsluice_template_")) == {*old, new} - {old[1]}
    with open_dev(EMBEDDED, root=root) as server:
        assert server.template("old 0", parent=None, fill=refuses) == used


def test_a_template_in_use_is_not_dropped_and_the_number_stays_bounded(root: Path) -> None:
    with open_dev(EMBEDDED, root=root) as holder:
        held = holder.template("held", parent=None, fill=creates("a"))
        with open_dev(EMBEDDED, root=root) as other:
            for n in range(KEPT + PINNED + 2):
                other.template(f"other {n}", parent=None, fill=creates("a"))
            assert len(databases(other, "^pgsluice_template_")) <= KEPT + PINNED
        assert tables(holder, held) == ["a"]
    with open_dev(EMBEDDED, root=root) as server:
        assert len(databases(server, "^pgsluice_template_")) == KEPT


def test_a_template_that_is_gone_is_an_error_that_names_it(server: DevServer) -> None:
    expected = "cannot create a scratch database from gone"
    with pytest.raises(UnreachableError, match=expected), server.clone("gone"):
        pytest.fail("cloned")


def test_a_scratch_database_is_dropped_though_sessions_are_open_and_the_block_fails(
    server: DevServer,
) -> None:
    left: list[psycopg.Connection[tuple[object, ...]]] = []

    def fail() -> None:
        with server.clone(None) as conninfo:
            left.append(psycopg.connect(conninfo))
            raise RuntimeError("of mine")

    with pytest.raises(RuntimeError, match="of mine"):
        fail()
    assert databases(server, "pgsluice_scratch_") == []
    left[0].close()


def test_scratch_databases_of_one_template_are_independent(server: DevServer) -> None:
    template = server.template("one", parent=None, fill=creates("a"))
    with server.clone(template) as one, server.clone(template) as two:
        creates("b")(one)
        with psycopg.connect(two) as conn:
            assert conn.execute("select to_regclass('public.b')").fetchone() == (None,)
