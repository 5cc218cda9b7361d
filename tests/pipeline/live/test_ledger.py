"""The ledger and its lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.history import Migration
from pgsluice.pipeline.live.ledger import (
    LOCK_KEY,
    LedgerState,
    content_digest,
    ensure_ledger,
    file_digest,
    ledger_lock,
    read_ledger,
    read_lock_holder,
    record_baseline,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

    Connection = psycopg.Connection[Any]

# What docs/reference/ledger.md says, for those who take the lock by hand.
KEY: int = 8099569364512629605


@pytest.fixture
def url(server: DevServer) -> Iterator[str]:
    """An empty database on each server."""
    with server.clone(None) as conninfo:
        yield conninfo


@pytest.fixture
def conn(url: str) -> Iterator[Connection]:
    """A connection to it."""
    with psycopg.connect(url, autocommit=True) as made:
        yield made


def test_digest_is_of_name_and_content_of_one_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "1_a.sql"
    path.write_bytes(b"create table a (id int);\n")
    # the first file's line of atlas.sum, whose running digest is that of the file alone
    assert file_digest(Migration("1", "a", path)) == "h1:yR5YhhlConz9KMyPn5i4/nsXn/pa3MhpA/OStARXGI0="
    assert content_digest("2_a.sql", b"create table a (id int);\n") != file_digest(Migration("1", "a", path))


def test_database_without_a_ledger_has_no_entries(conn: Connection) -> None:
    assert read_ledger(conn, "app") == ()


def test_ledger_is_made_once_and_kept(conn: Connection) -> None:
    with conn.transaction():
        ensure_ledger(conn)
        ensure_ledger(conn)
    ensure_ledger(conn)
    assert read_ledger(conn, "app") == ()


def test_ledger_fills_a_schema_that_was_made_for_it(conn: Connection) -> None:
    conn.execute("create schema pgsluice")
    ensure_ledger(conn)
    assert read_ledger(conn, "app") == ()


def test_ledger_that_a_role_may_not_make_is_named(conn: Connection, url: str) -> None:
    role = "pgsluice_test_ledger"
    conn.execute(f"create role {role} login".encode())
    try:
        with psycopg.connect(make_conninfo(url, user=role), autocommit=True) as ordinary:
            with pytest.raises(UnreachableError) as caught:
                ensure_ledger(ordinary)
            assert str(caught.value) == (
                f"role {role} may not create pgsluice.migrations in database {conn.info.dbname}\n"
                f'hint: create schema pgsluice authorization "{role}";'
            )
    finally:
        conn.execute(f"drop role {role}".encode())


def test_baseline_is_recorded_for_all_files_or_none(conn: Connection, tmp_path: Path) -> None:
    made = migrations(tmp_path, "10_b.sql", "9_a.sql")
    record_baseline(conn, "app", made)
    entries = read_ledger(conn, "app")
    assert [(one.filename, one.state, one.digest) for one in entries] == [
        (one.filename, LedgerState.BASELINE, file_digest(one)) for one in made
    ]
    assert read_ledger(conn, "other") == ()
    with pytest.raises(psycopg.errors.UniqueViolation):
        record_baseline(conn, "app", [*migrations(tmp_path, "9_z.sql"), *made])
    assert read_ledger(conn, "app") == entries


def test_lock_is_one_for_a_database_and_ends_with_its_session(conn: Connection, url: str) -> None:
    assert LOCK_KEY == KEY
    with psycopg.connect(url, autocommit=True, application_name="first") as first:
        with ledger_lock(first):
            holder = read_lock_holder(conn)
            assert holder is not None
            assert (holder.pid, holder.application_name) == (first.info.backend_pid, "first")
            with pytest.raises(UnreachableError, match="another run works on this database"):
                ledger_lock(conn, wait_s=0).__enter__()
            first.close()
        with ledger_lock(conn, wait_s=10):
            pass
    assert read_lock_holder(conn) is None


def test_lock_of_another_database_is_no_hindrance(conn: Connection, server: DevServer) -> None:
    with (
        server.clone(None) as other,
        psycopg.connect(other, autocommit=True) as there,
        ledger_lock(there),
        ledger_lock(conn, wait_s=0),
    ):
        assert read_lock_holder(conn) != read_lock_holder(there)


def migrations(folder: Path, *names: str) -> list[Migration]:
    """Files of these names."""
    for name in names:
        (folder / name).write_text(f"select '{name}';\n")
    return [Migration(name.split("_")[0], name.split("_")[1][:-4], folder / name) for name in names]
