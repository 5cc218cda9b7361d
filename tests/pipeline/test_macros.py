"""What the macros' SQL does on a server, with any names and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgsluice.errors import InputError
from tests.client import apply_migration
from tests.pipeline.templates import RenderFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from pgsluice.pipeline.devdb import DevServer

NASTY = 'it\'s $refuse$ and $refuse2$ \\ "quoted" %s é\n-- not a comment'
TABLES = """
create schema app;
create table app.users (user_id int primary key, email text, name text);
insert into app.users values (1, null, 'a'), (2, null, 'b'), (3, 'c@example.com', 'c');
create schema "My App";
create table "My App"."Us""ers"
  ("select" uuid primary key, "E'Mail" text, v_from int, found int, pgsluice int);
insert into "My App"."Us""ers" select gen_random_uuid() from generate_series(1, 25);
"""


@pytest.fixture
def folder(tmp_path: Path) -> RenderFolder:
    return RenderFolder(tmp_path, lock_order=("app.users", '"My App"."Us""ers"'))


@pytest.fixture
def conninfo(server: DevServer) -> Iterator[str]:
    with server.clone(None) as conninfo:
        yield conninfo


@pytest.fixture
def conn(conninfo: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(TABLES)
        yield conn


def run(conn: Connection[Any], folder: RenderFolder, body: str, *, before: str = "") -> None:
    """Run one block's statements, in a transaction unless `before` says otherwise."""
    rendered = folder.block("backfill", body, before=before)
    if not rendered.transactional:
        for statement in rendered.statements:
            conn.execute(statement.sql.encode(), prepare=False)
        return
    with conn.transaction():
        conn.execute(rendered.text.encode(), prepare=False)


def test_lock_tables_follows_the_configured_order_then_names(folder: RenderFolder) -> None:
    body = """{{ sql.lock_tables(["app.b", '"My App"."Us""ers"', "APP.Users", "app.a"], mode="share") }}"""
    assert [statement.sql for statement in folder.block("locks", body).statements[1:]] == [
        "lock table app.users in share mode",
        'lock table "My App"."Us""ers" in share mode',
        "lock table app.a in share mode",
        "lock table app.b in share mode",
    ]


def test_lock_tables_holds_its_locks(conn: Connection[Any], folder: RenderFolder) -> None:
    with conn.transaction():
        for statement in folder.block("locks", '{{ sql.lock_tables("app.users") }}').statements:
            conn.execute(statement.sql.encode())
        held = conn.execute(
            "select mode from pg_locks where relation = 'app.users'::regclass and pid = pg_backend_pid()"
        )
        assert held.fetchall() == [("AccessExclusiveLock",)]


def test_refuse_if_passes_without_rows(conn: Connection[Any], folder: RenderFolder) -> None:
    run(conn, folder, '{{ sql.refuse_if("select from app.users where user_id > 9", "no") }}')


def test_refuse_if_tells_number_sample_and_hint(conn: Connection[Any], folder: RenderFolder) -> None:
    body = """{{ sql.refuse_if(
        rows="select user_id, name from app.users where email is null order by user_id -- all of them",
        message="users have no email", hint="Fill them.") }}"""
    with pytest.raises(psycopg.Error) as caught:
        run(conn, folder, body)
    diag = caught.value.diag
    assert (diag.sqlstate, diag.message_primary, diag.message_hint) == (
        "SL100",
        "users have no email",
        "Fill them.",
    )
    assert diag.message_detail == '2 rows, for example {"user_id":1,"name":"a"}, {"user_id":2,"name":"b"}'


def test_refuse_if_bounds_its_sample(conn: Connection[Any], folder: RenderFolder) -> None:
    rows = "select n, repeat('x', 1000) as x from generate_series(1, 1000) as n;"
    with pytest.raises(psycopg.Error) as caught:
        run(conn, folder, f'{{{{ sql.refuse_if(rows="{rows}", message="no", sample=2, errcode="23514") }}}}')
    detail = caught.value.diag.message_detail or ""
    assert caught.value.sqlstate == "23514"
    assert detail.startswith('1000 rows, for example {"n":1,"x":"xxx')
    assert len(detail) < 500


@pytest.mark.parametrize(
    "rows",
    [
        "select from app.users",
        "table app.users",
        "values (1)",
        "with x as (select 1 as a, 2 as a) select * from x",
        "select pgsluice_rows.v_from, 1 as found, 1 as pgsluice, 1 as v_count, 1 as v_sample "
        'from "My App"."Us""ers" as pgsluice_rows',
        "select 1 as n, null::text as pgsluice_n",
        "select user_id from app.users for share",
        "select 'nan'::float8, 'infinity'::timestamptz, '\\x00'::bytea, array[1], row(1)",
    ],
)
def test_refuse_if_takes_any_query(conn: Connection[Any], folder: RenderFolder, rows: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        run(conn, folder, f"{{% set rows %}}{rows}{{% endset %}}{{{{ sql.refuse_if(rows, 'found some') }}}}")
    assert caught.value.diag.message_primary == "found some"


@pytest.mark.parametrize("conforming", ["on", "off"])
def test_texts_arrive_as_they_are(conn: Connection[Any], folder: RenderFolder, conforming: str) -> None:
    conn.execute(f"set standard_conforming_strings = {conforming}")
    body = (
        f"{{% set text %}}{NASTY}{{% endset %}}"
        "{{ sql.refuse_if(rows='select 1', message=text, hint=text) }}"
    )
    with pytest.raises(psycopg.Error) as caught:
        run(conn, folder, body)
    assert (caught.value.diag.message_primary, caught.value.diag.message_hint) == (NASTY, NASTY)


def test_backfill_updates_at_once(conn: Connection[Any], folder: RenderFolder) -> None:
    run(conn, folder, """{{ sql.backfill("app.users", set="email = ''", where="email is null -- old") }}""")
    found = conn.execute("select email from app.users order by user_id").fetchall()
    assert found == [("",), ("",), ("c@example.com",)]


@pytest.mark.parametrize("batch", [1, 7, 25, 1000])
def test_backfill_commits_batch_by_batch(conn: Connection[Any], folder: RenderFolder, batch: int) -> None:
    body = f"""{{% set assigned %}}"E'Mail" = 'x', v_from = 1{{% endset %}}
{{{{ sql.backfill('"My App"."Us""ers"', assigned, where="found is null or pgsluice = 1",
                 batch={batch}, key='"select"') }}}}"""
    run(conn, folder, body, before='{% set txmode = "none" %}')
    found = conn.execute(
        """select count(distinct xmin::text), count(*) from "My App"."Us""ers" where "E'Mail" = 'x'"""
    ).fetchone()
    assert found == (-(-25 // batch), 25)


def test_batches_that_are_done_outlive_a_failure(conn: Connection[Any], folder: RenderFolder) -> None:
    conn.execute("alter table app.users add constraint no_c check (email <> 'b')")
    body = (
        '{{ sql.backfill("app.users", set="email = name", where="email is null", batch=1, key="user_id") }}'
    )
    with pytest.raises(psycopg.errors.CheckViolation):
        run(conn, folder, body, before='{% set txmode = "none" %}')
    assert conn.execute("select email from app.users order by user_id").fetchall() == [
        ("a",),
        (None,),
        ("c@example.com",),
    ]


def test_a_batched_backfill_of_an_empty_table_ends(conn: Connection[Any], folder: RenderFolder) -> None:
    conn.execute("truncate app.users")
    body = '{{ sql.backfill("app.users", set="email = name", batch=1, key="user_id") }}'
    run(conn, folder, body, before='{% set txmode = "none" %}')


def test_assume_empty_refuses_a_table_with_rows(conn: Connection[Any], folder: RenderFolder) -> None:
    body = """{{ sql.assume_empty('"My App"."Us""ers"', '"E\\'Mail"') }}"""
    with pytest.raises(psycopg.Error) as caught:
        run(conn, folder, body)
    diag = caught.value.diag
    assert (diag.sqlstate, diag.message_primary, diag.message_detail) == (
        "SL100",
        'table "My App"."Us""ers" is not empty',
        'This migration was written for an empty table: its rows would get no value in column "E\'Mail".',
    )
    conn.execute('truncate "My App"."Us""ers"')
    run(conn, folder, body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('sql.lock_tables("users")', "a table is named as schema.table, in SQL spelling, not users"),
        ('sql.lock_tables("a.b; drop table c")', "a table is named as schema.table, in SQL spelling,"),
        ("sql.lock_tables([])", "there is no table to lock"),
        ('sql.lock_tables("a.b", mode="exclusiv")', "unknown lock mode exclusiv, did you mean exclusive?"),
        ('sql.refuse_if("delete from a.b", "x")', "expected one query, not delete from a.b"),
        ('sql.refuse_if("select 1; select 2", "x")', "expected one query, not select 1; select 2"),
        ('sql.refuse_if("selct", "x")', 'expected one query: syntax error at or near "selct": selct'),
        ('sql.refuse_if("", "x")', "expected one query, not nothing"),
        ('sql.refuse_if("select 1", "x", sample=0)', "expected a number from 1 to 100, not 0"),
        ('sql.refuse_if("select 1", "x", errcode="xx")', "a SQLSTATE has five digits or capital letters,"),
        ('sql.backfill("a.b", "c =")', "expected the parts of one update: syntax error at end of input"),
        ('sql.backfill("a.b", "c = 1; drop table d")', "expected the parts of one update, not update a.b"),
        ('sql.backfill("a.b", "c = 1", batch=5)', "a batched backfill needs both batch and key"),
        (
            'sql.backfill("a.b", "c = 1", batch=5, key="d")',
            "a batched backfill commits, so the template must",
        ),
        ('sql.assume_empty("a.b", "c.d")', "a column is one name, in SQL spelling, not c.d"),
    ],
)
def test_a_macro_refuses_what_it_cannot_write(folder: RenderFolder, body: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        folder.block("backfill", f"{{{{ {body} }}}}")
    assert str(caught.value).startswith(f"templates/app/add_email.sql.j2:4: {message}")


def test_lock_tables_is_refused_outside_a_transaction(folder: RenderFolder) -> None:
    with pytest.raises(InputError, match="lock_tables needs a transaction, and txmode is none"):
        folder.block("locks", '{{ sql.lock_tables("a.b") }}', before='{% set txmode = "none" %}')


def test_a_migration_runs_under_psql(conn: Connection[Any], conninfo: str, folder: RenderFolder) -> None:
    rendered = folder.block(
        "backfill",
        """{{ sql.lock_tables("app.users") }}
{{ sql.backfill("app.users", set="email = ''", where="email is null") }}
{{ sql.refuse_if(rows="select user_id from app.users where email is null", message="left") }}""",
    )
    apply_migration(conninfo, folder.write("migration.sql", rendered.text))
    assert conn.execute("select count(*) from app.users where email is null").fetchone() == (0,)


def test_a_batched_migration_runs_under_psql(
    conn: Connection[Any], conninfo: str, folder: RenderFolder
) -> None:
    rendered = folder.block(
        "backfill",
        """{{ sql.backfill("app.users", set="email = ''", batch=1, key="user_id") }}""",
        before='{% set txmode = "none" %}',
    )
    apply_migration(conninfo, folder.write("migration.sql", rendered.text))
    assert conn.execute("select distinct email from app.users").fetchall() == [("",)]
