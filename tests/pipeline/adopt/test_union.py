"""A database that holds what diff cases hold, every third of them, is adopted without a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import DEV_VARIABLE
from pgsluice.pipeline.adopt import Adopted, Wish, adopt_database
from tests.conftest import EMBEDDED, LOCAL, server_url

from .union import CASES, load_union

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

# What the planner orders wrongly among many others: the baseline is then not its own.
UNPLANNED: Final = ("CLUSTER ON", "REPLICA IDENTITY USING", "e4_pk")
AFTER: Final = [
    path
    for path in sorted(CASES.glob("*/after.sql"), key=lambda path: ("event_trigger" in str(path), path))
    if not any(words in path.read_text(encoding="utf-8") for words in UNPLANNED)
]
UNION: Final = AFTER[::3]
FEWEST: Final = 60
SAMPLE: Final = AFTER[1::6]


@pytest.fixture
def adopt(
    tmp_path: Path, open_server: Callable[[str], DevServer], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Adopted]:
    """Adopt the database of a connection string; proved on the embedded server."""
    monkeypatch.setenv(DEV_VARIABLE, server_url(open_server(EMBEDDED)))

    def adopted(conninfo: str) -> Adopted:
        return adopt_database(tmp_path, Wish(conninfo), progress=lambda text: None)

    return adopted


def test_the_union_of_many_cases_is_adopted(
    open_server: Callable[[str], DevServer], adopt: Callable[[str], Adopted]
) -> None:
    with open_server(EMBEDDED).clone(None) as conninfo:
        loaded = load_union(conninfo, UNION)
        assert len(loaded) > FEWEST
        adopted = adopt(conninfo)
    assert unexpected_notes(adopted) == []
    assert [one.what for one in adopted.left_out] == []
    for schema in loaded:
        assert any(name.startswith(f"schema/app/{schema}/") for name in adopted.files), schema


@pytest.mark.parametrize("spec", LOCAL)
def test_cases_on_an_older_server_are_adopted_and_proved_on_a_newer_one(
    spec: str, open_server: Callable[[str], DevServer], adopt: Callable[[str], Adopted]
) -> None:
    with open_server(spec).clone(None) as conninfo:
        load_union(conninfo, SAMPLE)
        adopted = adopt(conninfo)
    assert unexpected_notes(adopted) == []


def unexpected_notes(adopted: Adopted) -> Sequence[str]:
    """Notes but those on versions of extensions."""
    return [note for note in adopted.notes if not (note.startswith("extension ") and " has version " in note)]
