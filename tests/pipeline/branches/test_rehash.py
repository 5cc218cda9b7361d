"""Recording a folder anew: what is said of each file, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.pipeline.checksum import compute_sum
from tests.pipeline.branches.workshop import Workshop

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "migrations/app"
FILES: Final = ("0001_a.sql", "0002_b.sql", "0003_c.sql")
NOWHERE: Final = "postgresql://localhost:1/none"
REFUSED: Final = "  databases that ran a migration keep what it did then, and apply refuses what changed\n"
CONFLICT: Final = "<<<<<<< HEAD\n{}=======\n{}>>>>>>> main\n"


@pytest.fixture
def bare(tmp_path: Path) -> Workshop:
    """Three migrations that nothing recorded; no database can be asked, and there is no git."""
    work = Workshop(tmp_path / "bare", NOWHERE)
    work.write("pgsluice.toml", "[targets.app]\n")
    work.write("schema/app/a.sql", "create table a ();\n")
    for name in FILES:
        work.write(f"{FOLDER}/{name}", f"create table {name[5]} ();\n")
    return work


@pytest.fixture
def recorded(bare: Workshop) -> Workshop:
    """The same with an `atlas.sum`."""
    bare.ok("rehash")
    return bare


def sum_of(work: Workshop) -> str:
    """The folder's sum as it must be."""
    return compute_sum(work.root / FOLDER).render().decode()


def test_a_folder_without_a_sum_is_recorded_file_by_file(bare: Workshop) -> None:
    assert bare.ok("rehash") == (
        "wrote migrations/app/atlas.sum: 3 migrations\n"
        "  new: 0001_a.sql\n  new: 0002_b.sql\n  new: 0003_c.sql\n"
        "next: pgsluice build\n"
    )
    assert bare.read(f"{FOLDER}/atlas.sum") == sum_of(bare)
    assert bare.ok("rehash") == (
        "nothing to do: migrations/app/atlas.sum records the 3 migrations of app as they are\n"
    )


def test_a_file_added_at_the_end_is_recorded(recorded: Workshop) -> None:
    recorded.write(f"{FOLDER}/0004_d.sql", "create table d ();\n")
    assert recorded.json("rehash") == {
        "target": "app",
        "sum": "migrations/app/atlas.sum",
        "written": True,
        "differs": True,
        "migrations": 4,
        "changes": [{"file": "0004_d.sql", "change": "new", "renamed_from": None}],
        "warnings": [],
        "next": "pgsluice build",
    }
    assert recorded.read(f"{FOLDER}/atlas.sum") == sum_of(recorded)


def test_check_writes_nothing_and_finds(recorded: Workshop) -> None:
    assert recorded.ok("rehash", "--check").startswith("nothing to do")
    recorded.write(f"{FOLDER}/0002_b.sql", "create table x ();\n")
    before = recorded.contents()
    code, out, err = recorded.run("rehash", "--check")
    assert (code, out.splitlines()[:2]) == (
        1,
        ["would write migrations/app/atlas.sum: 3 migrations", "  edited: 0002_b.sql"],
    )
    assert "warning: migrations/app/0002_b.sql is not what atlas.sum recorded: it was edited\n" in err
    assert recorded.contents() == before


def test_an_edit_is_refused_until_it_is_named(recorded: Workshop) -> None:
    recorded.write(f"{FOLDER}/0003_c.sql", "create table x ();\n")
    assert recorded.fails(4, "rehash") == (
        "error: migrations/app/0003_c.sql: "
        "the migration is not what atlas.sum recorded: it was edited\n"
        f"{REFUSED}"
        "  to undo it: git checkout -- migrations/app/0003_c.sql\n"
        "hint: pgsluice rehash --accept 0003_c.sql, if no database that you keep has run it\n"
    )
    assert recorded.fails(4, "rehash", "--accept", "0002_b.sql")
    code, out, err = recorded.run("rehash", "--accept", "0003_c.sql")
    assert (code, out.splitlines()[1]) == (0, "  edited: 0003_c.sql")
    assert err == "warning: migrations/app/0003_c.sql is not what atlas.sum recorded: it was edited\n"
    assert recorded.read(f"{FOLDER}/atlas.sum") == sum_of(recorded)


def test_an_edit_that_is_committed_cannot_be_checked_out_again(recorded: Workshop) -> None:
    recorded.write(f"{FOLDER}/0003_c.sql", "create table x ();\n")
    recorded.git("init", "--quiet")
    recorded.commit("an edit")
    told = recorded.fails(4, "rehash")
    log = "git log -p -- migrations/app/0003_c.sql"
    assert f"\n  the last commit has it so, to see who changed it: {log}\n" in told


def test_another_name_is_refused_until_it_is_named(recorded: Workshop) -> None:
    folder = recorded.root / FOLDER
    (folder / "0002_b.sql").rename(folder / "0002_x.sql")
    assert recorded.fails(4, "rehash") == (
        "error: migrations/app/0002_x.sql: "
        "the migration is not what atlas.sum recorded: it was called 0002_b.sql\n"
        f"{REFUSED}"
        "  to undo it: mv migrations/app/0002_x.sql migrations/app/0002_b.sql\n"
        "hint: pgsluice rehash --accept 0002_x.sql, if no database that you keep has run it\n"
    )
    assert "  renamed: 0002_x.sql, until now 0002_b.sql\n" in recorded.ok("rehash", "--accept", "0002_*")


def test_a_place_before_a_recorded_one_is_refused_until_it_is_named(recorded: Workshop) -> None:
    recorded.write(f"{FOLDER}/0002a_late.sql", "create table late ();\n")
    assert recorded.fails(4, "rehash") == (
        "error: migrations/app/0002a_late.sql: "
        "the migration is not what atlas.sum recorded: it is new and comes before a recorded one\n"
        f"{REFUSED}"
        "  to put it after the others: pgsluice rebase migrations/app/0002a_late.sql\n"
        "hint: pgsluice rehash --accept 0002a_late.sql, if no database that you keep has run it\n"
    )
    assert "  new, before a recorded one: 0002a_late.sql\n" in recorded.ok("rehash", "--accept", "*late*")


def test_each_changed_file_has_to_be_named(recorded: Workshop) -> None:
    (recorded.root / FOLDER / "0002_b.sql").unlink()
    assert recorded.fails(4, "rehash", "--accept", "0002_b.sql") == (
        "error: migrations/app/0003_c.sql: the migration is not what atlas.sum recorded: "
        "an earlier one changed, so nothing tells whether this one did\n"
        f"{REFUSED}"
        "  to undo it: git checkout -- migrations/app/0003_c.sql\n"
        "hint: pgsluice rehash --accept 0003_c.sql, if no database that you keep has run it\n"
    )
    assert recorded.fails(4, "rehash").splitlines()[1] == (
        "  migrations/app/0003_c.sql neither: an earlier one changed, so nothing tells whether this one did"
    )
    recorded.ok("rehash", "--accept", "0002_b.sql", "--accept", "0003_c.sql")
    assert recorded.read(f"{FOLDER}/atlas.sum") == sum_of(recorded)


def test_an_old_sum_that_cannot_be_read_says_what_to_do(recorded: Workshop) -> None:
    recorded.write(f"{FOLDER}/atlas.sum", "nothing\n")
    assert recorded.fails(2, "rehash") == (
        "error: migrations/app/atlas.sum:1: the old record cannot be read: a line without h1:\n"
        "  so nothing tells whether a migration was edited since\n"
        "hint: rm migrations/app/atlas.sum && pgsluice rehash\n"
    )


def test_git_remembers_what_a_missing_sum_recorded(recorded: Workshop) -> None:
    recorded.git("init", "--quiet")
    recorded.commit("all")
    recorded.write(f"{FOLDER}/0001_a.sql", "create table x ();\n")
    (recorded.root / FOLDER / "atlas.sum").unlink()
    assert recorded.fails(4, "rehash").startswith(
        "error: migrations/app/0001_a.sql: the migration is not what atlas.sum recorded: it was edited\n"
    )
    _, out, err = recorded.run("rehash", "--accept", "0001_a.sql")
    assert out.splitlines()[1:] == ["  edited: 0001_a.sql", "next: pgsluice build"]
    assert err.startswith(
        "warning: migrations/app/atlas.sum was missing: compared with the one of the last commit\n"
    )


def test_a_total_that_was_edited_is_told(recorded: Workshop) -> None:
    lines = recorded.read(f"{FOLDER}/atlas.sum").splitlines(keepends=True)
    recorded.write(f"{FOLDER}/atlas.sum", "".join([lines[0][:5] + "x" + lines[0][6:], *lines[1:]]))
    code, _, err = recorded.run("rehash")
    assert (code, err) == (
        0,
        "warning: migrations/app/atlas.sum was edited: its total was not the one of its lines\n",
    )


def test_other_line_ends_than_recorded_are_refused(recorded: Workshop) -> None:
    for name in FILES[:2]:
        recorded.write(f"{FOLDER}/{name}", recorded.read(f"{FOLDER}/{name}").replace("\n", "\r\n"))
    assert recorded.fails(2, "rehash") == (
        "error: migrations/app/0001_a.sql: "
        "the migration has other line ends than it was recorded with\n"
        "  migrations/app/0002_b.sql too\n"
        "  git's core.autocrlf is the usual cause, .gitattributes the cure: *.sql text eol=lf\n"
        "hint: sed -i 's/\\r$//' migrations/app/0001_a.sql migrations/app/0002_b.sql\n"
    )


def test_what_other_tools_write_is_told(bare: Workshop) -> None:
    for name in FILES:
        (bare.root / FOLDER / name).unlink()
    bare.write(f"{FOLDER}/1_a.sql", "create table a ();\r\n")
    bare.write(f"{FOLDER}/2_b.sql", "-- +goose Up\ncreate table b ();\n-- +goose Down\ndrop table b;\n")
    bare.write(f"{FOLDER}/10_c.sql", "create table c ();\n")
    code, _, err = bare.run("rehash")
    assert (code, err) == (
        0,
        "warning: migrations/app/10_c.sql runs before 1_a.sql: the order is the one of bytes\n"
        "  rename only what no database has run under its present name\n"
        "hint: mv migrations/app/1_a.sql migrations/app/01_a.sql && "
        "mv migrations/app/2_b.sql migrations/app/02_b.sql && pgsluice rehash\n"
        "warning: CR found in migrations/app/1_a.sql: git may change its line ends, and with them its sum\n"
        "hint: sed -i 's/\\r$//' migrations/app/1_a.sql\n"
        "warning: migrations/app/2_b.sql holds the way back too, after -- +goose Down: "
        "the whole file would run\n"
        "hint: keep the part that goes forward\n",
    )


def conflict(work: Workshop, upper: str, lower: str) -> None:
    """Leave the sum as git does when each side had recorded one file more."""
    sums = []
    for other in (lower, upper):
        sums.append(compute_sum(work.root / FOLDER, replace={other: None}).render().decode())
    work.write(f"{FOLDER}/atlas.sum", CONFLICT.format(*sums))


def test_a_sum_in_conflict_is_written_anew(recorded: Workshop) -> None:
    for name in ("0004_mine.sql", "0005_theirs.sql"):
        recorded.write(f"{FOLDER}/{name}", "select 1;\n")
    conflict(recorded, "0004_mine.sql", "0005_theirs.sql")
    code, out, err = recorded.run("rehash")
    assert (code, out) == (0, "wrote migrations/app/atlas.sum: 5 migrations\nnext: pgsluice build\n")
    assert err == (
        "warning: two branches met: 0005_theirs.sql runs after 0004_mine.sql\n"
        "hint: if it is the other way round in a database that you keep: pgsluice rebase\n"
    )
    assert recorded.read(f"{FOLDER}/atlas.sum") == sum_of(recorded)


def test_an_edit_is_not_hidden_by_a_conflict(recorded: Workshop) -> None:
    for name in ("0004_mine.sql", "0005_theirs.sql"):
        recorded.write(f"{FOLDER}/{name}", "select 1;\n")
    conflict(recorded, "0004_mine.sql", "0005_theirs.sql")
    recorded.write(f"{FOLDER}/0005_theirs.sql", "select 2;\n")
    message = recorded.fails(4, "rehash")
    assert message.startswith("error: migrations/app/0005_theirs.sql: the migration is not what atlas.sum")


def test_two_branches_that_run_in_turns_are_refused(recorded: Workshop) -> None:
    names = ("0004_mine.sql", "0005_theirs.sql", "0006_mine.sql")
    for name in names:
        recorded.write(f"{FOLDER}/{name}", "select 1;\n")
    folder = recorded.root / FOLDER
    upper = compute_sum(folder, replace={names[1]: None}).render().decode()
    lower = compute_sum(folder, replace={names[0]: None, names[2]: None}).render().decode()
    recorded.write(f"{FOLDER}/atlas.sum", CONFLICT.format(upper, lower))
    assert recorded.fails(4, "rehash") == (
        "error: migrations/app/atlas.sum: "
        "two branches met, and their migrations run in turns\n"
        "  one side recorded 0004_mine.sql, 0006_mine.sql\n"
        "  the other side recorded 0005_theirs.sql\n"
        "hint: pgsluice rebase\n"
    )
