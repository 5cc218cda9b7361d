"""In which order a call ends rows, tells of it and archives messages; and that it archives no null."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.sql.pgflow.engine import Step, claim, complete, define, fail, install_realtime, start, tasks
from tests.sql.pgflow.watching import claimed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.sql.pgflow.engine import Conn

JOURNAL: Final = Path(__file__).parent / "journal.sql"
NULL_IDS: Final = "update pgflow.step_tasks set message_id = null"


def open_journal(conn: Conn) -> None:
    """Write down from here on; messages stay in their queue."""
    conn.execute(JOURNAL.read_bytes())


def entries(conn: Conn, *kinds: str) -> list[str]:
    """What was written down, or only what begins with one of the kinds."""
    rows = conn.execute("select entry from public.journal order by entry_id").fetchall()
    return [row[0] for row in rows if not kinds or row[0].startswith(kinds)]


def in_order(entries: Sequence[str], *expected: str) -> None:
    """Assert that these entries come once each, in this order, whatever is between them."""
    assert [entry for entry in entries if entry in expected] == list(expected)


def test_a_failure_is_told_then_siblings_end_then_messages_go_the_culprit_s_last(conn: Conn) -> None:
    """Rows 72, 73."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map"), max_attempts=1)
    start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    open_journal(conn)
    fail(conn, work["m", 0])
    in_order(entries(conn), "task m 0 failed", "step m failed", "event step:m:failed")
    assert entries(conn)[-5:] == [
        "event step:m:failed",
        "event run:failed",
        "task m 1 cancelled",
        "archive {2}",
        "archive {1}",
    ]


def test_a_skip_ends_siblings_and_their_messages_then_is_told_then_frees_children(conn: Conn) -> None:
    """Rows 74, 81."""
    install_realtime(conn)
    define(
        conn, "f", Step("m", type="map", when_exhausted="skip"), Step("n", ["m"], type="map"), max_attempts=1
    )
    start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    open_journal(conn)
    fail(conn, work["m", 0])
    assert entries(conn) == [
        "task m 0 failed",
        "step m skipped",
        "task m 1 skipped",
        "archive {2}",
        "event step:m:skipped",
        "step n completed",
        "event step:n:completed",
        "archive {1}",
        "run completed",
        "event run:completed",
    ]


def test_a_cascading_skip_tells_of_the_step_before_what_is_below_it(conn: Conn) -> None:
    """Row 75."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map", when_exhausted="skip-cascade"), Step("n", ["m"]), max_attempts=1)
    start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    open_journal(conn)
    fail(conn, work["m", 0])
    assert entries(conn) == [
        "task m 0 failed",
        "step m skipped",
        "task m 1 skipped",
        "archive {2}",
        "event step:m:skipped",
        "step n skipped",
        "event step:n:skipped",
        "archive {1}",
        "run completed",
        "event run:completed",
    ]


def test_the_cascade_ends_steps_then_tasks_then_messages(conn: Conn) -> None:
    install_realtime(conn)
    define(conn, "f", "a", Step("b", ["a"]))
    run_id = start(conn, "f", {})
    open_journal(conn)
    conn.execute("select pgflow._cascade_force_skip_steps(%s, 'a', 'condition_unmet')", [run_id])
    for step in ("step a skipped", "step b skipped"):
        in_order(entries(conn), step, "task a 0 skipped", "archive {1}")
    assert entries(conn, "event") == ["event step:a:skipped", "event step:b:skipped"]


def test_an_unmet_condition_is_told_then_tasks_end_then_messages_go(conn: Conn) -> None:
    """Row 84; the completed task's own message goes last."""
    install_realtime(conn)
    child = Step("c", ["a"], required={"a": 1}, when_unmet="fail")
    define(conn, "f", "a", "b", child)
    start(conn, "f", {})
    work = claimed(conn, "f")
    open_journal(conn)
    complete(conn, work["a", 0], 2)
    assert entries(conn, "task", "event", "archive") == [
        "task a 0 completed",
        "event step:a:completed",
        "event step:c:failed",
        "event run:failed",
        "task b 0 cancelled",
        f"archive {{{work['b', 0].msg_id}}}",
        f"archive {{{work['a', 0].msg_id}}}",
    ]
    assert sorted(entries(conn, "run", "step")) == ["run failed", "step a completed", "step c failed"]


def test_a_type_violation_ends_the_task_the_run_and_the_step_then_the_siblings(conn: Conn) -> None:
    """Rows 65, 66: here the run is told before the step."""
    install_realtime(conn)
    define(conn, "f", "a", "b", Step("m", ["a"], type="map"))
    start(conn, "f", {})
    work = claimed(conn, "f")
    open_journal(conn)
    complete(conn, work["a", 0], "no array")
    assert entries(conn, "task", "run", "step", "event") == [
        "task a 0 failed",
        "run failed",
        "event run:failed",
        "step a failed",
        "event step:a:failed",
        "task b 0 cancelled",
    ]
    archived = entries(conn, "archive")
    assert entries(conn)[-len(archived) :] == archived
    assert sorted("".join(filter(str.isdigit, entry)) for entry in archived) in (["1", "2"], ["12"])


@pytest.mark.parametrize("mode", ["fail", "skip", "skip-cascade"])
def test_a_failure_without_messages_archives_nothing(conn: Conn, mode: str) -> None:
    install_realtime(conn)
    define(conn, "f", Step("m", type="map", when_exhausted=mode), Step("n", ["m"]), max_attempts=1)
    run_id = start(conn, "f", [0, 1])
    work = claimed(conn, "f")
    conn.execute(NULL_IDS)
    open_journal(conn)
    fail(conn, work["m", 0])
    assert entries(conn, "archive") == []
    assert {row["status"] for row in tasks(conn, run_id, "m")} <= {"failed", "cancelled", "skipped"}


def test_completions_and_conditions_without_messages_archive_nothing(conn: Conn) -> None:
    install_realtime(conn)
    child = Step("c", ["a"], required={"a": 1}, when_unmet="fail")
    define(conn, "f", "a", "b", child)
    define(conn, "g", "a", "b", Step("m", ["a"], type="map"))
    start(conn, "f", {})
    start(conn, "g", {})
    work = [claimed(conn, flow)["a", 0] for flow in "fg"]
    conn.execute(NULL_IDS)
    open_journal(conn)
    for task in work:
        complete(conn, task, 2)
    assert sorted(entries(conn, "run")) == ["run failed", "run failed"]
    assert entries(conn, "archive") == []


def test_recovery_without_messages_archives_nothing(conn: Conn) -> None:
    """Row 93."""
    install_realtime(conn)
    define(conn, "f", "a")
    start(conn, "f", {})
    claim(conn, "f")
    conn.execute(
        "update pgflow.step_tasks set message_id = null, requeued_count = 3,"
        " queued_at = now() - interval '1 day', started_at = now() - interval '1 day'"
    )
    open_journal(conn)
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (0,)
    assert entries(conn) == []


def test_recovery_takes_tasks_in_the_order_of_their_key(conn: Conn) -> None:
    """Rows lie and started in another order; no join may bring them into one of its own."""
    install_realtime(conn)
    define(conn, "f", Step("m", type="map"))
    start(conn, "f", [0, 1, 2])
    claim(conn, "f")
    for index, days in ((2, 3), (1, 2), (0, 1)):
        conn.execute(
            "update pgflow.step_tasks set queued_at = now() - make_interval(days => %(days)s),"
            " started_at = now() - make_interval(days => %(days)s) where task_index = %(index)s",
            {"index": index, "days": days},
        )
    conn.execute("set local enable_hashjoin = off; set local enable_mergejoin = off")
    open_journal(conn)
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (3,)
    assert entries(conn) == ["task m 0 queued", "task m 1 queued", "task m 2 queued"]
