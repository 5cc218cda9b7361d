"""Order, versions and names of migrations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import pytest

from pgsluice.config import Target
from pgsluice.errors import InputError
from pgsluice.pipeline.history import (
    Migration,
    check_name,
    is_transactional,
    next_version,
    order_history,
    out_of_number,
    pad_numbers,
    read_history,
    split_filename,
)

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def target(versioning: Literal["timestamp", "sequence"]) -> Target:
    """A target of one style; its folders are not looked at."""
    nowhere = Path("/nonexistent")
    return Target(
        name="app",
        schema_dir=nowhere,
        migrations_dir=nowhere,
        templates_dir=nowhere,
        manages=("*",),
        versioning=versioning,
    )


def history(*names: str) -> tuple[Migration, ...]:
    """Migrations of these file names, in this order."""
    parts = ((name, *name.removesuffix(".sql").partition("_")[::2]) for name in names)
    return tuple(Migration(version, rest, Path(name)) for name, version, rest in parts)


def test_history_is_in_byte_order_without_ignored_files(tmp_path: Path) -> None:
    for name in ("9_last.sql", "10_first.sql", "2.sql", "1_a_b.sql"):
        (tmp_path / name).write_text("select 1;\n")
    (tmp_path / "3_skip.sql").write_text("-- atlas:sum ignore\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "below/4_x.sql").write_text("")
    found = [(each.version, each.name, each.filename) for each in read_history(tmp_path)]
    assert found == [
        ("10", "first", "10_first.sql"),
        ("1", "a_b", "1_a_b.sql"),
        ("2", "", "2.sql"),
        ("9", "last", "9_last.sql"),
    ]


def test_a_folder_that_does_not_exist_has_no_history(tmp_path: Path) -> None:
    assert read_history(tmp_path / "none") == ()


@pytest.mark.parametrize("name", ["users.sql", "_users.sql", "add users_1.sql"])
def test_a_file_without_a_version_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("")
    with pytest.raises(InputError) as raised:
        read_history(tmp_path)
    assert str(raised.value).splitlines()[0] == f"{name}: the file's name does not start with a version"


def test_two_files_of_one_version_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("0002_a.sql", "0002_b.sql"):
        (tmp_path / name).write_text("")
    with pytest.raises(InputError) as raised:
        read_history(tmp_path)
    assert str(raised.value) == (
        "0002_b.sql: 0002_a.sql and 0002_b.sql have the same version 0002\n"
        "hint: pgsluice rebase, when two branches took the same version"
    )


@pytest.mark.parametrize(
    ("filename", "version", "name"),
    [
        ("00.05.00_02_drop_started_at_column.sql", "00.05.00_02", "drop_started_at_column"),
        ("00.05.00_02.sql", "00.05.00_02", ""),
        ("1.2.3_add_users.sql", "1.2.3", "add_users"),
        ("V1__init.sql", "V1", "init"),
        ("V1_2__add_users.sql", "V1_2", "add_users"),
        ("0001.create-foo_bar.sql", "0001", "create-foo_bar"),
        ("001-add_users.sql", "001", "add_users"),
        ("20240101120000-add_users.up.sql", "20240101120000", "add_users"),
        ("20240101120000_add_users.up.sql", "20240101120000", "add_users"),
        ("2024-01-01_add_users.sql", "2024-01-01", "add_users"),
        ("2024-01-01-add_users.sql", "2024-01-01", "add_users"),
        ("0001__add_users.sql", "0001", "add_users"),
        ("1a_add_users.sql", "1a", "add_users"),
        ("1.sql", "1", ""),
        ("1.up.sql", "1", ""),
    ],
)
def test_versions_of_other_tools(filename: str, version: str, name: str) -> None:
    migration = split_filename(Path(filename))
    assert (migration.version, migration.name) == (version, name)


@pytest.mark.parametrize("name", ["0001_x.down.sql", "0001.x.rollback.sql", "U1__x.sql"])
def test_a_file_that_goes_back_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("")
    with pytest.raises(InputError) as raised:
        read_history(tmp_path)
    assert str(raised.value) == (
        f"{name}: the file takes a migration back, and would run with all others\n"
        f"hint: sed -i '1i -- atlas:sum ignore' {name}, or move it to another folder"
    )
    (tmp_path / name).write_text("-- atlas:sum ignore\n")
    assert read_history(tmp_path) == ()


@pytest.mark.parametrize(
    ("names", "wrong", "padded"),
    [
        (("0001_a.sql", "0010_b.sql"), [], {}),
        (("1_a.sql", "2_b.sql", "9_c.sql"), [], {}),
        (("1_a.sql", "10_b.sql", "2_c.sql"), [("10", "1")], {"1_a.sql": "01_a.sql", "2_c.sql": "02_c.sql"}),
        (("V10__b.sql", "V2__a.sql"), [("V10", "V2")], {"V2__a.sql": "V02__a.sql"}),
        (("V1_10__b.sql", "V1_9__a.sql"), [("V1_10", "V1_9")], {"V1_9__a.sql": "V1_09__a.sql"}),
        (("1.10.0_b.sql", "1.9.0_a.sql"), [("1.10.0", "1.9.0")], {"1.9.0_a.sql": "1.09.0_a.sql"}),
        (("B1_a.sql", "V0_b.sql"), [], {}),
        (("1a_x.sql", "10b_x.sql"), [], {}),
    ],
)
def test_numbers_that_byte_order_runs_in_another_order(
    names: tuple[str, ...], wrong: list[tuple[str, str]], padded: dict[str, str]
) -> None:
    found = order_history(map(Path, names))
    assert [(first.version, second.version) for first, second in out_of_number(found)] == wrong
    assert pad_numbers(found) == padded


@pytest.mark.parametrize(
    ("names", "version"),
    [
        ((), "20261130120000"),
        (("20261130115959_a.sql",), "20261130120000"),
        (("20261130120000_a.sql",), "20261130120001"),
        (("20261231235959_a.sql",), "20270101000000"),
        (("0007_a.sql",), "20261130120000"),
    ],
)
def test_the_next_timestamp_is_later_than_the_last(names: tuple[str, ...], version: str) -> None:
    assert next_version(target("timestamp"), history(*names), now=NOON) == version


def test_a_timestamp_is_in_utc() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert next_version(target("timestamp"), (), now=there) == "20261130120000"


@pytest.mark.parametrize(
    ("names", "version"),
    [
        ((), "0001"),
        (("0009_a.sql",), "0010"),
        (("001_a.sql",), "002"),
        (("20261130120000_a.sql",), "20261130120001"),
    ],
)
def test_the_next_number_keeps_the_width(names: tuple[str, ...], version: str) -> None:
    assert next_version(target("sequence"), history(*names), now=NOON) == version


@pytest.mark.parametrize(
    ("style", "name", "message"),
    [
        (
            "sequence",
            "9999_a.sql",
            "9999_a.sql: version 10000 would sort before the last migration, 9999_a.sql\n"
            'hint: versioning = "timestamp"',
        ),
        ("sequence", "v1_a.sql", 'v1_a.sql: no number follows version v1\nhint: versioning = "timestamp"'),
        (
            "timestamp",
            "9999_a.sql",
            "9999_a.sql: version 20261130120000 would sort before the last migration, 9999_a.sql\n"
            'hint: versioning = "sequence"',
        ),
        (
            "timestamp",
            "20269930120000_a.sql",
            "20269930120000_a.sql: version 20269930120000 is not a time, so none follows it",
        ),
    ],
)
def test_when_no_version_can_follow(style: Literal["timestamp", "sequence"], name: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        next_version(target(style), history(name), now=NOON)
    assert str(raised.value) == message


@pytest.mark.parametrize("name", ["a", "add_users", "2fa", "x" * 100])
def test_good_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Add users", "a migration's name is made of a-z, 0-9 and _, not 'Add users'\nhint: add_users"),
        ("../x", "a migration's name is made of a-z, 0-9 and _, not '../x'\nhint: x"),
        ("", "a migration's name is made of a-z, 0-9 and _, not ''\nhint: add_users"),
        ("_part", "a migration's name is made of a-z, 0-9 and _, not '_part'\nhint: part"),
        ("x" * 101, "a migration's name has at most 100 characters, not 101"),
        ("macros", "a migration cannot be called macros: a template of that name is built in"),
    ],
)
def test_bad_names(name: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        check_name(name)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "transactional"),
    [
        ("-- atlas:txmode none\n\nselect 1;\n", False),
        ("-- atlas:txmode none\nselect 1;\n", True),
        ("\n-- atlas:txmode none\n\n", True),
        ("-- atlas:txmode all\n\n", True),
        ("select 1;\n", True),
    ],
)
def test_txmode_counts_on_the_first_line_before_an_empty_one(text: str, transactional: bool) -> None:
    assert is_transactional(text) is transactional
