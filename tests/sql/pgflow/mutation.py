"""Copies of functions with one guard removed, installed for the length of a test's transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sql.pgflow.engine import Conn

DEFINITION: Final = "select pg_catalog.pg_get_functiondef(%s::regprocedure)"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One replacement in the source of one function, named with its argument types."""

    function: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Guard:
    """What is seen as long as a guard stands, and what exactly is seen without it."""

    name: str
    observe: Callable[[Conn], object]
    right: object
    wrong: object
    removal: Mutation
    second_removal: Mutation | None = None


def mutate(conn: Conn, mutation: Mutation) -> None:
    """Replace a function by its mutated copy; the text to replace has to be there, once."""
    row = conn.execute(DEFINITION, [mutation.function]).fetchone()
    assert row is not None
    source = str(row[0])
    found = source.count(mutation.old)
    assert found == 1, f"{mutation.function} has this text {found} times, not once:\n{mutation.old}"
    conn.execute(source.replace(mutation.old, mutation.new).encode())


def prove(conn: Conn, guard: Guard) -> None:
    """Assert what is seen with the guard and, in another part of the transaction, without it."""
    with conn.transaction(force_rollback=True):
        assert guard.observe(conn) == guard.right
    with conn.transaction(force_rollback=True):
        mutate(conn, guard.removal)
        if guard.second_removal is not None:
            mutate(conn, guard.second_removal)
        assert guard.observe(conn) == guard.wrong, f"without the guard {guard.name!r} nothing fails as told"
