"""The sum file: Atlas's vectors, and that no change goes unseen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsluice.errors import InputError
from pgsluice.pipeline.checksum import (
    CarriageReturnError,
    ConflictMarkersError,
    SumEntry,
    SumFile,
    SumFormatError,
    compute_sum,
    read_sum,
)

A, B, SKIP = b"create table a (id int);\n", b"create table b (id int);\n", b"-- atlas:sum ignore\nselect 1;\n"
A_DIGEST = "yR5YhhlConz9KMyPn5i4/nsXn/pa3MhpA/OStARXGI0="


def fill(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, ["h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="], id="empty"),
        pytest.param(
            {"1_a.sql": A, "2_b.sql": B},
            [
                "h1:S6cxXBXqelwrhCGTjJHXpx2/hWfF17/l+eLEDR3ABWs=",
                f"1_a.sql h1:{A_DIGEST}",
                "2_b.sql h1:TbtXQs76tfnIDIj3Su8yriMvcPp364oproXxQrtPrtk=",
            ],
            id="V1",
        ),
        pytest.param(
            {"1_a.sql": A, "2_skip.sql": SKIP, "3_c.sql": b""},
            [
                "h1:kRxG5dZFmksCkt2XC4LqJAK7I5Y4IPr58VTEAvXgjGg=",
                f"1_a.sql h1:{A_DIGEST}",
                "3_c.sql h1:4ptA8gfAmZbDHLPkho0efNhBpLx6d2/UJRLLwDLgTqs=",
            ],
            id="V2",
        ),
        pytest.param(
            {"1_a.sql": A, "3_c.sql": b""},
            [
                "h1:YWa1TdVJzE+Bd3PRr/wJHr7SPkF1NYl22FxgcnSSjm0=",
                f"1_a.sql h1:{A_DIGEST}",
                "3_c.sql h1:E26+FYf0EsFBhqaCrjUtm8eJiqV2jqgckHP4zpqTyZU=",
            ],
            id="V2b",
        ),
        pytest.param(
            {"1_a.sql": A.replace(b"\n", b"\r\n")},
            [
                "h1:TmLiR3FKF62u+DFy4mGF8VLkCx1ToQ6xPi9LuDQRWNE=",
                "1_a.sql h1:AKb30yfwfxjJJDR1xbZk+MXMGtWyYgVTC9X6u4CV2NU=",
            ],
            id="V3",
        ),
    ],
)
def test_sum_equals_the_vector(tmp_path: Path, files: dict[str, bytes], expected: list[str]) -> None:
    (tmp_path / "notes.txt").write_text("not a migration")
    (tmp_path / "atlas.sum").write_text("not read")
    found = compute_sum(fill(tmp_path, files))
    assert found.render().decode().splitlines() == expected
    assert found.is_consistent()


def test_a_folder_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert compute_sum(tmp_path / "none") == SumFile("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", ())


def test_order_is_by_bytes(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(("9_x.sql", "10_x.sql", "1_b.sql", "1_Z.sql", "1_é.sql"), b""))
    names = [entry.name for entry in compute_sum(tmp_path).entries]
    assert names == ["10_x.sql", "1_Z.sql", "1_b.sql", "1_é.sql", "9_x.sql"]


def test_a_name_that_is_not_utf8_is_recorded_as_it_is(tmp_path: Path) -> None:
    name = os.fsdecode(b"1_\xff.sql")
    fill(tmp_path, {name: A})
    (tmp_path / "atlas.sum").write_bytes(compute_sum(tmp_path).render())
    assert b"1_\xff.sql h1:" in (tmp_path / "atlas.sum").read_bytes()
    assert read_sum(tmp_path / "atlas.sum") == compute_sum(tmp_path)


@pytest.mark.parametrize("first", [b"-- atlas:sum ignore", b"# atlas:sum ignore\n", b"atlas:sum   ignore\n;"])
def test_ignored(tmp_path: Path, first: bytes) -> None:
    assert compute_sum(fill(tmp_path, {"1_a.sql": first})).entries == ()


@pytest.mark.parametrize(
    "first",
    [
        b"-- atlas:sum\n",
        b"-- atlas:sum ignored\n",
        b"-- atlas:sum ignore \n",
        b"-- atlas:sum ignore all\n",
        b"-- atlas:sumignore\n",
        b"\n-- atlas:sum ignore\n",
        b"-- \xc3\xa9 atlas:sum ignore\n",
        b"-- atlas:txmode none\n",
    ],
)
def test_not_ignored(tmp_path: Path, first: bytes) -> None:
    assert len(compute_sum(fill(tmp_path, {"1_a.sql": first})).entries) == 1


def test_a_carriage_return_at_the_directive_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path, {"1_a.sql": b"-- atlas:sum ignore\r\nselect 1;\r\n"})
    with pytest.raises(CarriageReturnError) as raised:
        compute_sum(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}/1_a.sql:1: CR found after atlas:sum ignore\n"
        "  releases of Atlas disagree on whether such a file is ignored"
    )


def test_the_sum_of_a_future_state_is_the_sum_of_that_state(tmp_path: Path) -> None:
    now, then = tmp_path / "now", tmp_path / "then"
    now.mkdir()
    then.mkdir()
    fill(now, {"1_a.sql": A, "2_b.sql": B, "3_gone.sql": B})
    fill(then, {"1_a.sql": A, "2_b.sql": SKIP, "4_new.sql": B})
    change = {"2_b.sql": SKIP, "3_gone.sql": None, "4_new.sql": B, "pgsluice.lock": b"x", "5_no.sql": None}
    assert compute_sum(now, replace=change) == compute_sum(then)


def test_a_file_larger_than_one_piece_hashes_the_same(tmp_path: Path) -> None:
    content = b"select 1;\n" * 200_000
    fill(tmp_path, {"1_a.sql": content})
    assert compute_sum(tmp_path) == compute_sum(tmp_path / "none", replace={"1_a.sql": content})


@pytest.mark.parametrize("name", ["1_h1:.sql", "1_a\n.sql", " 1_a.sql"])
def test_a_name_that_no_line_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as raised:
        compute_sum(tmp_path, replace={name: b""})
    assert str(raised.value) == f"{name!r} cannot be recorded in atlas.sum: rename the file"


def test_a_folder_in_a_file_s_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "1_a.sql").mkdir()
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        compute_sum(tmp_path)


GOOD = f"h1:{A_DIGEST}\n1_a.sql h1:{A_DIGEST}\n"


def test_no_file_is_no_sum(tmp_path: Path) -> None:
    assert read_sum(tmp_path / "atlas.sum") is None


def test_a_sum_with_crlf_is_read(tmp_path: Path) -> None:
    (tmp_path / "atlas.sum").write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert read_sum(tmp_path / "atlas.sum") == SumFile(A_DIGEST, (SumEntry("1_a.sql", A_DIGEST),))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", SumFormatError, "1: the file is empty"),
        (GOOD + "\n", SumFormatError, "3: a line without h1:\n  "),
        ("hello\n", SumFormatError, "1: a line without h1:\n  hello"),
        (f"x h1:{A_DIGEST}\n", SumFormatError, "1: the first line is the total and has no name\n  "),
        (GOOD + GOOD, SumFormatError, "3: a digest without a file's name\n  "),
        (f"h1:{A_DIGEST}\na.sql h1:abc\n", SumFormatError, "2: abc is not a digest of 44 characters\n  "),
        (
            GOOD + f"1_a.sql h1:{A_DIGEST}\n",
            SumFormatError,
            "3: 1_a.sql is listed again, first on line 2",
        ),
        (GOOD + "<<<<<<< HEAD\n", ConflictMarkersError, "3: conflict marker <<<<<<< from a merge"),
        ("=======\n" + GOOD, ConflictMarkersError, "1: conflict marker ======= from a merge"),
        (GOOD + ">>>>>>> other\n", ConflictMarkersError, "3: conflict marker >>>>>>> from a merge"),
    ],
)
def test_a_broken_sum_is_named_with_its_line(
    tmp_path: Path, text: str, error: type[InputError], message: str
) -> None:
    (tmp_path / "atlas.sum").write_text(text)
    with pytest.raises(error) as raised:
        read_sum(tmp_path / "atlas.sum")
    assert str(raised.value).startswith(f"{tmp_path}/atlas.sum:{message}")


NAMES = st.from_regex(r"[0-9a-z_]{1,6}\.sql", fullmatch=True)
CONTENTS = st.binary(max_size=40)
FOLDERS = st.dictionaries(NAMES, CONTENTS, min_size=1, max_size=6)
NOWHERE = Path("/nonexistent")


def total(files: dict[str, bytes]) -> str:
    """The total of a folder that would hold `files`."""
    return compute_sum(NOWHERE, replace=dict(files)).total


@given(FOLDERS)
def test_rendering_reads_back(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    path = tmp_path_factory.mktemp("sum") / "atlas.sum"
    written = compute_sum(NOWHERE, replace=dict(files))
    path.write_bytes(written.render())
    assert read_sum(path) == written


@given(FOLDERS, st.data())
def test_any_edit_changes_the_sum(files: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(files)))
    content = data.draw(CONTENTS.filter(lambda content: content != files[name]))
    assert total(files | {name: content}) != total(files)


@given(FOLDERS, st.data())
def test_any_insertion_and_any_removal_changes_the_sum(files: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(NAMES.filter(lambda name: name not in files))
    assert total(files | {name: data.draw(CONTENTS)}) != total(files)


@given(FOLDERS, st.data())
def test_any_rename_changes_the_sum(files: dict[str, bytes], data: st.DataObject) -> None:
    old = data.draw(st.sampled_from(sorted(files)))
    new = data.draw(NAMES.filter(lambda name: name not in files))
    assert total({new if name == old else name: files[name] for name in files}) != total(files)


@given(FOLDERS, st.data())
def test_any_reordering_of_lines_makes_the_file_inconsistent(
    files: dict[str, bytes], data: st.DataObject
) -> None:
    found = compute_sum(NOWHERE, replace=dict(files))
    shuffled = tuple(data.draw(st.permutations(found.entries)))
    assert SumFile(found.total, shuffled).is_consistent() == (shuffled == found.entries)
