"""The gate: each thing that can happen to a migrations folder, named word for word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgsluice.config import load_project
from pgsluice.errors import InputError
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum, read_sum
from pgsluice.pipeline.digest import schema_digest
from pgsluice.pipeline.finding import TargetFiles
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock, digest_templates
from pgsluice.pipeline.sum_check import order_warnings
from pgsluice.pipeline.verify import Finding, FindingCode, verify_target

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND, THIRD = "0001_first.sql", "0002_second.sql", "0003_third.sql"


class Tree:
    """A project with three migrations, a schema and a template, as the last build left it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.migrations = root / "migrations/app"
        self.schema = root / "schema/app/users.sql"
        self.template = root / "templates/app/third.sql.j2"
        for folder in (self.migrations, self.schema.parent, self.template.parent):
            folder.mkdir(parents=True)
        (root / "pgsluice.toml").write_text("[targets.app]\n")
        self.schema.write_text("create table users (user_id bigint); -- people\n")
        self.template.write_text('{% extends "migration.sql.j2" %}\n')
        for name in (FIRST, SECOND, THIRD):
            (self.migrations / name).write_text(f"select '{name}';\n")
        self.record()

    def record(self, opened: str | None = THIRD) -> None:
        """Write sum and lock for what is there."""
        (self.migrations / SUM_NAME).write_bytes(compute_sum(self.migrations).render())
        lock = Lock(
            schema=schema_digest(self.schema.parent),
            templates=digest_templates(self.template.parent),
            tool="0.1.0",
            postgres=18,
            open=(opened,) if opened else (),
            history=compute_sum(self.migrations).total,
        )
        (self.migrations / LOCK_NAME).write_bytes(lock.render())

    def findings(self) -> tuple[Finding, ...]:
        """What verify finds."""
        project = load_project(self.root)
        return verify_target(project, project.target(None))

    def texts(self) -> list[str]:
        """Each finding as a user reads it, with its code and place."""
        return [
            "\n".join((f"{each.code} {each.location}", each.message, *each.details, each.hint))
            for each in self.findings()
        ]

    def codes(self) -> list[FindingCode]:
        """The findings' codes."""
        return [each.code for each in self.findings()]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A project as the last build left it."""
    return Tree(tmp_path)


def test_nothing_is_found_after_a_build(tree: Tree) -> None:
    assert tree.findings() == ()


def test_a_new_project_is_fine(tmp_path: Path) -> None:
    (tmp_path / "pgsluice.toml").write_text("[targets.app]\n")
    (tmp_path / "schema/app").mkdir(parents=True)
    project = load_project(tmp_path)
    assert verify_target(project, project.target(None)) == ()


def test_an_edited_file(tree: Tree) -> None:
    (tree.migrations / FIRST).write_text("select 'tampered';\n")
    stored = read_sum(tree.migrations / SUM_NAME)
    assert stored is not None
    now = compute_sum(tree.migrations).entries[0].digest
    assert tree.texts() == [
        "edited migrations/app/atlas.sum:2\n"
        "migrations/app/0001_first.sql was edited after it was recorded\n"
        f"atlas.sum line 2 records h1:{stored.entries[0].digest[:4]}…, the file now hashes to h1:{now[:4]}…\n"
        "later files cannot be judged until this one is back\n"
        "git checkout -- migrations/app/0001_first.sql"
    ]


def test_the_open_migration_edited_is_built_again(tree: Tree) -> None:
    (tree.migrations / THIRD).write_text("select 'tampered';\n")
    (finding,) = tree.findings()
    assert (finding.code, finding.hint) == ("edited", "pgsluice build")
    assert finding.details[-1] == "hand-written SQL belongs into templates/app/third.sql.j2"


def test_a_recorded_file_that_says_ignore_is_edited(tree: Tree) -> None:
    (tree.migrations / SECOND).write_text("-- atlas:sum ignore\n")
    (finding,) = tree.findings()
    assert finding.code == "edited"
    assert finding.details[0].endswith("the file now says atlas:sum ignore")


def test_a_removed_file_is_not_taken_for_an_edit(tree: Tree) -> None:
    (tree.migrations / SECOND).unlink()
    assert tree.texts() == [
        "removed migrations/app/atlas.sum:3\n"
        "migrations/app/0002_second.sql was removed after it was recorded\n"
        "atlas.sum line 3 records it\n"
        "git checkout -- migrations/app/0002_second.sql"
    ]


def test_an_added_file(tree: Tree) -> None:
    (tree.migrations / "0004_fourth.sql").write_text("select 4;\n")
    assert tree.texts() == [
        "added migrations/app/0004_fourth.sql\n"
        "migrations/app/0004_fourth.sql is not recorded in atlas.sum\n"
        "migrations are generated: move its SQL into templates/app/fourth.sql.j2, then remove the file\n"
        "or record it as it is: pgsluice rehash\n"
        "pgsluice new fourth"
    ]


def test_a_file_added_before_a_recorded_one(tree: Tree) -> None:
    (tree.migrations / "0002_late.sql").write_text("select 'late';\n")
    assert tree.texts() == [
        "out-of-order migrations/app/atlas.sum:4\n"
        "migrations/app/0002_late.sql was added before 0003_third.sql, which is already recorded\n"
        "atlas.sum line 4 records 0003_third.sql: a database that ran it would run this file late\n"
        "pgsluice rebase migrations/app/0002_late.sql"
    ]


def test_an_ignored_file_added_before_a_recorded_one_is_named(tree: Tree) -> None:
    (tree.migrations / "0002_skip.sql").write_text("-- atlas:sum ignore\n")
    (finding,) = tree.findings()
    assert finding.code == "out-of-order"
    assert finding.message.startswith("migrations/app/0002_skip.sql was added before 0003_third.sql")


def test_an_ignored_file_that_was_there_is_fine(tree: Tree) -> None:
    (tree.migrations / "0002_skip.sql").write_text("-- atlas:sum ignore\n")
    tree.record()
    (tree.migrations / "0002_skip.sql").write_text("-- atlas:sum ignore\nselect 1;\n")
    assert tree.findings() == ()


def test_several_things_at_once_are_all_named(tree: Tree) -> None:
    (tree.migrations / FIRST).write_text("select 'tampered';\n")
    (tree.migrations / SECOND).unlink()
    (tree.migrations / "0002_late.sql").write_text("")
    (tree.migrations / "0004_fourth.sql").write_text("")
    assert tree.codes() == ["removed", "out-of-order", "added", "edited"]


def test_reordered_lines(tree: Tree) -> None:
    stored = compute_sum(tree.migrations)
    first, second, third = stored.entries
    swapped = replace(stored, entries=(second, first, third))
    (tree.migrations / SUM_NAME).write_bytes(swapped.render())
    assert tree.codes() == ["sum-tampered"]
    path = tree.migrations / SUM_NAME
    path.write_bytes(replace(swapped, total=_total(swapped.render())).render())
    assert tree.texts() == [
        "reordered migrations/app/atlas.sum:3\n"
        "migrations/app/atlas.sum:3 lists 0001_first.sql after 0002_second.sql, which runs later\n"
        "git checkout -- migrations/app/atlas.sum"
    ]


def _total(rendered: bytes) -> str:
    """The total over the lines of a sum file, written from the format's description."""
    import base64
    import hashlib

    lines = [line.split(" h1:") for line in rendered.decode().splitlines()[1:]]
    return base64.b64encode(hashlib.sha256("".join(map("".join, lines)).encode()).digest()).decode()


def test_a_tampered_sum(tree: Tree) -> None:
    path = tree.migrations / SUM_NAME
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert tree.texts() == [
        "sum-tampered migrations/app/atlas.sum:1\n"
        "migrations/app/atlas.sum was edited: its total on line 1 is not the total of its own lines\n"
        "git checkout -- migrations/app/atlas.sum"
    ]


def test_a_sum_in_no_format(tree: Tree) -> None:
    path = tree.migrations / SUM_NAME
    path.write_text(path.read_text() + "0004_x.sql\n")
    assert tree.texts() == [
        "sum-format migrations/app/atlas.sum:5\n"
        "migrations/app/atlas.sum:5 is not readable: a line without h1:\n"
        "git checkout -- migrations/app/atlas.sum"
    ]


def test_a_missing_sum(tree: Tree) -> None:
    (tree.migrations / SUM_NAME).unlink()
    assert tree.texts() == [
        "missing-sum migrations/app/atlas.sum\n"
        "migrations/app/atlas.sum is missing, but there are 3 migrations\n"
        "git checkout -- migrations/app/atlas.sum"
    ]


def test_a_missing_sum_of_a_folder_that_no_build_recorded(tree: Tree) -> None:
    (tree.migrations / SUM_NAME).unlink()
    (tree.migrations / LOCK_NAME).unlink()
    assert [finding.hint for finding in tree.findings()] == ["pgsluice rehash", "pgsluice build"]


def test_numbers_that_run_in_the_order_of_bytes_are_a_warning(tree: Tree) -> None:
    for path in tree.migrations.glob("*.sql"):
        path.unlink()
    for name in ("1_a.sql", "2_b.sql", "10_c.sql", "11_d.sql"):
        (tree.migrations / name).write_text("select 1;\n")
    tree.record(opened=None)
    assert tree.findings() == ()
    project = load_project(tree.root)
    (warning,) = order_warnings(TargetFiles(project, project.target(None)))
    assert "\n".join((f"{warning.code} {warning.location}", warning.message, *warning.details)) == (
        "number-order migrations/app/11_d.sql\n"
        "migrations/app/11_d.sql runs before 1_a.sql: the order is the one of bytes\n"
        "rename only what no database has run under its present name"
    )
    assert warning.hint == (
        "mv migrations/app/1_a.sql migrations/app/01_a.sql && "
        "mv migrations/app/2_b.sql migrations/app/02_b.sql && pgsluice rehash"
    )
    (tree.migrations / "10_c.sql").write_text("-- atlas:sum ignore\n")
    (tree.migrations / "11_d.sql").write_text("-- atlas:sum ignore\n")
    assert order_warnings(TargetFiles(project, project.target(None))) == ()


@pytest.mark.parametrize("name", [SUM_NAME, LOCK_NAME])
def test_conflict_markers(tree: Tree, name: str) -> None:
    path = tree.migrations / name
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "<<<<<<< HEAD\n", "=======\n", ">>>>>>> main\n", *lines[2:]]))
    assert tree.texts() == [
        f"conflict-markers migrations/app/{name}:3\n"
        f"migrations/app/{name}:3 holds a merge conflict\n"
        "two branches added migrations: yours come after the ones that are already shared\n"
        "pgsluice rebase"
    ]


def test_line_ends_that_git_changed(tree: Tree) -> None:
    for name in (FIRST, SECOND):
        path = tree.migrations / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert tree.texts() == [
        f"cr-found migrations/app/{name}:1\n"
        f"CR found in migrations/app/{name}\n"
        "it was recorded with LF; git's core.autocrlf is the usual cause, .gitattributes the cure\n"
        f"sed -i 's/\\r$//' migrations/app/{name}"
        for name in (FIRST, SECOND)
    ]


def test_a_carriage_return_at_an_ignore_directive(tree: Tree) -> None:
    (tree.migrations / "0004_x.sql").write_bytes(b"-- atlas:sum ignore\r\n")
    (finding,) = tree.findings()
    assert finding.message == "CR found in migrations/app/0004_x.sql"
    assert finding.details == ("releases of Atlas disagree on whether such a file is ignored",)


def test_a_change_of_comments_or_space_in_the_schema_is_not_stale(tree: Tree) -> None:
    tree.schema.write_text("/* all */ create  table users (\n  user_id bigint\n);\n")
    assert tree.findings() == ()


@pytest.mark.parametrize(("opened", "hint"), [(THIRD, "pgsluice build"), (None, "pgsluice build NAME")])
def test_a_stale_schema(tree: Tree, opened: str | None, hint: str) -> None:
    tree.record(opened)
    before = schema_digest(tree.schema.parent)[:12]
    tree.schema.write_text("create table users (user_id bigint, email text);\n")
    assert tree.texts() == [
        "stale-schema schema/app\n"
        "schema/app was changed after the last proved build\n"
        f"migrations/app/pgsluice.lock records {before}…\n"
        f"{hint}"
    ]


def test_a_history_that_was_recorded_again(tree: Tree) -> None:
    before = compute_sum(tree.migrations).total
    (tree.migrations / FIRST).write_text("select 'edited';\n")
    after = compute_sum(tree.migrations)
    (tree.migrations / SUM_NAME).write_bytes(after.render())
    assert tree.texts() == [
        "stale-history migrations/app/atlas.sum\n"
        "migrations/app/atlas.sum was written anew after the last proved build\n"
        f"it records h1:{after.total}, migrations/app/pgsluice.lock h1:{before}\n"
        "pgsluice build"
    ]


def test_a_lock_that_does_not_name_its_history_is_no_finding(tree: Tree) -> None:
    path = tree.migrations / LOCK_NAME
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("history")))
    assert tree.codes() == []


def test_a_new_schema_file_is_stale(tree: Tree) -> None:
    (tree.schema.parent / "orders.sql").write_text("create table orders ();\n")
    assert tree.codes() == ["stale-schema"]


def test_a_schema_that_was_never_built(tree: Tree) -> None:
    for path in tree.migrations.iterdir():
        path.unlink()
    tree.template.unlink()
    assert tree.texts() == ["stale-schema schema/app\nschema/app was never built\npgsluice build first"]


def test_a_missing_schema_folder_is_bad_input(tree: Tree) -> None:
    tree.schema.unlink()
    tree.schema.parent.rmdir()
    with pytest.raises(InputError):
        tree.findings()


def test_a_missing_lock(tree: Tree) -> None:
    (tree.migrations / LOCK_NAME).unlink()
    assert tree.texts() == [
        "missing-lock migrations/app/pgsluice.lock\n"
        "migrations/app/pgsluice.lock is missing, so nothing says what was proved\n"
        "pgsluice build"
    ]


def test_a_changed_template_of_the_open_migration(tree: Tree) -> None:
    tree.template.write_text("changed")
    assert tree.texts() == [
        "stale-template templates/app/third.sql.j2\n"
        "templates/app/third.sql.j2 was changed after the last proved build\n"
        "pgsluice build"
    ]


def test_a_changed_template_of_a_closed_migration(tree: Tree) -> None:
    tree.record(opened=None)
    tree.template.write_text("changed")
    assert tree.texts() == [
        "stale-template templates/app/third.sql.j2\n"
        "templates/app/third.sql.j2 was changed after the last proved build\n"
        "migrations/app/0003_third.sql is closed and is not built again\n"
        "git checkout -- templates/app/third.sql.j2"
    ]


def test_a_removed_template(tree: Tree) -> None:
    tree.template.unlink()
    assert tree.texts() == [
        "stale-template templates/app/third.sql.j2\n"
        "templates/app/third.sql.j2 was removed after the last proved build\n"
        "pgsluice build"
    ]


def test_a_template_added_to_a_closed_migration(tree: Tree) -> None:
    (tree.template.parent / "first.sql.j2").write_text("")
    assert tree.texts() == [
        "stale-template templates/app/first.sql.j2\n"
        "templates/app/first.sql.j2 was added after the last proved build\n"
        "migrations/app/0001_first.sql is closed and is not built again\n"
        "rm templates/app/first.sql.j2"
    ]


def test_a_template_without_a_migration(tree: Tree) -> None:
    (tree.template.parent / "fourth.sql.j2").write_text("")
    (tree.template.parent / "_part.sql.j2").write_text("")
    assert tree.texts() == [
        "template-without-migration templates/app/fourth.sql.j2\n"
        "templates/app/fourth.sql.j2 belongs to no migration yet\n"
        "pgsluice build fourth"
    ]


def test_hints_name_the_target_where_there_are_several_and_quote_paths(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    (tmp_path / "pgsluice.toml").write_text(
        "[targets.app]\nmanages = ['app']\n[targets.audit]\nmanages = ['audit']\n"
    )
    name = "0002_it's late.sql"
    (tree.migrations / name).write_text("")
    project = load_project(tmp_path)
    (finding,) = verify_target(project, project.target("app"))
    assert finding.hint == "pgsluice rebase --target app 'migrations/app/0002_it'\"'\"'s late.sql'"
