"""Callbacks in a transaction that began before the run did: no time comes before the one it follows."""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest

from tests.sql.pgflow.engine import Step, claim, complete, define, run_of, start, states, statuses

CASES: Final[dict[str, tuple[Step, object, dict[str, str]]]] = {
    "violation": (Step("c", ["a"], "map"), {}, {"a": "failed", "c": "created"}),
    "empty map": (Step("c", ["a"], "map"), [], {"a": "completed", "c": "completed"}),
    "unmet skip": (Step("c", ["a"], required={"a": 1}), 0, {"a": "completed", "c": "skipped"}),
}


def in_order(row: dict[str, Any], *names: str) -> bool:
    """Whether the times that are set do not go back."""
    times = [row[name] for name in names if row[name] is not None]
    return times == sorted(times)


@pytest.mark.parametrize(("child", "output", "ended"), CASES.values(), ids=CASES)
def test_a_completion_in_an_older_transaction_ends_what_it_ends(
    database: str, child: Step, output: object, ended: dict[str, str]
) -> None:
    with psycopg.connect(database) as old, psycopg.connect(database) as new:
        old.execute("select now()")
        define(new, "f", "a", child)
        run_id = start(new, "f")
        (task,) = claim(new, "f")
        new.commit()
        row = complete(old, task, output)
        assert row is not None
        assert in_order(row, "queued_at", "started_at", "completed_at", "failed_at")
        assert statuses(old, run_id) == ended
        assert in_order(run_of(old, run_id), "started_at", "completed_at", "failed_at")
        ends = ("created_at", "started_at", "completed_at", "failed_at", "skipped_at")
        assert all(in_order(state, *ends) for state in states(old, run_id).values())
