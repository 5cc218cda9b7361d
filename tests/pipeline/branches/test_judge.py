"""What happened to each file of a folder, as far as a chain of digests can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsluice.pipeline.branches import Change, FileChange
from pgsluice.pipeline.branches.conflict import split_conflict
from pgsluice.pipeline.branches.judge import judge
from pgsluice.pipeline.checksum import compute_sum

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OLD: Final = {"1_a.sql": b"a;\n", "2_b.sql": b"b;\n", "3_c.sql": b"c;\n", "4_d.sql": b"d;\n"}
CRLF: Final = {"2_b.sql": b"b;\r\n"}


def changes(
    folder: Path,
    new: Mapping[str, bytes],
    *,
    old: Mapping[str, bytes] = OLD,
    committed: Mapping[str, bytes] | None = None,
    ignored: tuple[str, ...] = (),
) -> list[tuple[str, Change, str | None]]:
    """What is found in `new` against the sum of `old`."""
    for name, content in old.items():
        (folder / name).write_bytes(content)
    entries = compute_sum(folder).entries
    found = judge(entries, new, ignored=ignored, committed=committed or {})
    return [(one.name, one.change, one.old) for one in found]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (OLD, []),
        ({**OLD, "5_e.sql": b"e;\n"}, [("5_e.sql", Change.NEW, None)]),
        ({**OLD, "2_a.sql": b"x;\n"}, [("2_a.sql", Change.IN_FRONT, None)]),
        (
            {"1_a.sql": b"a;\n", "3_b.sql": b"b;\n", "3_c.sql": b"c;\n", "4_d.sql": b"d;\n"},
            [("3_b.sql", Change.RENAMED, "2_b.sql")],
        ),
        (OLD | CRLF, [("2_b.sql", Change.LINE_ENDS, None)]),
        (
            OLD | {"2_b.sql": b"x;\n"},
            [
                ("2_b.sql", Change.EDITED, None),
                ("3_c.sql", Change.UNKNOWN, None),
                ("4_d.sql", Change.UNKNOWN, None),
            ],
        ),
        (
            {name: content for name, content in OLD.items() if name not in ("2_b.sql", "4_d.sql")},
            [
                ("2_b.sql", Change.REMOVED, None),
                ("3_c.sql", Change.UNKNOWN, None),
                ("4_d.sql", Change.REMOVED, None),
            ],
        ),
    ],
)
def test_each_change_without_git(
    tmp_path: Path, new: Mapping[str, bytes], expected: list[tuple[str, Change, str | None]]
) -> None:
    assert changes(tmp_path, new) == expected


def test_files_after_a_changed_one_are_judged_where_git_has_the_old_one(tmp_path: Path) -> None:
    new = {"1_a.sql": b"a;\n", "3_c.sql": b"x;\n", "4_d.sql": b"d;\n"}
    assert changes(tmp_path, new, committed=OLD) == [
        ("2_b.sql", Change.REMOVED, None),
        ("3_c.sql", Change.EDITED, None),
    ]


def test_a_commit_that_is_not_what_was_recorded_is_not_believed(tmp_path: Path) -> None:
    new = OLD | {"2_b.sql": b"x;\n"}
    assert changes(tmp_path, new, committed=new)[:2] == [
        ("2_b.sql", Change.EDITED, None),
        ("3_c.sql", Change.UNKNOWN, None),
    ]


def test_carriage_returns_that_were_recorded_and_are_gone_are_an_edit(tmp_path: Path) -> None:
    assert changes(tmp_path, OLD, old=OLD | CRLF) == [("2_b.sql", Change.EDITED, None)]


def test_names_of_ignored_files_count_whether_they_were_there_or_not(tmp_path: Path) -> None:
    assert changes(tmp_path, OLD, ignored=("2_later.sql",)) == []
    ignored = {"2_skip.sql": b"-- atlas:sum ignore\n"}
    assert changes(tmp_path, OLD, old=OLD | ignored, ignored=("2_skip.sql",)) == []


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.binary(max_size=3), min_size=1),
    st.dictionaries(st.sampled_from("abcdefgh"), st.binary(max_size=3)),
)
def test_with_git_every_edit_and_removal_is_found(
    tmp_path_factory: pytest.TempPathFactory, old: dict[str, bytes], new: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("sum")
    before = {f"{name}.sql": content for name, content in old.items()}
    after = {f"{name}.sql": content for name, content in new.items()}
    found = {name: change for name, change, _ in changes(folder, after, old=before, committed=before)}
    for name, content in before.items():
        if name not in after:
            renamed = [one for one, change in found.items() if change is Change.RENAMED]
            assert found.get(name) is Change.REMOVED or renamed
        elif after[name] != content:
            assert found[name] in (Change.EDITED, Change.LINE_ENDS)
        else:
            assert name not in found


def test_a_change_is_a_value() -> None:
    assert FileChange("1.sql", Change.NEW) == FileChange("1.sql", Change.NEW, None)


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("a\nb\n", ("a\nb\n",)),
        ("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\nd\n", ("a\nb\nd\n", "a\nc\nd\n")),
        (
            "<<<<<<< HEAD\nb\n||||||| 1234567\no\n=======\nc\n>>>>>>> main\n=======\n",
            ("b\n=======\n", "c\n=======\n"),
        ),
        (
            "<<<<<<< HEAD\n=======\nc\n>>>>>>> main\nx\n<<<<<<< HEAD\ny\n=======\n>>>>>>> main\n",
            ("x\ny\n", "c\nx\n"),
        ),
    ],
)
def test_both_sides_of_a_conflict(text: str, sides: tuple[str, ...]) -> None:
    assert split_conflict(text) == sides
