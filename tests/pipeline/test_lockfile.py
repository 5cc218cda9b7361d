"""The lock: same bytes for same facts, and nothing misread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsluice.errors import InputError
from pgsluice.pipeline.checksum import ConflictMarkersError
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock, digest_templates, read_lock

if TYPE_CHECKING:
    from pathlib import Path

LOCK = Lock(
    schema="ab12",
    templates={"b.sql.j2": "2", "a.sql.j2": "1"},
    tool="0.1.0",
    postgres=18,
    open=("1_a.sql",),
    history="3f=",
)


def test_a_lock_is_sorted_toml() -> None:
    assert LOCK.render().decode() == (
        "# Written by `pgsluice build`; do not edit.\n"
        'history = "3f="\n'
        'open = "1_a.sql"\n'
        "postgres = 18\n"
        'schema = "ab12"\n'
        'tool = "0.1.0"\n'
        "\n"
        "[templates]\n"
        '"a.sql.j2" = "1"\n'
        '"b.sql.j2" = "2"\n'
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(
    st.builds(
        Lock,
        TEXT,
        st.dictionaries(TEXT, TEXT),
        TEXT,
        st.integers(0, 99),
        st.lists(TEXT).map(tuple),
        st.booleans(),
        TEXT,
        TEXT,
    )
)
def test_a_lock_reads_back(tmp_path_factory: pytest.TempPathFactory, lock: Lock) -> None:
    folder = tmp_path_factory.mktemp("lock")
    (folder / LOCK_NAME).write_bytes(lock.render())
    assert read_lock(folder) == lock


def test_several_open_files_stand_on_lines_of_their_own() -> None:
    lock = Lock("ab12", tool="0.1.0", postgres=18, open=("1_a.sql", "2_a_retire.sql"), online=True)
    assert lock.render().decode() == (
        "# Written by `pgsluice build`; do not edit.\n"
        "online = true\n"
        'open = [\n  "1_a.sql",\n  "2_a_retire.sql",\n]\n'
        "postgres = 18\n"
        'schema = "ab12"\n'
        'tool = "0.1.0"\n'
    )


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema = 1\n", "schema has the wrong type"),
        ("postgres = true\n", "postgres has the wrong type"),
        ("colour = 1\n", "unknown key colour"),
        ("online = 1\n", "online has the wrong type"),
        ("open = 1\n", "open has the wrong type"),
        ("open = [1]\npostgres = 18\nschema = ''\ntool = ''\n", "open has the wrong type"),
        ("postgres = 18\ntool = ''\n", "schema is missing"),
        ("[templates]\na = 1\n", "templates has the wrong type"),
        ("schema\n", "Expected '=' after a key in a key/value pair (at line 1, column 7)"),
    ],
)
def test_a_broken_lock_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(InputError) as raised:
        read_lock(tmp_path)
    assert str(raised.value) == (f"pgsluice.lock: not a lock that this version of pgsluice wrote: {message}")


def test_conflict_markers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / LOCK_NAME).write_text("postgres = 18\n<<<<<<< HEAD\n")
    with pytest.raises(ConflictMarkersError) as raised:
        read_lock(tmp_path)
    assert str(raised.value) == (
        "pgsluice.lock:2: conflict marker <<<<<<< from a merge\nhint: pgsluice rebase"
    )


def test_templates_are_digested_by_relative_name(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "a.sql.j2").write_text("")
    (tmp_path / "parts/_b.sql.j2").write_text("x")
    (tmp_path / "README.md").write_text("")
    assert list(digest_templates(tmp_path)) == ["a.sql.j2", "parts/_b.sql.j2"]
    assert digest_templates(tmp_path / "none") == {}
