"""A baseline for what the planner refuses to make from nothing: the schema files' own statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.errors import FindingError
from pgsluice.pipeline.proof import connected, server_lines
from pgsluice.pipeline.snapshot import compare
from pgsluice.pipeline.states import snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.lockfile import Lock
    from pgsluice.pipeline.states import States

HEADER: Final = (
    "-- adopted by pgsluice from a database; do not edit\n\nset local check_function_bodies = off;\n\n"
)
SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Baseline:
    """The first migration: its text, None for an empty schema, and the lock that goes with it.

    `note` is why the planner did not write it.
    """

    text: str | None
    lock: Lock
    note: str | None = None

    @property
    def told(self) -> str:
        """What a user must know of a baseline that was not planned."""
        return f"the baseline holds the schema files' own statements, because the planner says: {self.note}"


def write_loaded(states: States, *, progress: Callable[[str], None]) -> str:
    """The schema files' statements in the order in which they load, run on a scratch database.

    Raises:
        FindingError: They fail as a migration, or give another catalog than as a schema.
    """
    text = HEADER + "".join(f"{statement.text};\n\n" for statement in states.source.statements)
    progress("proving the baseline")
    with states.clone_of_base() as conninfo, connected(conninfo) as conn:
        try:
            with conn.transaction():
                conn.execute(text.encode(), prepare=False)
        except psycopg.Error as exc:
            raise FindingError("the baseline does not run", details=server_lines(exc)) from exc
        left = compare(states.after, snapshot_of(conn, states.target))
    if left:
        raise FindingError(
            "the baseline does not give what the schema files give",
            details=tuple(map(str, left[:SHOWN])),
        )
    return text.rstrip("\n") + "\n"
