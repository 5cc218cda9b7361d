"""Steps are taken in the order of their definition, whatever the order of their names and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.sql.pgflow.engine import Step, claim, complete, define, install_realtime, start, states
from tests.sql.pgflow.watching import happened

if TYPE_CHECKING:
    from tests.sql.pgflow.engine import Conn

DEFINED: Final = ("z", "m", "a")
REWRITE: Final = "update pgflow.step_states set error_message = null where step_slug = %s"
REWRITE_DEPS: Final = """
with gone as (delete from pgflow.deps returning flow_slug, dep_slug, step_slug)
insert into pgflow.deps (flow_slug, dep_slug, step_slug)
select g.flow_slug, g.dep_slug, g.step_slug from gone as g order by g.step_slug
"""
TOLD: Final[dict[str, list[str]]] = {
    "fail": ["step:z:failed", "run:failed"],
    "skip": [*(f"step:{slug}:skipped" for slug in DEFINED), "run:completed"],
    "skip-cascade": [*(f"step:{slug}:skipped" for slug in DEFINED), "run:completed"],
}


def turn_round(conn: Conn) -> None:
    """Leave states and edges in their tables in the order opposite to that of definition."""
    for slug in reversed(DEFINED):
        conn.execute(REWRITE, [slug])
    conn.execute(REWRITE_DEPS)


@pytest.mark.parametrize("mode", TOLD)
def test_unmet_conditions_are_decided_in_the_order_of_definition(conn: Conn, mode: str) -> None:
    """Rows 84, 85."""
    install_realtime(conn)
    define(conn, "f", "p", *(Step(slug, ["p"], required={"p": 1}, when_unmet=mode) for slug in DEFINED))
    run_id = start(conn, "f", {})
    turn_round(conn)
    (task,) = claim(conn, "f")
    before = happened(conn, run_id)
    complete(conn, task, 0)
    assert happened(conn, run_id) == [*before, "step:p:completed", *TOLD[mode]]


def test_a_run_s_states_are_given_in_the_order_of_definition(conn: Conn) -> None:
    define(conn, "f", *DEFINED)
    run_id = start(conn, "f")
    turn_round(conn)
    row = conn.execute("select pgflow.get_run_with_states(%s)", [run_id]).fetchone()
    assert row is not None
    assert [state["step_slug"] for state in row[0]["steps"]] == list(DEFINED)


def test_an_output_that_no_map_can_use_is_told_of_the_first_map(conn: Conn) -> None:
    """Row 65."""
    define(conn, "f", "p", *(Step(slug, ["p"], "map") for slug in DEFINED))
    run_id = start(conn, "f")
    turn_round(conn)
    (task,) = claim(conn, "f")
    complete(conn, task, 0)
    text = "[TYPE_VIOLATION] Map step z expects array input but dependency p produced number"
    assert states(conn, run_id)["p"]["error_message"] == text
