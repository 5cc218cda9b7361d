"""Values that pass through a flow unchanged, and flows of the largest sizes that are promised."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from tests.sql.pgflow.engine import (
    Step,
    add_worker,
    claim,
    complete,
    define,
    queued,
    run_of,
    start,
    states,
)

if TYPE_CHECKING:
    from uuid import UUID

    Conn = psycopg.Connection[Any]

BIG: Final = [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**64 + 1, 10**40 + 7]
# as jsonb prints it: the server compares the texts, so that Python's reading of numbers has no say
VALUES: Final = [
    "0",
    "false",
    '""',
    "null",
    "[]",
    "{}",
    "[null]",
    "1.50",
    "-0.0000000000000000000000000001",
    str(BIG[0]),
    str(BIG[-1]),
    f'{{"n": {BIG[2]}, "list": [{BIG[3]}, [{BIG[4]}]]}}',
    '{"": {"": ""}, "B": 0, "a": [[], {}, [[null, false]]]}',
    '"\\u0001 \\" \\\\ \\n \x7f é ß 漢字 👩\u200d🚀 e\u0301 \u202e"',
    '{"🔑": ["значение"], "ключ": null}',
]
COMPLETE_TEXT: Final = "select output::text from pgflow.complete_task(%s, %s, %s, %s::jsonb)"
CLAIM_TEXT: Final = (
    "select step_slug, task_index, input::text, flow_input::text, run_id"
    " from pgflow.start_tasks('f', %s, %s) order by step_slug, task_index"
)
COMPLETE_ALL: Final = """
select count(*)
from generate_series(%(first)s::int, %(last)s::int) as i (task_index)
cross join lateral pgflow.complete_task(%(run)s, 'm', i.task_index, to_jsonb(i.task_index * 7)) as done
where done.status = 'completed'
"""
LIMIT_TEXT: Final = "Cascade loop exceeded safety limit of 50 iterations"


def claim_texts(conn: Conn, worker: UUID) -> list[tuple[Any, ...]]:
    """Claim all of flow `f`: step, index, input and flow input as text, run."""
    return conn.execute(CLAIM_TEXT, [queued(conn, "f"), worker]).fetchall()


def text_of(conn: Conn, query: str, run_id: UUID) -> str | None:
    """The one text that a query gives of a run."""
    [(text,)] = conn.execute(query, [run_id]).fetchall()
    return None if text is None else str(text)


def map_chain(conn: Conn, length: int) -> None:
    """Define flow `f` as a chain of maps."""
    first = Step("m1", type="map")
    define(conn, "f", first, *(Step(f"m{i}", [f"m{i - 1}"], "map") for i in range(2, length + 1)))


def test_any_value_passes_through_singles_unchanged(conn: Conn) -> None:
    """Row 58: falsy ones too, as input, output, input of the child and output of the run."""
    define(conn, "f", "a", Step("b", ["a"]))
    worker = add_worker(conn)
    for value in VALUES:
        [(run_id,)] = conn.execute("select run_id from pgflow.start_flow('f', %s::jsonb)", [value])
        assert text_of(conn, "select input::text from pgflow.runs where run_id = %s", run_id) == value
        assert claim_texts(conn, worker) == [("a", 0, "{}", value, run_id)]
        assert conn.execute(COMPLETE_TEXT, [run_id, "a", 0, value]).fetchall() == [(value,)]
        stored = "select output::text from pgflow.step_states where run_id = %s and step_slug = 'a'"
        assert text_of(conn, stored, run_id) == value
        assert claim_texts(conn, worker) == [("b", 0, f'{{"a": {value}}}', None, run_id)]
        conn.execute(COMPLETE_TEXT, [run_id, "b", 0, value])
        output = "select output::text from pgflow.runs where run_id = %s and status = 'completed'"
        assert text_of(conn, output, run_id) == f'{{"b": {value}}}'


def test_any_value_passes_through_maps_unchanged(conn: Conn) -> None:
    """As an element of the input, as output, as an element of a parent's, and in the run's output."""
    define(conn, "f", Step("m", type="map"), Step("n", ["m"], "map"), Step("s", ["n"]))
    worker = add_worker(conn)
    array = f"[{', '.join(VALUES)}]"
    [(run_id,)] = conn.execute("select run_id from pgflow.start_flow('f', %s::jsonb)", [array])
    for step in ("m", "n"):
        claimed = claim_texts(conn, worker)
        assert claimed == [(step, index, value, None, run_id) for index, value in enumerate(VALUES)]
        for index, value in enumerate(VALUES):
            assert conn.execute(COMPLETE_TEXT, [run_id, step, index, value]).fetchall() == [(value,)]
        stored = f"select output::text from pgflow.step_states where run_id = %s and step_slug = '{step}'"
        assert text_of(conn, stored, run_id) == array
    assert claim_texts(conn, worker) == [("s", 0, f'{{"n": {array}}}', None, run_id)]
    conn.execute(COMPLETE_TEXT, [run_id, "s", 0, array])
    output = text_of(conn, "select output::text from pgflow.runs where run_id = %s", run_id)
    assert output == f'{{"s": {array}}}'


def test_integers_beyond_2_to_the_53_are_exact_in_python_too(conn: Conn) -> None:
    define(conn, "f", "a", Step("m", ["a"], "map"))
    run_id = start(conn, "f", BIG)
    [task] = claim(conn, "f")
    assert task.flow_input == BIG
    complete(conn, task, task.flow_input)
    claimed = claim(conn, "f")
    assert [task.input for task in claimed] == BIG
    for task in claimed:
        complete(conn, task, {"n": task.input})
    assert run_of(conn, run_id)["output"] == {"m": [{"n": number} for number in BIG]}


def test_message_ids_beyond_2_to_the_53_are_exact(conn: Conn) -> None:
    define(conn, "f", Step("m", type="map"))
    conn.execute("select setval('pgmq.q_f_msg_id_seq', %s, false)", [2**53 + 1])
    run_id = start(conn, "f", [0, 1])
    claimed = claim(conn, "f")
    assert [task.msg_id for task in claimed] == [2**53 + 1, 2**53 + 2]
    complete(conn, claimed[0], 0)
    assert queued(conn, "f") == [2**53 + 2]
    complete(conn, claimed[1], 1)
    assert run_of(conn, run_id)["output"] == {"m": [0, 1]}


def test_five_megabytes_of_nested_json_pass_through_a_chain_and_a_map(conn: Conn) -> None:
    """Compared by the server; `given` holds half of it."""
    leaf = {"id": 2**53 + 1, "text": "漢字 " * 6, "none": None, "list": [1, [2, [3.5]], {"deep": [{}]}]}
    half: Any = {f"k{i}": [leaf] * 50 for i in range(380)}
    for _ in range(100):
        half = [half]
    text = json.dumps(half, ensure_ascii=False)
    assert len(text.encode()) > 2_500_000
    define(conn, "f", "a", Step("m", ["a"], "map"), Step("s", ["m"]))
    worker = add_worker(conn)
    conn.execute("create temporary table given on commit drop as select %s::jsonb as half", [text])
    start_it = "select s.run_id from given, pgflow.start_flow('f', jsonb_build_array(half, half)) as s"
    [(run_id,)] = conn.execute(start_it).fetchall()
    for step, count, check, output in (
        ("a", 1, "flow_input = jsonb_build_array(half, half)", "jsonb_build_array(half, half)"),
        ("m", 2, "input = half", "half"),
        ("s", 1, "input = jsonb_build_object('m', jsonb_build_array(half, half))", "'[]'"),
    ):
        check_all = f"select step_slug, {check} from given, pgflow.start_tasks('f', %s, %s)"
        assert conn.execute(check_all, [queued(conn, "f"), worker]).fetchall() == [(step, True)] * count
        conn.execute(
            f"select count(c.*) from given, generate_series(0, %s) as i (task_index),"
            f" pgflow.complete_task(%s, %s, i.task_index, {output}) as c",
            [count - 1, run_id, step],
        )
    assert run_of(conn, run_id)["output"] == {"s": []}


def test_a_map_of_10000_tasks_keeps_the_order_of_outputs(database: str) -> None:
    """Rows 42 and 59; claimed at once, completed in batches from the last task to the first."""
    size, batch = 10_000, 1_000
    with psycopg.connect(database, autocommit=True) as conn:
        define(conn, "f", "a", Step("m", ["a"], "map"), Step("s", ["m"]))
        run_id = start(conn, "f")
        [task] = claim(conn, "f")
        complete(conn, task, [{"element": index} for index in range(size)])
        state = states(conn, run_id)["m"]
        assert (state["initial_tasks"], state["remaining_tasks"]) == (size, size)
        claimed = claim(conn, "f")
        assert [(task.task_index, task.input) for task in claimed] == [
            (index, {"element": index}) for index in range(size)
        ]
        assert len({task.msg_id for task in claimed}) == size
        for first in range(size - batch, -1, -batch):
            values = {"first": first, "last": first + batch - 1, "run": run_id}
            assert conn.execute(COMPLETE_ALL, values).fetchall() == [(batch,)]
            assert states(conn, run_id)["m"]["remaining_tasks"] == first
        [task] = claim(conn, "f")
        assert task.input == {"m": [index * 7 for index in range(size)]}
        complete(conn, task)
        assert (run_of(conn, run_id)["status"], queued(conn, "f")) == ("completed", [])


def test_a_chain_of_200_steps_runs_to_its_end(conn: Conn) -> None:
    slugs = [f"s{index}" for index in range(200)]
    parents = [[], *([slug] for slug in slugs)]
    define(conn, "f", *(Step(slug, deps) for slug, deps in zip(slugs, parents, strict=False)))
    run_id = start(conn, "f", 0)
    worker = add_worker(conn)
    last: object = None
    for index, slug in enumerate(slugs):
        [task] = claim(conn, "f", worker=worker)
        assert (task.step_slug, task.input) == (slug, {} if index == 0 else {slugs[index - 1]: last})
        last = index
        complete(conn, task, last)
    run = run_of(conn, run_id)
    assert (run["status"], run["output"]) == ("completed", {"s199": 199})


def test_50_steps_side_by_side_meet_in_one(conn: Conn) -> None:
    slugs = [f"w{index}" for index in range(50)]
    define(conn, "f", *slugs, Step("join", slugs))
    run_id = start(conn, "f", {})
    claimed = claim(conn, "f")
    assert sorted(task.step_slug for task in claimed) == sorted(slugs)
    for done, task in enumerate(claimed, start=1):
        complete(conn, task, task.step_slug)
        assert states(conn, run_id)["join"]["remaining_deps"] == 50 - done
    [task] = claim(conn, "f")
    assert task.input == {slug: slug for slug in slugs}
    complete(conn, task, [])
    assert run_of(conn, run_id)["output"] == {"join": []}


def test_a_root_map_of_10000_elements_starts_in_one_call(conn: Conn) -> None:
    """Row 42, without its clock."""
    define(conn, "f", Step("m", type="map"))
    run_id = start(conn, "f", list(range(10_000)))
    counts = (
        "select count(*), count(distinct t.message_id), count(distinct t.task_index), max(t.task_index)"
        " from pgflow.step_tasks as t join pgmq.q_f as q on q.msg_id = t.message_id"
        " and (q.message ->> 'task_index')::int = t.task_index"
        " where t.run_id = %s and t.status = 'queued'"
    )
    assert conn.execute(counts, [run_id]).fetchall() == [(10_000, 10_000, 10_000, 9_999)]
    assert states(conn, run_id)["m"]["remaining_tasks"] == 10_000


def test_49_chained_empty_maps_complete_in_the_call(conn: Conn) -> None:
    """Row 40: the last turn has to find nothing."""
    map_chain(conn, 49)
    run = run_of(conn, start(conn, "f", []))
    assert (run["status"], run["output"]) == ("completed", {"m49": []})


@pytest.mark.parametrize("length", [50, 51])
def test_a_longer_chain_of_empty_maps_is_refused_whole(conn: Conn, length: int) -> None:
    """Row 40."""
    map_chain(conn, length)
    with pytest.raises(psycopg.DatabaseError) as caught, conn.transaction():
        start(conn, "f", [])
    assert caught.value.diag.message_primary == LIMIT_TEXT
    assert conn.execute("select count(*) from pgflow.runs where flow_slug = 'f'").fetchall() == [(0,)]
