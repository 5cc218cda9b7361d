"""Guards that small tests do not miss: each is removed here, and what then goes wrong is asserted.

Seven traps: side effects in a CTE that nothing reads, a recovery pass with exhausted tasks only, the moment
in which a map's size is known, the bound of a cascade, queue names of which PGMQ folds the tables but not
the entry; and, in `test_counting_traps.py`, the order inside a callback and the arithmetic of the counters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    Step,
    archived,
    claim,
    complete,
    define,
    fail,
    hidden_s,
    queued,
    run_of,
    start,
    states,
    tasks,
)
from tests.sql.pgflow.mutation import Guard, Mutation, mutate, prove
from tests.sql.pgflow.watching import claimed

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

COMPLETE_TASK: Final = "pgflow.complete_task(uuid,text,integer,jsonb)"


# side effects in a CTE that nothing reads


def hidden_after_claim(conn: Conn) -> bool:
    """Does a claim hide the message for the task's timeout?"""
    define(conn, "f", "a", timeout=600)
    start(conn, "f", {})
    (task,) = claim(conn, "f")
    return hidden_s(conn, "f", task.msg_id) > 500


def archived_by_failure(conn: Conn) -> list[int]:
    """What is archived when one of three map tasks fails the run."""
    define(conn, "f", Step("m", type="map"), max_attempts=1)
    start(conn, "f", [0, 1, 2])
    fail(conn, claimed(conn, "f")["m", 0])
    return archived(conn, "f")


def archived_by_skip(conn: Conn) -> list[int]:
    """What is archived when one of three map tasks skips the step."""
    define(conn, "f", Step("m", type="map", when_exhausted="skip"), "o", max_attempts=1)
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f")
    fail(conn, work["m", 0])
    other = tasks(conn, run_id, "o")[0]["message_id"]
    assert other in queued(conn, "f")
    return archived(conn, "f")


UNREAD: Final = (
    Guard(
        "the claim reads what hides its messages",
        hidden_after_claim,
        True,
        False,
        Mutation(
            "pgflow.start_tasks(text,bigint[],uuid)",
            "select count(*) into v_updated\n"
            "  from pgflow.set_vt_batch(start_tasks.flow_slug, v_message_ids, v_hidden_s);",
            "with hidden as (\n"
            "    select h.msg_id\n"
            "    from pgflow.set_vt_batch(start_tasks.flow_slug, v_message_ids, v_hidden_s) as h\n"
            "  )\n"
            "  select cardinality(v_message_ids) into v_updated;",
        ),
    ),
    Guard(
        "a cancellation runs what archives its messages",
        archived_by_failure,
        [1, 2, 3],
        [1],
        Mutation(
            "pgflow._end_open_tasks(uuid,text[],text)",
            "perform pgflow._archive_messages(v_flow_slug, v_message_ids);",
            "with gone as (select pgflow._archive_messages(v_flow_slug, v_message_ids))\n"
            "  select 'nothing read' into v_flow_slug;",
        ),
    ),
    Guard(
        "a skip runs what archives its messages",
        archived_by_skip,
        [1, 2, 3],
        [1],
        Mutation(
            "pgflow._end_open_tasks(uuid,text[],text)",
            "perform pgflow._archive_messages(v_flow_slug, v_message_ids);",
            "with gone as (select pgflow._archive_messages(v_flow_slug, v_message_ids))\n"
            "  select 'nothing read' into v_flow_slug;",
        ),
    ),
)


# a recovery pass with exhausted tasks only


def given_up(conn: Conn, *, beside: bool) -> tuple[list[int], list[int]]:
    """What is queued and archived after a pass that gives a task up, maybe beside one to requeue."""
    define(conn, "f", Step("m", type="map"), timeout=600)
    start(conn, "f", [0, 1] if beside else [0])
    claim(conn, "f")
    conn.execute(
        "update pgflow.step_tasks set queued_at = now() - interval '1 day',"
        " started_at = now() - interval '1 day', requeued_count = case task_index when 0 then 3 else 0 end"
    )
    assert conn.execute("select pgflow.requeue_stalled_tasks()").fetchone() == (int(beside),)
    return queued(conn, "f"), archived(conn, "f")


EXHAUSTED_ONLY: Final = Mutation(
    "pgflow._requeue_stalled_tasks_of(text)",
    "perform pgflow._archive_messages(p_flow_slug, v_stalled_ids);",
    "perform pgflow._archive_messages(p_flow_slug, v_stalled_ids) where v_requeued > 0;",
)
RECOVERY: Final = (
    Guard(
        "exhausted tasks alone in a pass are archived",
        lambda conn: given_up(conn, beside=False),
        ([], [1]),
        ([1], []),
        EXHAUSTED_ONLY,
    ),
)


# a map's size is known when the parent step ends, not when a task of it does


def sizes_of_a_map_below_a_map(conn: Conn) -> list[int | None]:
    """The child's number of tasks after each of its parent's three tasks."""
    define(conn, "f", Step("m", type="map"), Step("n", ["m"], type="map"))
    run_id = start(conn, "f", [0, 1, 2])
    work = claimed(conn, "f")
    sizes = []
    for index in (1, 2, 0):
        complete(conn, work["m", index], [1])
        sizes.append(states(conn, run_id)["n"]["initial_tasks"])
    return sizes


SIZES: Final = (
    Guard(
        "the size of a map is not taken from a task",
        sizes_of_a_map_below_a_map,
        [None, None, 3],
        [1, 1, 1],
        Mutation(
            COMPLETE_TASK,
            "if v_step.remaining_tasks > 1 then\n",
            "update pgflow.step_states as s\n"
            "  set initial_tasks = jsonb_array_length(complete_task.output)\n"
            "  from pgflow.deps as d\n"
            "  where s.run_id = complete_task.run_id and s.initial_tasks is null\n"
            "  and d.dep_slug = complete_task.step_slug and d.step_slug = s.step_slug;\n"
            "  if v_step.remaining_tasks > 1 then\n",
        ),
    ),
)


# the bound of a cascade


def chain_of_empty_maps(conn: Conn, length: int) -> str:
    """What a run of that many maps over an empty array comes to."""
    parents = [[], *([f"m{i}"] for i in range(length - 1))]
    define(conn, "f", *(Step(f"m{i}", deps, type="map") for i, deps in enumerate(parents)))
    try:
        with conn.transaction():
            return str(run_of(conn, start(conn, "f", []))["status"])
    except psycopg.errors.RaiseException as error:
        assert conn.execute("select count(*) from pgflow.runs").fetchone() == (0,)
        return str(error.diag.message_primary)


TOO_LONG: Final = "Cascade loop exceeded safety limit of 50 iterations"
TASKLESS: Final = "pgflow.cascade_complete_taskless_steps(uuid)"
BOUND: Final = (
    Guard(
        "51 maps are too many",
        lambda conn: chain_of_empty_maps(conn, 51),
        TOO_LONG,
        "completed",
        Mutation(TASKLESS, "if v_turns > c_max_turns then", "if false then"),
    ),
    Guard(
        "50 maps are too many, because the last turn must find nothing",
        lambda conn: chain_of_empty_maps(conn, 50),
        TOO_LONG,
        "completed",
        Mutation(TASKLESS, "if v_turns > c_max_turns then", "if v_turns > c_max_turns + 1 then"),
    ),
    Guard(
        "49 maps are not too many",
        lambda conn: chain_of_empty_maps(conn, 49),
        "completed",
        TOO_LONG,
        Mutation(TASKLESS, "if v_turns > c_max_turns then", "if v_turns > c_max_turns - 1 then"),
    ),
)


# queue names: PGMQ folds the tables but not the entry


def entries(conn: Conn) -> list[str]:
    """The queues that PGMQ lists."""
    return [row[0] for row in conn.execute("select queue_name from pgmq.meta order by 1")]


def entries_after_create_flow(conn: Conn) -> list[str]:
    """What is listed when a flow comes to a queue of another spelling."""
    conn.execute("select pgmq.create('Orders')")
    define(conn, "orders", "a")
    return entries(conn)


def entries_after_deletion(conn: Conn) -> list[str]:
    """What is listed when such a flow is deleted."""
    conn.execute("select pgmq.create('Orders')")
    define(conn, "orders", "a")
    conn.execute("select pgflow.delete_flow_and_data('orders')")
    return entries(conn)


def queue_of_the_other_flow(conn: Conn) -> bool:
    """Is the queue still there when one of two flows that share it is deleted?"""
    define(conn, "orders", "a")
    define(conn, "Orders", "a")
    conn.execute("select pgflow.delete_flow_and_data('orders')")
    return conn.execute("select to_regclass('pgmq.q_orders') is not null").fetchone() == (True,)


def claim_in_mixed_case(conn: Conn) -> bool:
    """Does a claim hide a message of a flow with capitals?"""
    define(conn, "MyFlow", "a", timeout=600)
    start(conn, "MyFlow", {})
    try:
        with conn.transaction():
            (task,) = claim(conn, "MyFlow")
    except psycopg.errors.UndefinedTable:
        return False
    return hidden_s(conn, "MyFlow", task.msg_id) > 500


SPELLED: Final = "lower(m.queue_name) = lower({})"
DELETION: Final = "pgflow.delete_flow_and_data(text)"
FOLDING: Final = (
    Guard(
        "a queue of another spelling is found",
        entries_after_create_flow,
        ["Orders"],
        ["Orders", "orders"],
        Mutation(
            "pgflow.create_flow(text,integer,integer,integer)",
            SPELLED.format("create_flow.flow_slug"),
            "m.queue_name = create_flow.flow_slug",
        ),
    ),
    Guard(
        "the entry of a queue of another spelling is deleted with it",
        entries_after_deletion,
        [],
        ["Orders"],
        Mutation(DELETION, "coalesce(v_queue_name, p_flow_slug)", "p_flow_slug"),
        Mutation(DELETION, "delete from pgmq.meta as m where " + SPELLED.format("p_flow_slug") + ";", ""),
    ),
    Guard(
        "a queue that another flow shares is kept",
        queue_of_the_other_flow,
        True,
        False,
        Mutation(
            DELETION, "where lower(f.flow_slug) = lower(p_flow_slug)", "where f.flow_slug = p_flow_slug"
        ),
    ),
    Guard(
        "the table of a queue with capitals is found",
        claim_in_mixed_case,
        True,
        False,
        Mutation(
            "pgflow.set_vt_batch(text,bigint[],integer[])",
            "pgmq.format_table_name(set_vt_batch.queue_name, 'q')",
            "'q_' || set_vt_batch.queue_name",
        ),
    ),
)

GUARDS: Final = (*UNREAD, *RECOVERY, *SIZES, *BOUND, *FOLDING)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_is_missed_when_it_is_gone(conn: Conn, guard: Guard) -> None:
    prove(conn, guard)


def test_exhausted_tasks_beside_a_requeued_one_hide_the_trap(conn: Conn) -> None:
    """Only a pass without anything to requeue shows it."""
    mutate(conn, EXHAUSTED_ONLY)
    assert given_up(conn, beside=True) == ([2], [1])


def test_a_mutation_whose_text_is_not_there_is_an_error(conn: Conn) -> None:
    with pytest.raises(AssertionError, match="has this text 0 times, not once"):
        mutate(conn, Mutation(TASKLESS, "nowhere to be found", ""))
