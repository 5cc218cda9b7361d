"""Defining flows by hand: what `create_flow` and `add_step` store, refuse, and make of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.sql.pgflow.engine import Step, define, run_of, start, statuses
from tests.sql.pgflow.watching import race

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.sql.pgflow.engine import Conn

VALID_SLUGS: Final = ("a", "a_b", "aB1", "_a", "a__b_", "Run", "s" * 128)
INVALID_SLUGS: Final = ("", "s" * 129, "a-b", "a b", "1a", "run", "a\n")

# arguments of add_step for the flow `f` with the steps `a` and `b`: the constraint that refuses them
REFUSED: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"flow_slug": "g"}, "steps_flow_slug_fkey"),
    ({"deps_slugs": ["nobody"]}, "deps_flow_slug_dep_slug_fkey"),
    ({"deps_slugs": ["a", "nobody"]}, "deps_flow_slug_dep_slug_fkey"),
    ({"deps_slugs": ["c"]}, "deps_check"),
    ({"step_slug": "a-b"}, "steps_step_slug_check"),
    ({"step_slug": "run"}, "steps_step_slug_check"),
    ({"step_slug": ""}, "steps_step_slug_check"),
    ({"step_type": "batch"}, "steps_step_type_check"),
    ({"when_unmet": "ignore"}, "when_unmet_is_valid"),
    ({"when_exhausted": "retry"}, "when_exhausted_is_valid"),
    ({"required_input_pattern": Jsonb([])}, "required_input_pattern_is_object"),
    ({"required_input_pattern": Jsonb(None)}, "required_input_pattern_is_object"),
    ({"forbidden_input_pattern": Jsonb([{}])}, "forbidden_input_pattern_is_object"),
    ({"max_attempts": -1}, "opt_max_attempts_is_nonnegative"),
    ({"base_delay": -1}, "opt_base_delay_is_nonnegative"),
    ({"timeout": 0}, "opt_timeout_is_positive"),
    ({"start_delay": -1}, "opt_start_delay_is_nonnegative"),
)


def create_flow(conn: Conn, **arguments: Any) -> dict[str, Any]:
    """Call `create_flow` by named arguments: the flow's row."""
    return _one(conn, "create_flow", arguments)


def add_step(conn: Conn, **arguments: Any) -> dict[str, Any]:
    """Call `add_step` by named arguments: the step's row."""
    return _one(conn, "add_step", arguments)


def parents(conn: Conn, flow: str, step: str) -> list[str]:
    """The stored parents of a step."""
    query = "select dep_slug from pgflow.deps where flow_slug = %s and step_slug = %s order by dep_slug"
    return [row[0] for row in conn.execute(query, [flow, step])]


def queues(conn: Conn) -> list[str]:
    """The names of all queues, as they are spelled."""
    return [row[0] for row in conn.execute("select queue_name from pgmq.meta order by queue_name")]


def options(row: dict[str, Any]) -> tuple[int | None, ...]:
    """The options of a flow's or a step's row."""
    return row["opt_max_attempts"], row["opt_base_delay"], row["opt_timeout"]


@pytest.mark.parametrize("slug", VALID_SLUGS)
def test_a_step_may_bear_a_valid_slug(conn: Conn, slug: str) -> None:
    """Row 1."""
    define(conn, "f")
    assert add_step(conn, flow_slug="f", step_slug=slug)["step_slug"] == slug


@pytest.mark.parametrize("slug", INVALID_SLUGS)
def test_a_flow_with_an_invalid_slug_is_refused(conn: Conn, slug: str) -> None:
    """Rows 1 and 5."""
    with pytest.raises(psycopg.errors.CheckViolation, match='check constraint "slug_is_valid"') as caught:
        create_flow(conn, flow_slug=slug)
    assert caught.value.diag.constraint_name == "slug_is_valid"


def test_a_flow_without_a_slug_is_refused(conn: Conn) -> None:
    with pytest.raises(psycopg.errors.NotNullViolation):
        create_flow(conn, flow_slug=None)


def test_options_of_a_flow_that_are_not_given_or_null_have_defaults(conn: Conn) -> None:
    """Row 3."""
    assert options(create_flow(conn, flow_slug="f")) == (3, 5, 60)
    nothing = {"max_attempts": None, "base_delay": None, "timeout": None}
    assert options(create_flow(conn, flow_slug="g", **nothing)) == (3, 5, 60)


def test_options_of_a_flow_that_are_given_are_kept(conn: Conn) -> None:
    """Row 3."""
    row = create_flow(conn, flow_slug="f", max_attempts=0, base_delay=0, timeout=1)
    assert options(row) == (0, 0, 1)
    assert options(create_flow(conn, flow_slug="g", timeout=7)) == (3, 5, 7)


@pytest.mark.parametrize(
    ("option", "value", "constraint"),
    [
        ("max_attempts", -1, "opt_max_attempts_is_nonnegative"),
        ("base_delay", -1, "opt_base_delay_is_nonnegative"),
        ("timeout", 0, "opt_timeout_is_positive"),
    ],
)
def test_an_option_of_a_flow_out_of_range_is_refused(
    conn: Conn, option: str, value: int, constraint: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        create_flow(conn, flow_slug="f", **{option: value})
    assert caught.value.diag.constraint_name == constraint


def test_an_existing_flow_is_returned_unchanged(conn: Conn) -> None:
    """Row 4."""
    first = create_flow(conn, flow_slug="f", max_attempts=10, base_delay=15, timeout=30)
    again = create_flow(conn, flow_slug="f", max_attempts=1, base_delay=2, timeout=3)
    assert again == first
    assert conn.execute("select count(*) from pgflow.flows").fetchone() == (1,)
    assert queues(conn) == ["f"]


def test_a_flow_has_a_queue_of_its_own_spelling(conn: Conn) -> None:
    create_flow(conn, flow_slug="MyFlow")
    assert queues(conn) == ["MyFlow"]
    assert conn.execute("select pgmq.send('MyFlow', '{}')").fetchone() == (1,)


@pytest.mark.parametrize("spelling", ["MyFlow", "myflow", "MYFLOW"])
def test_a_queue_of_the_name_in_any_spelling_is_taken_over(conn: Conn, spelling: str) -> None:
    conn.execute("select pgmq.create(%s)", [spelling])
    conn.execute("select pgmq.send(%s, '1')", [spelling])
    create_flow(conn, flow_slug="MyFlow")
    assert queues(conn) == [spelling]
    assert conn.execute("select message from pgmq.read('MyFlow', 0, 9)").fetchall() == [(1,)]


def test_flows_whose_slugs_differ_in_case_share_one_queue(conn: Conn) -> None:
    define(conn, "MyFlow", "a")
    define(conn, "myflow", "a")
    assert queues(conn) == ["MyFlow"]


def test_an_existing_flow_without_a_queue_gets_one(conn: Conn) -> None:
    create_flow(conn, flow_slug="f")
    conn.execute("select pgmq.drop_queue('f')")
    create_flow(conn, flow_slug="f")
    assert queues(conn) == ["f"]


def test_a_slug_too_long_for_a_queue_is_refused_by_the_queue(conn: Conn) -> None:
    create_flow(conn, flow_slug="s" * 47)
    with pytest.raises(psycopg.errors.RaiseException, match="maximum length is 47 characters"):
        create_flow(conn, flow_slug="s" * 48)


def test_steps_are_numbered_in_order_for_each_flow(conn: Conn) -> None:
    """Row 9."""
    define(conn, "f")
    define(conn, "g")
    added = [
        add_step(conn, flow_slug=flow, step_slug=step)["step_index"]
        for flow, step in [("f", "c"), ("g", "x"), ("f", "b"), ("f", "a"), ("g", "c")]
    ]
    assert added == [0, 0, 1, 2, 1]


def test_a_step_inherits_and_runs_unconditionally_by_default(conn: Conn) -> None:
    define(conn, "f")
    row = add_step(conn, flow_slug="f", step_slug="a")
    assert options(row) == (None, None, None)
    assert row | {"created_at": None} == {
        "flow_slug": "f",
        "step_slug": "a",
        "step_type": "single",
        "step_index": 0,
        "deps_count": 0,
        "opt_max_attempts": None,
        "opt_base_delay": None,
        "opt_timeout": None,
        "opt_start_delay": None,
        "required_input_pattern": None,
        "forbidden_input_pattern": None,
        "when_unmet": "skip",
        "when_exhausted": "fail",
        "created_at": None,
    }


def test_a_step_keeps_what_it_is_given(conn: Conn) -> None:
    define(conn, "f", "a", "b")
    row = add_step(
        conn,
        flow_slug="f",
        step_slug="c",
        deps_slugs=["b", "a"],
        max_attempts=0,
        base_delay=0,
        timeout=1,
        start_delay=0,
        step_type=None,
        required_input_pattern=Jsonb({"a": 1}),
        forbidden_input_pattern=Jsonb({}),
        when_unmet="fail",
        when_exhausted="skip-cascade",
    )
    assert options(row) == (0, 0, 1)
    assert (row["opt_start_delay"], row["step_type"], row["deps_count"]) == (0, "single", 2)
    assert (row["required_input_pattern"], row["forbidden_input_pattern"]) == ({"a": 1}, {})
    assert (row["when_unmet"], row["when_exhausted"]) == ("fail", "skip-cascade")
    assert parents(conn, "f", "c") == ["a", "b"]


def test_an_existing_step_is_returned_unchanged(conn: Conn) -> None:
    """Row 10."""
    define(conn, "f", "a", "b")
    first = add_step(conn, flow_slug="f", step_slug="c", deps_slugs=["a", "b"], timeout=7)
    warnings = _warnings(conn)
    again = add_step(
        conn,
        flow_slug="f",
        step_slug="c",
        deps_slugs=["b", "a"],
        timeout=8,
        when_unmet="fail",
        required_input_pattern=Jsonb({"x": 1}),
    )
    assert again == first
    assert conn.execute("select count(*) from pgflow.steps").fetchone() == (3,)
    assert warnings == []


@pytest.mark.parametrize(
    ("given", "shown"), [(["b"], "b"), (["a", "b"], "a, b"), ([], ""), (["nobody"], "nobody")]
)
def test_an_existing_step_keeps_its_parents_and_says_so(conn: Conn, given: list[str], shown: str) -> None:
    define(conn, "f", "a", "b")
    first = add_step(conn, flow_slug="f", step_slug="c", deps_slugs=["a"])
    warnings = _warnings(conn)
    again = add_step(conn, flow_slug="f", step_slug="c", deps_slugs=given)
    assert again == first
    assert parents(conn, "f", "c") == ["a"]
    assert warnings == [f"step c of flow f exists and keeps its parents [a]; given were [{shown}]"]


@pytest.mark.parametrize(("arguments", "constraint"), REFUSED)
def test_a_step_is_refused_by_the_constraint_of_this_name(
    conn: Conn, arguments: dict[str, Any], constraint: str
) -> None:
    """Row 11."""
    define(conn, "f", "a", "b")
    with pytest.raises(psycopg.IntegrityError, match=f'constraint "{constraint}"') as caught:
        add_step(conn, **{"flow_slug": "f", "step_slug": "c"} | arguments)
    assert caught.value.diag.constraint_name == constraint


@pytest.mark.parametrize("argument", ["step_slug", "when_unmet", "when_exhausted"])
def test_a_step_without_slug_or_mode_is_refused(conn: Conn, argument: str) -> None:
    define(conn, "f")
    with pytest.raises(psycopg.errors.NotNullViolation):
        add_step(conn, **{"flow_slug": "f", "step_slug": "a"} | {argument: None})


@pytest.mark.parametrize("given", [[], ["a"], None])
def test_a_map_has_no_or_one_parent(conn: Conn, given: list[str] | None) -> None:
    """Row 12."""
    define(conn, "f", "a")
    row = add_step(conn, flow_slug="f", step_slug="m", deps_slugs=given, step_type="map")
    assert (row["step_type"], row["deps_count"]) == ("map", len(given or []))
    assert parents(conn, "f", "m") == (given or [])


@pytest.mark.parametrize(
    ("given", "shown"), [(["a", "b"], "2 were provided: a, b"), (["b", "c", "a"], "3 were provided: b, c, a")]
)
def test_a_map_with_several_parents_is_refused(conn: Conn, given: list[str], shown: str) -> None:
    """Row 12."""
    define(conn, "f", "a", "b")
    with pytest.raises(psycopg.DatabaseError) as caught:
        add_step(conn, flow_slug="f", step_slug="m", deps_slugs=given, step_type="map")
    assert caught.value.diag.message_primary == f'Map step "m" can have at most one dependency, but {shown}'


def test_a_parent_named_twice_is_refused(conn: Conn) -> None:
    define(conn, "f", "a", "b")
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        add_step(conn, flow_slug="f", step_slug="c", deps_slugs=["a", "b", "a"])
    assert caught.value.diag.message_primary == "step c of flow f names a parent twice: a, b, a"


def test_a_parent_without_a_name_is_refused(conn: Conn) -> None:
    define(conn, "f", "a")
    with pytest.raises(psycopg.errors.NotNullViolation):
        add_step(conn, flow_slug="f", step_slug="b", deps_slugs=["a", None])


def test_steps_that_are_added_at_once_follow_one_another(database: str) -> None:
    with race(database) as two:
        define(two.a, "f")
        two.a.commit()
        first = add_step(two.a, flow_slug="f", step_slug="a")
        pending = two.b_waits_for_a(lambda b: add_step(b, flow_slug="f", step_slug="b"))
        two.a.commit()
        assert (first["step_index"], pending.result(timeout=10)["step_index"]) == (0, 1)


def test_a_step_that_is_added_during_a_start_is_not_in_its_run(database: str) -> None:
    with race(database) as two:
        define(two.a, "f", "a")
        two.a.commit()
        run_id = start(two.a, "f")
        pending = two.b_waits_for_a(lambda b: add_step(b, flow_slug="f", step_slug="b"))
        two.a.commit()
        assert pending.result(timeout=10)["step_index"] == 1
        two.b.commit()
        assert statuses(two.a, run_id) == {"a": "started"}


def test_a_start_waits_for_an_open_new_step_and_has_it(database: str) -> None:
    with race(database) as two:
        define(two.a, "f", "a")
        two.a.commit()
        add_step(two.a, flow_slug="f", step_slug="b")
        pending = two.b_waits_for_a(lambda b: start(b, "f"))
        two.a.commit()
        run_id = pending.result(timeout=10)
        assert statuses(two.b, run_id) == {"a": "started", "b": "started"}
        assert run_of(two.b, run_id)["remaining_steps"] == 2


def test_a_flow_that_is_created_twice_at_once_is_created_once(database: str) -> None:
    with race(database) as two:
        first = create_flow(two.a, flow_slug="MyFlow", timeout=7)
        pending = two.b_waits_for_a(lambda b: create_flow(b, flow_slug="MyFlow", timeout=8))
        two.a.commit()
        assert pending.result(timeout=10) == first
        two.b.commit()
        assert queues(two.watcher) == ["MyFlow"]


def test_flows_that_share_a_queue_make_it_once_when_created_at_once(database: str) -> None:
    with race(database) as two:
        define(two.a, "MyFlow", "a")
        pending = two.b_waits_for_a(lambda b: define(b, "myflow", Step("b")))
        two.a.commit()
        pending.result(timeout=10)
        two.b.commit()
        assert queues(two.watcher) == ["MyFlow"]


def _one(conn: Conn, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    query = f"select * from pgflow.{function}({_named(arguments)})"
    with conn.cursor(row_factory=dict_row) as cursor:
        (row,) = cursor.execute(query.encode(), arguments).fetchall()
    return dict(row)


def _named(names: Sequence[str] | dict[str, Any]) -> str:
    return ", ".join(f"{name} => %({name})s" for name in names)


def _warnings(conn: Conn) -> list[str]:
    """A list that the connection's warnings are added to."""
    heard: list[str] = []
    conn.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    return heard


def test_create_flow_gives_an_entry_without_tables_its_tables_again(conn: Conn) -> None:
    conn.execute("select pgmq.create('MyFlow')")
    conn.execute("drop table pgmq.q_myflow")
    conn.execute("select pgflow.create_flow('myflow')")
    assert conn.execute("select to_regclass('pgmq.q_myflow') is not null").fetchone() == (True,)
    assert conn.execute("select queue_name from pgmq.meta").fetchall() == [("MyFlow",)]
