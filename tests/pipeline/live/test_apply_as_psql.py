"""Files that `psql -1` runs: `apply` gives the same database, or says why it does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from psycopg.conninfo import make_conninfo

from pgsluice.pipeline.live.database import quoted_name, shown
from tests.conftest import EMBEDDED
from tests.e2e.applying import ONLINE, Deploy, deployed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

ISOLATION = "create table t as select current_setting('transaction_isolation') as i;\n"
MEMBER = """
create role {role}_owner nologin;
create role {role} login noinherit in role {role}_owner;
create schema s authorization {role}_owner;
create schema pgsluice authorization {role};
"""
NO_MEMBER = """
drop schema if exists s, pgsluice cascade;
drop role if exists {role}, {role}_owner, {role}_new, {role}_late;
"""
NOTHING = "rolled back, nothing of this file is in the database"


@pytest.fixture
def deploy(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project without migrations."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        yield made


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (f"set transaction isolation level serializable;\n{ISOLATION}", "serializable"),
        (f"set local transaction_isolation = 'repeatable read';\n{ISOLATION}", "repeatable read"),
        (f"begin isolation level serializable;\n{ISOLATION}commit;\n", "serializable"),
        (f"begin;\n{ISOLATION}commit;\n", "read committed"),
    ],
)
def test_transaction_has_the_modes_that_the_file_says(deploy: Deploy, text: str, level: str) -> None:
    deploy.add("0001_first.sql", text)
    deploy.ok("apply")
    assert deploy.rows("select i from t") == [level]


def test_transaction_that_may_not_write_takes_no_record(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", "begin read only;\nselect 1;\ncommit;\n")
    assert deploy.fails(3, "apply") == (
        f"error: the record in pgsluice.migrations of 0001_first.sql was refused; {NOTHING}\n"
        "  cannot execute INSERT in a read-only transaction (SQLSTATE 25006)\n"
        "  it ran as role pgsluice_dev\n"
        'hint: run it as the owner of what it changes, or grant that: grant <owner> to "pgsluice_dev";\n'
    )


def test_guards_of_pg_dump_are_passed_over(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", "\\restrict abc\ncreate table t (i int);\n\\unrestrict abc\n")
    assert deploy.ok("apply").startswith("applied 0001_first.sql (1 statement, ")
    assert deploy.states() == ["applied"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"create table t (i int); -- \0\ninsert into t values (1);\n", ":1: the file holds a NUL byte\n"),
        (
            b"\xef\xbb\xbfcreate table t (i int);\n",
            ":1: the file starts with a byte order mark\n"
            "hint: sed -i '1s/^\\xef\\xbb\\xbf//' migrations/app/0001_first.sql\n",
        ),
        (
            b"create table t (i int);\n\\echo done\n",
            ":2:1: \\echo is a command of psql, not SQL\n  \\echo done\n  ^\n"
            "hint: take the line out: migration files go to the server as they are\n",
        ),
        (
            b"create table t (i int);\ncopy t from stdin;\n1\n\\.\n",
            ":2: copy from stdin needs psql; a migration file holds no data\n"
            "hint: dump the schema alone: pg_dump --schema-only, or write the rows as insert statements\n",
        ),
    ],
)
def test_text_that_is_not_sql_is_refused_by_its_place(deploy: Deploy, content: bytes, error: str) -> None:
    (deploy.add("0001_first.sql", "")).write_bytes(content)
    deploy.record()
    assert deploy.fails(2, "apply") == f"error: migrations/app/0001_first.sql{error}"
    assert deploy.states() == ["pending"]


def test_file_name_that_is_no_text_is_refused(deploy: Deploy) -> None:
    deploy.add(os.fsdecode(b"0001_\xff.sql"), "select 1;\n")
    assert deploy.fails(2, "apply") == r"error: the file's name is not valid UTF-8: '0001_\udcff.sql'" + "\n"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "create table t (i int);\nvacuum t;\n",
            "it runs outside of a transaction only: put it into a migration of its own, whose first line is"
            " -- atlas:txmode none and whose second is empty",
        ),
        (
            "alter type e add value 'b';\ninsert into kept values ('b');\n",
            "put alter type … add value into a migration of its own, before this one",
        ),
    ],
)
def test_what_a_transaction_cannot_do_is_told_with_the_way(deploy: Deploy, text: str, hint: str) -> None:
    with deploy.session() as conn:
        conn.execute("create type e as enum ('a'); create table kept (value e)")
    deploy.add("0001_first.sql", text)
    error = deploy.fails(1, "apply")
    assert f"statement 2 of 2 failed; {NOTHING}\n" in error
    assert error.endswith(f"hint: {hint}\n")


def test_settings_of_the_database_do_not_change_what_is_written(deploy: Deploy) -> None:
    with deploy.session() as conn:
        for setting in ("standard_conforming_strings = off", "transform_null_equals = on", "xmlbinary = hex"):
            conn.execute(f"alter database {quoted_name(conn)} set {setting}".encode())
    deploy.add(
        "0001_first.sql", r"create table t as select 'a\nb' as a, null::text = 'x' is null as b;" + "\n"
    )
    deploy.ok("apply")
    assert deploy.rows("select a from t where b") == [r"a\nb"]


def test_database_that_fires_no_triggers_is_refused(deploy: Deploy) -> None:
    with deploy.session() as conn:
        name = quoted_name(conn)
        conn.execute(f"alter database {name} set session_replication_role = replica".encode())
    deploy.add("0001_first.sql", "select 1;\n")
    assert deploy.fails(3, "apply") == (
        f"error: {shown(deploy.url)} checks no foreign keys: session_replication_role is replica\n"
        f"hint: alter database {name} reset session_replication_role; it may also be set for the role,"
        " or in postgresql.conf\n"
    )


@pytest.mark.parametrize("start", ["", ONLINE])
def test_reset_all_in_a_file_leaves_the_lock_timeout(deploy: Deploy, start: str) -> None:
    deploy.add(
        "0001_first.sql",
        f"{start}reset all;\ncreate table t as select current_setting('lock_timeout') as s;\n",
    )
    deploy.ok("apply", "--lock-timeout", "7")
    assert deploy.rows("select s from t") == ["7s"]


def test_server_that_ends_the_session_by_a_timeout_is_told(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", "set local transaction_timeout = '50ms';\nselect pg_sleep(5);\n")
    assert deploy.fails(3, "apply") == (
        f"error: the connection to {shown(deploy.url)} was lost in 0001_first.sql\n"
        "  terminating connection due to transaction timeout (SQLSTATE 25P04)\n"
        "  0001_first.sql was rolled back, nothing of it is in the database\n"
        "hint: pgsluice status, then: pgsluice apply\n"
    )


def test_rights_that_a_file_takes_itself_are_not_missed(deploy: Deploy) -> None:
    role = f"deploy_{os.getpid()}"
    with deploy.session() as conn:
        conn.execute(MEMBER.format(role=role).encode())
    try:
        url = make_conninfo(deploy.url, user=role)
        deploy.add("0001_first.sql", f"set local role {role}_owner;\ncreate table s.t (i int);\n")
        deploy.add(
            "0002_second.sql",
            f"do $$begin if to_regrole('{role}_new') is null then create role {role}_new; end if; end$$;\n"
            f"alter role {role}_new rename to {role}_late;\n"
            f"grant select on s.t to {role}_late;\n",
        )
        done = deploy.run("apply", "--to", "0001", database=url)
        assert done.code == 0, str(done)
        deploy.ok("apply")
    finally:
        with deploy.session() as conn:
            conn.execute(NO_MEMBER.format(role=role).encode())
