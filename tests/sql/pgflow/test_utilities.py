"""pgflow's small functions: visibility in batches, the back-off, and whether a database is local."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.rows import dict_row

from .engine import hidden_s, read

if TYPE_CHECKING:
    from .engine import Conn

SET_VT: Final = "select * from pgflow.set_vt_batch(%s, %s, %s) order by msg_id"
DELAY: Final = "select pgflow.calculate_retry_delay(%s, %s)"
IS_LOCAL: Final = "select pgflow.is_local()"
SET: Final = "select set_config(%s, %s, true)"
LOCAL_SECRET: Final = "super-secret-jwt-token-with-at-least-32-characters-long"
SLACK_S: Final = 5.0


def queue(conn: Conn, name: str = "q", *, messages: int = 3) -> list[int]:
    """Make a queue with visible messages: their ids."""
    conn.execute("select pgmq.create(%s)", [name])
    query = (
        "select pgmq.send(%s, jsonb_build_object('n', n), '{\"h\": 1}'::jsonb) from generate_series(1, %s) n"
    )
    return [int(row[0]) for row in conn.execute(query, [name, messages])]


def set_vt(conn: Conn, name: str, ids: object, offsets: object) -> list[dict[str, Any]]:
    """Call `set_vt_batch`."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(SET_VT, [name, ids, offsets]).fetchall()


def one(conn: Conn, query: str, values: list[object] | None = None) -> Any:  # Any: a value of any SQL type
    """The only value of the only row."""
    row = conn.execute(query.encode(), values).fetchone()
    assert row is not None
    return row[0]


def test_each_message_gets_its_own_offset(conn: Conn) -> None:
    ids = queue(conn)
    set_vt(conn, "q", ids, [100, 0, 3000])
    assert hidden_s(conn, "q", ids[0]) == pytest.approx(100, abs=SLACK_S)
    assert hidden_s(conn, "q", ids[1]) <= 0
    assert hidden_s(conn, "q", ids[2]) == pytest.approx(3000, abs=SLACK_S)
    assert read(conn, "q") == [ids[1]]


def test_offsets_count_from_the_clock_and_not_from_the_transaction(conn: Conn) -> None:
    ids = queue(conn, messages=1)
    assert one(conn, "select vt > now() from pgflow.set_vt_batch('q', %s, '{0}')", [ids])


def test_the_updated_rows_are_returned_whole(conn: Conn) -> None:
    ids = queue(conn)
    rows = set_vt(conn, "q", [ids[2], ids[0]], [60, -60])
    assert [list(row) for row in rows] == [
        ["msg_id", "read_ct", "enqueued_at", "vt", "message", "headers"]
    ] * 2
    assert [(row["msg_id"], row["message"], row["headers"]) for row in rows] == [
        (ids[0], {"n": 1}, {"h": 1}),
        (ids[2], {"n": 3}, {"h": 1}),
    ]
    assert rows[0]["vt"] < rows[0]["enqueued_at"] < rows[1]["vt"]


def test_read_counts_stay_as_they_were(conn: Conn) -> None:
    ids = queue(conn)
    read(conn, "q", qty=2)
    assert [row["read_ct"] for row in set_vt(conn, "q", ids, [9, 9, 9])] == [1, 1, 0]


def test_unknown_ids_are_silently_absent(conn: Conn) -> None:
    ids = queue(conn)
    rows = set_vt(conn, "q", [4711, ids[1], 9007199254740993], [1, 2, 3])
    assert [row["msg_id"] for row in rows] == [ids[1]]


@pytest.mark.parametrize(
    ("ids", "offsets"), [(None, None), (None, [1]), ([1], None), ([], []), ([], [1]), ([1], [])]
)
def test_null_and_empty_arrays_give_no_rows(
    conn: Conn, ids: list[int] | None, offsets: list[int] | None
) -> None:
    queue(conn)
    assert set_vt(conn, "q", ids, offsets) == []


def test_lengths_that_differ_are_refused_with_both_numbers(conn: Conn) -> None:
    ids = queue(conn)
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        set_vt(conn, "q", ids[:2], [5])
    assert refused.value.diag.message_primary == "msg_ids length (2) must equal vt_offsets length (1)"


def test_an_unknown_queue_is_an_undefined_table(conn: Conn) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        set_vt(conn, "nowhere", [1], [1])


def test_a_queue_is_found_in_any_spelling(conn: Conn) -> None:
    ids = queue(conn, "MyQueue")
    for name in ("MyQueue", "myqueue", "MYQUEUE"):
        assert len(set_vt(conn, name, ids, [60, 60, 60])) == 3


def test_ids_beyond_doubles_are_exact(conn: Conn) -> None:
    queue(conn, messages=0)
    big = 2**53 + 1
    conn.execute("alter table pgmq.q_q alter column msg_id restart with 9007199254740993")
    assert one(conn, "select pgmq.send('q', '1')") == big
    assert [row["msg_id"] for row in set_vt(conn, "q", [big, big - 1], [60, 60])] == [big]


@pytest.mark.parametrize(
    ("base", "attempts", "seconds"),
    [
        (5, 0, 5),
        (5, 1, 10),
        (5, 2, 20),
        (1, 10, 1024),
        (0, 7, 0),
        ("1.5", 1, 3),
        ("0.3", 1, 0),
        ("2.7", 3, 21),
        (1, 30, 2**30),
    ],
)
def test_the_delay_doubles_with_each_attempt(
    conn: Conn, base: int | str, attempts: int, seconds: int
) -> None:
    assert one(conn, DELAY, [Decimal(base), attempts]) == seconds


def test_the_delay_has_no_cap_but_its_type(conn: Conn) -> None:
    assert one(conn, DELAY, [Decimal(1), 31]) == 2**31 - 1
    assert one(conn, DELAY, [Decimal(5), 2**31 - 1]) == 2**31 - 1
    assert one(conn, DELAY, [Decimal(0), 2**31 - 1]) == 0


def test_the_delay_of_nothing_is_null(conn: Conn) -> None:
    assert one(conn, DELAY, [None, 1]) is None
    assert one(conn, DELAY, [Decimal(1), None]) is None


@pytest.mark.parametrize(
    ("setting", "value", "local"),
    [
        (None, "", False),
        ("app.settings.jwt_secret", LOCAL_SECRET, True),
        ("app.settings.jwt_secret", "", False),
        ("app.settings.jwt_secret", f"{LOCAL_SECRET} ", False),
        ("pgflow.environment", "local", True),
        ("pgflow.environment", "", False),
        ("pgflow.environment", "production", False),
    ],
)
def test_a_database_is_local_by_its_settings(
    conn: Conn, setting: str | None, value: str, local: bool
) -> None:
    """Row 118."""
    if setting is not None:
        conn.execute(SET, [setting, value])
    assert one(conn, IS_LOCAL) is local


@pytest.mark.parametrize(
    ("function", "volatility"),
    [("is_local()", "s"), ("calculate_retry_delay(numeric, integer)", "i")],
)
def test_cheap_functions_may_be_planned_in_parallel(conn: Conn, function: str, volatility: str) -> None:
    query = "select concat(provolatile, proparallel) from pg_proc where oid = %s::regprocedure"
    assert one(conn, query, [f"pgflow.{function}"]) == f"{volatility}s"
