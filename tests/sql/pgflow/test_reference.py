"""The pages on pgflow's SQL say what its catalog and its files say; `just docs` rewrites them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.sql.pgflow.function_files import ROOT, function_files
from tests.sql.pgflow.reference import render_locks, render_reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import psycopg

REFERENCE: Final = ROOT / "docs/reference/pgflow-sql.md"
LOCKS: Final = ROOT / "docs/locks.md"
MARKS: Final = ("<!-- functions: written by `just docs` -->\n", "<!-- end of functions -->\n")

# The order of docs/locks.md, by the words that notes name its members with.
ORDER: Final = (
    re.compile(r"flow's row"),
    re.compile(r"run's row|\bruns?'? rows?\b|rows? of (?:the )?runs?"),
    re.compile(r"\bstates?\b"),
    re.compile(r"worker's row"),
    re.compile(r"\btasks?\b"),
    re.compile(r"\bmessages?\b|\bqueue\b"),
)


def test_reference_is_what_the_catalog_says(
    conn: psycopg.Connection[Any], golden: Callable[[Path, str], None]
) -> None:
    golden(REFERENCE, render_reference(conn))


def test_locks_page_lists_every_function(golden: Callable[[Path, str], None]) -> None:
    before, mark, rest = LOCKS.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    assert (mark, end) == MARKS
    golden(LOCKS, "".join((before, mark, "\n", render_locks(), "\n", end, after)))


@pytest.mark.parametrize("name", function_files())
def test_note_names_its_locks_in_the_order_of_the_page(name: str) -> None:
    note, _, held = function_files()[name].locks.partition("The caller holds ")
    clause = re.split(r"[;(.]", note)[0]
    taken = [one for one in ORDER if not one.search(held)]
    places = [found.start() for one in taken if (found := one.search(clause))]
    assert places == sorted(places), clause
