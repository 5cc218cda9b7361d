"""Shapes of flows: how one becomes a flow, how a flow shows its own, and how two differ in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.pgflow.engine import Step, define

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

NEVER: Final[dict[str, Any]] = {"defined": False}
UNKNOWN: Final[dict[str, Any]] = {"steps": []}


def when(pattern: dict[str, Any]) -> dict[str, Any]:
    """A pattern as a shape wraps it."""
    return {"defined": True, "value": pattern}


def step(slug: str, **keys: Any) -> dict[str, Any]:
    """A step of a shape, with defaults for what is not given."""
    return {
        "slug": slug,
        "stepType": "single",
        "dependencies": [],
        "whenUnmet": "skip",
        "whenExhausted": "fail",
        "requiredInputPattern": NEVER,
        "forbiddenInputPattern": NEVER,
    } | keys


def shape(*steps: dict[str, Any]) -> dict[str, Any]:
    """A shape of these steps."""
    return {"steps": list(steps)}


RICH: Final = shape(
    step("z"),
    step("a", stepType="map", whenUnmet="fail", whenExhausted="skip"),
    step(
        "both",
        dependencies=["a", "z"],
        whenUnmet="skip-cascade",
        whenExhausted="skip-cascade",
        requiredInputPattern=when({"z": {"n": 9007199254740993, "list": [1, None, "é"]}}),
        forbiddenInputPattern=when({}),
    ),
    step("each", stepType="map", dependencies=["both"], forbiddenInputPattern=when({"a": [{}]})),
)

# shapes that differ in one aspect (or in several), and the words for it
DIFFERENT: Final[dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]]] = {
    "a step less in the first": (
        shape(step("a")),
        shape(step("a"), step("x")),
        ["Step count differs: 1 vs 2", "Step at index 1: missing in first shape (second has 'x')"],
    ),
    "steps less in the second": (
        shape(step("a"), step("x"), step("y")),
        shape(step("a")),
        [
            "Step count differs: 3 vs 1",
            "Step at index 1: missing in second shape (first has 'x')",
            "Step at index 2: missing in second shape (first has 'y')",
        ],
    ),
    "no steps in the first": (
        UNKNOWN,
        shape(step("a")),
        ["Step count differs: 0 vs 1", "Step at index 0: missing in first shape (second has 'a')"],
    ),
    "slug": (shape(step("a")), shape(step("b")), ["Step at index 0: slug differs 'a' vs 'b'"]),
    "case of a slug": (shape(step("a")), shape(step("A")), ["Step at index 0: slug differs 'a' vs 'A'"]),
    "order": (
        shape(step("a"), step("b")),
        shape(step("b"), step("a")),
        ["Step at index 0: slug differs 'a' vs 'b'", "Step at index 1: slug differs 'b' vs 'a'"],
    ),
    "type": (
        shape(step("a")),
        shape(step("a", stepType="map")),
        ["Step at index 0: type differs 'single' vs 'map'"],
    ),
    "parents": (
        shape(step("a", dependencies=["b", "a"])),
        shape(step("a", dependencies=["c"])),
        ["Step at index 0: dependencies differ [a, b] vs [c]"],
    ),
    "parents on one side": (
        shape(step("a", dependencies=["b"])),
        shape(step("a")),
        ["Step at index 0: dependencies differ [b] vs []"],
    ),
    "whenUnmet": (
        shape(step("a", whenUnmet="skip-cascade")),
        shape(step("a")),
        ["Step at index 0: whenUnmet differs 'skip-cascade' vs 'skip'"],
    ),
    "whenExhausted": (
        shape(step("a")),
        shape(step("a", whenExhausted="skip-cascade")),
        ["Step at index 0: whenExhausted differs 'fail' vs 'skip-cascade'"],
    ),
    "required on one side": (
        shape(step("a")),
        shape(step("a", requiredInputPattern=when({"n": 1}))),
        [
            "Step at index 0: requiredInputPattern differs"
            """ '{"defined": false}' vs '{"value": {"n": 1}, "defined": true}'"""
        ],
    ),
    "required, not the same": (
        shape(step("a", requiredInputPattern=when({"n": 1}))),
        shape(step("a", requiredInputPattern=when({"n": None}))),
        [
            "Step at index 0: requiredInputPattern differs"
            """ '{"value": {"n": 1}, "defined": true}' vs '{"value": {"n": null}, "defined": true}'"""
        ],
    ),
    "forbidden": (
        shape(step("a", forbiddenInputPattern=when({}))),
        shape(step("a")),
        [
            "Step at index 0: forbiddenInputPattern differs"
            """ '{"value": {}, "defined": true}' vs '{"defined": false}'"""
        ],
    ),
    "a mode against none, which is the default": (
        shape({"slug": "a", "whenUnmet": "fail"}),
        shape({"slug": "a", "whenExhausted": "skip"}),
        [
            "Step at index 0: whenUnmet differs 'fail' vs 'skip'",
            "Step at index 0: whenExhausted differs 'fail' vs 'skip'",
        ],
    ),
    "everything, at the second step and beyond the tenth": (
        shape(
            *(step(f"s{n}") for n in range(10)),
            step("a", stepType="map", whenUnmet="fail", requiredInputPattern=when({})),
        ),
        shape(
            step("s0"),
            step("b", stepType="map", dependencies=["s0"]),
            *(step(f"s{n}") for n in range(2, 10)),
            step("a", whenExhausted="skip", forbiddenInputPattern=when({})),
            step("last"),
        ),
        [
            "Step count differs: 11 vs 12",
            "Step at index 1: slug differs 's1' vs 'b'",
            "Step at index 1: type differs 'single' vs 'map'",
            "Step at index 1: dependencies differ [] vs [s0]",
            "Step at index 10: type differs 'map' vs 'single'",
            "Step at index 10: whenUnmet differs 'fail' vs 'skip'",
            "Step at index 10: whenExhausted differs 'fail' vs 'skip'",
            "Step at index 10: requiredInputPattern differs"
            """ '{"value": {}, "defined": true}' vs '{"defined": false}'""",
            "Step at index 10: forbiddenInputPattern differs"
            """ '{"defined": false}' vs '{"value": {}, "defined": true}'""",
            "Step at index 11: missing in first shape (second has 'last')",
        ],
    ),
}

EQUAL: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "no steps": (UNKNOWN, UNKNOWN),
    "everything the same": (RICH, RICH),
    "order of parents": (
        shape(step("a", dependencies=["b", "A", "a"])),
        shape(step("a", dependencies=["a", "b", "A"])),
    ),
    "options": (
        {"steps": [step("a", options={"timeout": 1})], "options": {"maxAttempts": 2}},
        {"steps": [step("a", options={"startDelay": 9})]},
    ),
    "keys left out": (shape({"slug": "a"}), shape(step("a"))),
    "keys that are null": (
        shape(dict.fromkeys(step("a")) | {"slug": "a"}),
        shape({"slug": "a"}),
    ),
    "spelling of a number": (
        shape(step("a", requiredInputPattern=when({"n": 1.0}))),
        shape(step("a", requiredInputPattern=when({"n": 1}))),
    ),
}


def create(conn: Conn, flow: str, value: dict[str, Any]) -> None:
    """Create a flow from a shape."""
    conn.execute(
        "select pgflow._create_flow_from_shape(p_flow_slug => %s, p_shape => %s)", [flow, Jsonb(value)]
    )


def shape_of(conn: Conn, flow: str) -> Any:
    """The shape of a stored flow."""
    row = conn.execute("select pgflow._get_flow_shape(p_flow_slug => %s)", [flow]).fetchone()
    assert row is not None
    return row[0]


def compare(conn: Conn, first: dict[str, Any], second: dict[str, Any]) -> Any:
    """The differences between two shapes."""
    row = conn.execute(
        "select pgflow._compare_flow_shapes(p_local => %s, p_db => %s)", [Jsonb(first), Jsonb(second)]
    ).fetchone()
    assert row is not None
    return row[0]


def test_a_flow_made_of_a_shape_shows_the_same_shape(conn: Conn) -> None:
    """Row 16."""
    create(conn, "f", RICH)
    assert shape_of(conn, "f") == RICH


def test_a_flow_defined_by_hand_shows_its_shape(conn: Conn) -> None:
    """Rows 16 and 17: parents are sorted by byte, whatever the order that they were given in."""
    define(
        conn,
        "f",
        "z",
        "a",
        "B",
        Step("c", deps=["z", "a", "B"], forbidden={"a": None}, when_unmet="skip-cascade"),
        Step("m", deps=["c"], type="map", timeout=9, required={}, when_exhausted="skip"),
        timeout=7,
    )
    assert shape_of(conn, "f") == shape(
        step("z"),
        step("a"),
        step("B"),
        step(
            "c",
            dependencies=["B", "a", "z"],
            forbiddenInputPattern=when({"a": None}),
            whenUnmet="skip-cascade",
        ),
        step("m", stepType="map", dependencies=["c"], requiredInputPattern=when({}), whenExhausted="skip"),
    )


def test_steps_are_shown_in_order_of_definition_beyond_the_tenth(conn: Conn) -> None:
    slugs = [f"s{n}" for n in range(12)][::-1]
    define(conn, "f", *slugs)
    assert [one["slug"] for one in shape_of(conn, "f")["steps"]] == slugs


@pytest.mark.parametrize("slug", ["nobody", "F", None])
def test_an_unknown_flow_has_no_steps(conn: Conn, slug: str) -> None:
    """Row 18."""
    define(conn, "f", "a")
    assert shape_of(conn, slug) == UNKNOWN


def test_options_of_a_shape_are_stored(conn: Conn) -> None:
    create(
        conn,
        "f",
        {
            "options": {"maxAttempts": 9, "baseDelay": 8, "timeout": 7},
            "steps": [
                step("a", options={"maxAttempts": 0, "baseDelay": 0, "timeout": 1, "startDelay": 2}),
                step("b", options={"timeout": 4}),
                step("c"),
            ],
        },
    )
    flow = conn.execute("select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows").fetchall()
    steps = conn.execute(
        "select opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay"
        " from pgflow.steps order by step_index"
    ).fetchall()
    assert flow == [(9, 8, 7)]
    assert steps == [(0, 0, 1, 2), (None, None, 4, None), (None, None, None, None)]


def test_keys_that_a_shape_leaves_out_have_defaults(conn: Conn) -> None:
    create(conn, "f", shape({"slug": "a"}, dict.fromkeys(step("b")) | {"slug": "b"}))
    assert shape_of(conn, "f") == shape(step("a"), step("b"))
    row = conn.execute("select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows").fetchone()
    assert row == (3, 5, 60)


def test_a_pattern_counts_only_when_it_is_said_to_be_defined(conn: Conn) -> None:
    create(conn, "f", shape(step("a", requiredInputPattern={"defined": False, "value": {"n": 1}})))
    assert shape_of(conn, "f") == shape(step("a"))


@pytest.mark.parametrize(
    ("bad", "constraint"),
    [
        (step("a-b"), "steps_step_slug_check"),
        (step("b", stepType="batch"), "steps_step_type_check"),
        (step("b", dependencies=["nobody"]), "deps_flow_slug_dep_slug_fkey"),
        (step("b", whenUnmet="ignore"), "when_unmet_is_valid"),
        (step("b", requiredInputPattern={"defined": True, "value": []}), "required_input_pattern_is_object"),
        (step("b", options={"startDelay": -1}), "opt_start_delay_is_nonnegative"),
    ],
)
def test_a_bad_step_of_a_shape_is_refused(conn: Conn, bad: dict[str, Any], constraint: str) -> None:
    with pytest.raises(psycopg.IntegrityError) as caught:
        create(conn, "f", shape(step("a"), bad))
    assert caught.value.diag.constraint_name == constraint


@pytest.mark.parametrize("case", DIFFERENT)
def test_differences_are_put_in_these_words(conn: Conn, case: str) -> None:
    """Row 19."""
    first, second, words = DIFFERENT[case]
    assert compare(conn, first, second) == words


@pytest.mark.parametrize("case", EQUAL)
def test_shapes_are_equal_in_spite_of(conn: Conn, case: str) -> None:
    first, second = EQUAL[case]
    assert compare(conn, first, second) == []
    assert compare(conn, second, first) == []


def test_a_stored_flow_equals_the_shape_it_was_made_of(conn: Conn) -> None:
    create(conn, "f", RICH)
    assert compare(conn, RICH, shape_of(conn, "f")) == []
