"""Two branches met: whose migrations stay, which names the others get, and what is proved of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.branches.workshop import MAJOR, USERS

if TYPE_CHECKING:
    from tests.pipeline.branches.workshop import Workshop

MERGED = ["0001_first.sql", "0002_theirs.sql", "0003_mine.sql"]
FILL = """\
{% extends "migration.sql.j2" %}

{% block backfill %}
update public.users as u set user_id = u.user_id where false;
{% endblock %}
"""


def merge(work: Workshop, branch: str = "main") -> None:
    """Start a merge that ends in a conflict about sum and lock."""
    work.git("merge", branch, code=1)


def test_one_number_on_both_sides(met: Workshop) -> None:
    merge(met)
    theirs = met.read("migrations/app/0002_theirs.sql")
    told = met.ok("rebase")
    first, *lines = told.splitlines()
    assert first == (
        "put your migrations of app after those of main, whose last is migrations/app/0002_theirs.sql"
    )
    assert lines[0] == "  migrations/app/0002_mine.sql -> migrations/app/0003_mine.sql, built again"
    assert lines[1].startswith("  proved on PostgreSQL 18")
    assert lines[2:] == ["next: git add migrations/app && git commit"]
    assert met.migrations() == MERGED
    assert met.read("migrations/app/0002_theirs.sql") == theirs
    assert met.lock() == 'open = "0003_mine.sql"'
    met.is_proved()
    met.git("add", "migrations/app")
    met.git("commit", "--quiet", "--no-edit")
    assert met.git("status", "--short") == ""
    met.is_sound()


def test_dry_run_says_what_and_writes_nothing(met: Workshop) -> None:
    merge(met)
    before = met.contents()
    assert met.ok("rebase", "--dry-run") == (
        "would put your migrations of app after those of main, whose last is migrations/app/0002_theirs.sql\n"
        "  migrations/app/0002_mine.sql -> migrations/app/0003_mine.sql, built again\n"
    )
    assert met.contents() == before


def test_json_names_everything(met: Workshop) -> None:
    merge(met)
    told = met.json("rebase")
    assert told.pop("proved_on").startswith("PostgreSQL 18")
    assert told == {
        "target": "app",
        "outcome": "rebased",
        "onto": "main",
        "after": "migrations/app/0002_theirs.sql",
        "renamed": [],
        "kept": [],
        "rebuilt": [{"from": "migrations/app/0002_mine.sql", "to": "migrations/app/0003_mine.sql"}],
        "removed": [],
        "fixtures": [],
        "fixtures_run": 0,
        "losses": [],
        "notes": [],
        "next": "git add migrations/app && git commit",
    }


def test_an_older_timestamp_is_made_later(work: Workshop) -> None:
    work.write("pgsluice.toml", MAJOR + "[targets.app]\n")
    work.commit("timestamps")
    work.git("checkout", "--quiet", "-B", "feature")
    work.add_column("orders", "total integer")
    work.build("mine")
    (mine,) = [name for name in work.migrations() if name.endswith("mine.sql")]
    work.git("checkout", "--quiet", "main")
    work.add_column("users", "email text")
    work.ok("build", "theirs")
    (theirs,) = [name for name in work.migrations() if name.endswith("theirs.sql")]
    folder = work.root / "migrations/app"
    (folder / theirs).rename(folder / "29991231235958_theirs.sql")
    lock = work.read("migrations/app/pgsluice.lock").replace(theirs, "29991231235958_theirs.sql")
    work.write("migrations/app/pgsluice.lock", lock)
    work.ok("rehash", "--accept", "*")
    work.commit("theirs")
    work.git("checkout", "--quiet", "feature")
    merge(work)
    told = work.json("rebase")
    new = "29991231235959_mine.sql"
    assert told["rebuilt"] == [{"from": f"migrations/app/{mine}", "to": f"migrations/app/{new}"}]
    work.is_sound()


def test_a_column_that_both_added_leaves_nothing_to_do(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.build("theirs")
    work.git("checkout", "--quiet", "feature")
    work.add_column("users", "email text")
    work.build("mine")
    merge(work)
    lines = work.ok("rebase").splitlines()
    assert lines[1] == (
        "  migrations/app/0002_mine.sql is gone: "
        "the merged schema needs nothing that the shared migrations do not do"
    )
    assert work.migrations() == ["0001_first.sql", "0002_theirs.sql"]
    assert work.lock() == 'open = "0002_theirs.sql"'
    work.is_sound()


def test_a_closed_migration_keeps_its_bytes_and_its_template(met: Workshop) -> None:
    met.write("templates/app/fill.sql.j2", FILL)
    met.build("fill")
    met.add_column("orders", "note text")
    met.build("last")
    fill, mine = (met.read(f"migrations/app/{name}.sql") for name in ("0003_fill", "0002_mine"))
    merge(met)
    told = met.ok("rebase").splitlines()
    assert told[1:4] == [
        "  migrations/app/0002_mine.sql -> migrations/app/0003_mine.sql",
        "  migrations/app/0003_fill.sql -> migrations/app/0004_fill.sql",
        "  migrations/app/0004_last.sql -> migrations/app/0005_last.sql, built again",
    ]
    assert met.read("migrations/app/0003_mine.sql") == mine
    assert met.read("migrations/app/0004_fill.sql") == fill
    assert met.lock() == 'open = "0005_last.sql"'
    met.is_proved()


def test_closed_ones_alone_are_renumbered_and_proved(met: Workshop) -> None:
    met.ok("release")
    met.commit("release")
    merge(met)
    assert met.ok("rebase").splitlines()[1] == (
        "  migrations/app/0002_mine.sql -> migrations/app/0003_mine.sql"
    )
    assert met.lock() == ""
    met.is_sound()


def test_a_closed_one_that_no_longer_runs_is_refused_by_name(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.build("theirs")
    work.git("checkout", "--quiet", "feature")
    work.add_column("users", "email text")
    work.ok("build", "mine")
    work.ok("release")
    work.commit("mine")
    work.add_column("orders", "total integer")
    merge(work)
    assert work.fails(4, "rebase") == (
        "error: migrations/app/0002_mine.sql: the migration does not run after the shared ones\n"
        '  column "email" of relation "users" already exists (SQLSTATE 42701)\n'
        "  what it did that the schema still needs can be built anew, or correct it by hand\n"
        "hint: rm migrations/app/0002_mine.sql && pgsluice rebase --name mine\n"
    )
    (work.root / "migrations/app/0002_mine.sql").unlink()
    assert work.ok("rebase", "--name", "mine").splitlines()[1] == (
        "  migrations/app/0003_mine.sql, built of what is left"
    )
    work.is_sound()


def test_a_rest_without_an_open_migration_is_refused_by_name(met: Workshop) -> None:
    met.ok("release")
    met.commit("release")
    merge(met)
    met.add_column("users", "phone text")
    message = met.fails(4, "rebase")
    assert message == (
        "error: the merged migrations of target app do not lead to the merged schema, "
        "and none of yours is open to take the rest\n"
        "  column public.users.phone: missing\n"
        "hint: pgsluice rebase --name NAME, or correct schema/app\n"
    )
    met.ok("rebase", "--name", "phone")
    assert met.migrations() == [*MERGED, "0004_phone.sql"]
    met.is_sound()


def test_a_dropped_table_that_the_others_altered(work: Workshop) -> None:
    work.add_column("orders", "total integer")
    work.build("theirs")
    work.git("checkout", "--quiet", "feature")
    (work.root / "schema/app/orders.sql").unlink()
    work.build("mine", "--allow-destructive")
    merge(work)
    assert work.fails(2, "rebase") == (
        "error: schema/app/orders.sql: changed on one branch and removed on the other: "
        "git waits for your decision\n"
        "hint: git add schema/app/orders.sql, or git rm schema/app/orders.sql\n"
    )
    work.git("rm", "--quiet", "schema/app/orders.sql")
    assert "table public.orders" in work.fails(4, "rebase")
    told = work.ok("rebase", "--allow-destructive")
    assert "loses " in told
    assert work.migrations() == MERGED
    work.is_sound()


def test_a_schema_file_in_conflict_is_named(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.build("theirs")
    work.git("checkout", "--quiet", "feature")
    work.add_column("users", "phone text")
    work.build("mine")
    merge(work)
    assert work.fails(2, "rebase") == (
        "error: schema/app/users.sql:3: the file holds a merge conflict\n"
        "  <<<<<<< HEAD\n"
        "hint: settle it in your editor, then run the command again\n"
    )
    work.write("schema/app/users.sql", USERS.replace("key", "key,\n  email text,\n  phone text"))
    work.ok("rebase")
    assert "ADD COLUMN phone" in work.read("migrations/app/0003_mine.sql")
    assert "email" not in work.read("migrations/app/0003_mine.sql")
    work.is_sound()


def test_in_the_middle_of_git_rebase_with_two_commits(met: Workshop) -> None:
    met.add_column("orders", "note text")
    met.build("also_mine")
    met.git("rebase", "main", code=1)
    told = met.ok("rebase")
    assert told.splitlines()[-1] == "next: git add migrations/app && git rebase --continue"
    assert met.migrations() == MERGED
    met.git("add", "migrations/app")
    met.git("rebase", "--continue", code=1)
    lines = met.ok("rebase").splitlines()
    assert lines[1:3] == [
        "  migrations/app/0003_mine.sql keeps its name",
        "  migrations/app/0003_also_mine.sql -> migrations/app/0004_also_mine.sql, built again",
    ]
    met.git("add", "migrations/app")
    met.git("rebase", "--continue")
    assert met.git("status", "--short", "--branch") == "## feature\n"
    assert met.migrations() == [*MERGED, "0004_also_mine.sql"]
    met.is_proved()


def test_in_the_middle_of_git_rebase_the_later_commit_comes_last(met: Workshop) -> None:
    met.add_column("orders", "note text")
    met.build("a_late_one")
    met.git("rebase", "main", code=1)
    met.ok("rebase")
    met.git("add", "migrations/app")
    met.git("rebase", "--continue", code=1)
    met.ok("rebase")
    assert met.migrations() == [*MERGED, "0004_a_late_one.sql"]
    assert met.lock() == 'open = "0004_a_late_one.sql"'
    met.is_sound()


def test_in_the_middle_of_git_rebase_a_renamed_migration_in_conflict_is_the_one_of_head(
    met: Workshop,
) -> None:
    met.add_column("orders", "note text")
    met.ok("build")
    met.add_column("orders", "paid boolean")
    met.build("also_mine")
    met.git("rebase", "main", code=1)
    met.add_column("orders", "before boolean")
    met.ok("rebase")
    met.git("add", "migrations/app", "schema")
    met.git("rebase", "--continue", code=1)
    assert ">>>>>>>" in met.read("migrations/app/0003_mine.sql")
    met.write("schema/app/orders.sql", met.read("schema/app/orders.sql").replace("=======\n", ""))
    settled = [line for line in met.read("schema/app/orders.sql").splitlines() if line[:1] not in "<>"]
    met.write("schema/app/orders.sql", "\n".join(settled) + "\n")
    met.ok("rebase")
    assert met.migrations() == [*MERGED, "0004_also_mine.sql"]
    assert "before boolean" in met.read("migrations/app/0003_mine.sql")
    assert "note text" in met.read("migrations/app/0004_also_mine.sql")
    met.is_sound()


def test_records_that_were_committed_in_conflict_are_written_anew(met: Workshop) -> None:
    met.git("rebase", "main", code=1)
    met.git("add", "--all")
    met.git("rebase", "--continue")
    assert "holds a merge conflict" in met.fails(1, "verify")
    met.ok("rebase")
    assert met.migrations() == MERGED
    met.is_sound()


def test_shared_records_that_were_committed_in_conflict_are_written_anew(met: Workshop) -> None:
    merge(met)
    met.commit("unsettled")
    met.git("branch", "--force", "main")
    met.ok("rebase", "migrations/app/0002_mine.sql")
    assert met.migrations() == MERGED
    assert met.ok("verify") == "app: as built\n"


def test_a_feature_merged_into_main_comes_after_main(met: Workshop) -> None:
    met.git("checkout", "--quiet", "main")
    merge(met, "feature")
    told = met.ok("rebase").splitlines()
    assert told[0].startswith("put your migrations of app after those of main, ")
    assert met.migrations() == MERGED
    met.git("add", "migrations/app")
    met.git("commit", "--quiet", "--no-edit")
    assert met.ok("verify") == "app: as built\n"


def test_commits_pulled_from_origin_come_first(met: Workshop) -> None:
    met.git("update-ref", "refs/remotes/origin/main", "main")
    met.git("branch", "--delete", "--force", "main")
    met.git("branch", "--move", "main")
    merge(met, "origin/main")
    assert met.ok("rebase").startswith("put your migrations of app after those of origin/main, ")
    assert met.migrations() == MERGED


def test_in_the_middle_of_a_cherry_pick(met: Workshop) -> None:
    met.git("checkout", "--quiet", "main")
    met.git("cherry-pick", "feature", code=1)
    assert met.ok("rebase").splitlines()[-1] == "next: git add migrations/app && git cherry-pick --continue"
    assert met.migrations() == MERGED
    met.git("add", "migrations/app")
    met.git("cherry-pick", "--continue")
    assert met.ok("verify") == "app: as built\n"


def test_after_a_merge_that_took_one_side(met: Workshop) -> None:
    merge(met)
    met.git("checkout", "--ours", "migrations/app")
    met.git("add", "migrations/app")
    met.git("commit", "--quiet", "--no-edit")
    assert "migrations/app/0002_theirs.sql is not recorded" in met.fails(1, "verify")
    assert met.ok("rebase").splitlines()[-1] == "next: git add migrations/app && git commit"
    assert met.migrations() == MERGED
    met.is_sound()


def test_files_that_git_does_not_merge(met: Workshop) -> None:
    met.write(".gitattributes", "migrations/*/atlas.sum -merge\nmigrations/*/pgsluice.lock -merge\n")
    met.commit("attributes")
    merge(met)
    assert "<<<" not in met.read("migrations/app/pgsluice.lock")
    met.ok("rebase")
    assert met.migrations() == MERGED
    met.is_sound()


def test_before_the_merge_there_is_nothing_to_rebase_on(met: Workshop) -> None:
    assert met.fails(2, "rebase") == (
        "error: main has 0002_theirs.sql, which is not here: it was not merged yet\n"
        "hint: git merge main, then pgsluice rebase\n"
    )


def test_in_a_clone_that_lacks_old_commits_they_come_first(met: Workshop) -> None:
    met.git("update-ref", "refs/heads/trunk", "main")
    (met.root / ".git/shallow").write_text(met.git("rev-parse", "main") + met.git("rev-parse", "feature"))
    assert met.fails(2, "rebase", "--onto", "trunk") == (
        "error: trunk has 0002_theirs.sql, which is not here: it was not merged yet\n"
        "hint: git fetch --unshallow && git merge trunk, then pgsluice rebase\n"
    )


def test_after_a_stash_that_met_what_was_pulled_the_open_one_stays_open(met: Workshop) -> None:
    met.git("checkout", "--quiet", "-b", "other", "main~1")
    for name in ("migrations/app", "schema/app"):
        met.git("checkout", "feature", "--", name)
    met.git("stash", "push", "--quiet")
    met.git("merge", "--quiet", "main")
    met.git("stash", "pop", code=1)
    assert "0002_mine.sql -> migrations/app/0003_mine.sql, built again" in met.ok("rebase")
    assert met.lock() == 'open = "0003_mine.sql"'


def test_nothing_of_ones_own_takes_the_shared_state(met: Workshop) -> None:
    met.git("checkout", "--quiet", "-b", "other", "main~1")
    met.ok("release")
    met.commit("release")
    merge(met)
    assert met.ok("rebase") == (
        "took the migrations of main for app: none of them is yours\n"
        "next: git add migrations/app && git commit\n"
    )
    assert met.lock() == 'open = "0002_theirs.sql"'
    assert met.ok("verify") == "app: as built\n"


def test_one_file_name_on_both_sides(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.build("add_column")
    theirs = work.read("migrations/app/0002_add_column.sql")
    work.git("checkout", "--quiet", "feature")
    work.add_column("orders", "total integer")
    work.build("add_column")
    merge(work)
    assert "<<<" in work.read("migrations/app/0002_add_column.sql")
    assert work.ok("rebase").splitlines()[1] == (
        "  migrations/app/0002_add_column.sql -> migrations/app/0003_add_column_again.sql, built again"
    )
    assert work.read("migrations/app/0002_add_column.sql") == theirs
    assert "total" in work.read("migrations/app/0003_add_column_again.sql")
    work.is_sound()


def test_one_file_name_on_both_sides_and_another_after_it(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.build("add_column")
    work.git("checkout", "--quiet", "feature")
    work.add_column("orders", "total integer")
    work.build("add_column")
    work.add_column("orders", "note text")
    work.build("a_note")
    merge(work)
    mine = work.git("show", "HEAD:migrations/app/0002_add_column.sql")
    work.ok("rebase")
    assert work.migrations()[2:] == ["0003_add_column_again.sql", "0004_a_note.sql"]
    assert work.read("migrations/app/0003_add_column_again.sql") == mine
    work.is_sound()


def test_one_name_on_both_sides_with_templates(work: Workshop) -> None:
    work.write("templates/app/fill.sql.j2", FILL)
    work.build("fill")
    work.git("checkout", "--quiet", "feature")
    mine = FILL.replace("users as u set user_id = u.user_id", "orders as o set order_id = o.order_id")
    work.write("templates/app/fill.sql.j2", mine)
    work.build("fill")
    merge(work)
    assert "templates/app/fill.sql.j2:" in work.fails(2, "rebase")
    work.git("checkout", "main", "--", "templates/app/fill.sql.j2")
    assert work.fails(2, "rebase") == (
        "error: templates/app/fill.sql.j2: both branches have a migration fill, and yours has a template\n"
        "  yours becomes fill_again, so its template has to be templates/app/fill_again.sql.j2\n"
        "hint: write yours to templates/app/fill_again.sql.j2, "
        "then: git checkout main -- templates/app/fill.sql.j2\n"
    )
    work.write("templates/app/fill_again.sql.j2", mine)
    work.ok("rebase")
    assert work.migrations() == ["0001_first.sql", "0002_fill.sql", "0003_fill_again.sql"]
    assert "public.orders" in work.read("migrations/app/0003_fill_again.sql")
    work.is_sound()


def test_an_open_migration_that_both_went_on_with(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.ok("build")
    work.commit("theirs")
    theirs = work.read("migrations/app/0001_first.sql")
    work.git("checkout", "--quiet", "feature")
    work.add_column("orders", "total integer")
    work.ok("build")
    work.commit("mine")
    work.git("merge", "main", code=1)
    assert work.ok("rebase").splitlines()[1] == (
        "  migrations/app/0002_first_again.sql, built of what is left"
    )
    assert work.read("migrations/app/0001_first.sql") == theirs
    assert work.lock() == 'open = "0002_first_again.sql"'
    work.is_sound()


def test_an_open_migration_that_you_went_on_with_and_closed_comes_first(work: Workshop) -> None:
    work.write("README", "hello\n")
    work.commit("readme")
    work.git("checkout", "--quiet", "feature")
    work.add_column("orders", "total integer")
    work.ok("build")
    work.add_column("orders", "note text")
    work.build("a_note")
    work.git("merge", "--quiet", "--no-edit", "main")
    work.is_sound()
    work.add_column("orders", "late text")
    assert work.ok("rebase").splitlines()[1:3] == [
        "  migrations/app/0001_first.sql keeps its name",
        "  migrations/app/0002_a_note.sql, built again",
    ]
    work.is_sound()


def test_an_open_migration_that_only_you_went_on_with_stays_open(work: Workshop) -> None:
    work.write("schema/app/notes.sql", "-- nothing here yet\n")
    work.commit("theirs")
    work.git("checkout", "--quiet", "feature")
    work.add_column("orders", "total integer")
    work.ok("build")
    work.commit("mine")
    work.git("merge", "--quiet", "--no-edit", "main")
    work.ok("rebase")
    assert work.migrations() == ["0001_first.sql"]
    assert work.lock() == 'open = "0001_first.sql"'
    work.is_sound()


def test_the_files_of_an_online_migration_stay_together(work: Workshop) -> None:
    work.add_column("users", "email text")
    work.build("theirs")
    work.git("checkout", "--quiet", "feature")
    work.write(
        "schema/app/orders.sql", work.read("schema/app/orders.sql") + "create index on orders (order_id);\n"
    )
    work.add_column("orders", "total integer")
    work.build("mine", "--online")
    assert work.migrations()[1:] == ["0002_mine.sql", "0003_mine_concurrently.sql"]
    merge(work)
    folder = "migrations/app/"
    assert work.ok("rebase").splitlines()[1:3] == [
        f"  {folder}0002_mine.sql -> {folder}0003_mine.sql, built again",
        f"  {folder}0003_mine_concurrently.sql -> {folder}0004_mine_concurrently.sql, built again",
    ]
    assert work.migrations() == [*MERGED, "0004_mine_concurrently.sql"]
    assert work.lock() == ('online = true\nopen = [\n  "0003_mine.sql",\n  "0004_mine_concurrently.sql",')
    work.is_proved()


def test_fixtures_follow_the_migration_that_they_start_from(met: Workshop) -> None:
    met.ok("release")
    fixture = "tests/upgrades/app/0002/orders.sql"
    met.write(
        fixture,
        "-- expect: accepted\ninsert into public.orders (order_id, total) values (1, 2);\n"
        "-- then:\nselect count(*) = 1 from public.orders;\n",
    )
    met.add_column("orders", "note text")
    met.ok("build", "more")
    met.ok("release")
    text = met.read(fixture).replace("accepted\n", "accepted\n-- through: 0003\n")
    met.write(fixture, text)
    met.commit("release")
    met.git("checkout", "--quiet", "main")
    met.add_column("users", "phone text")
    met.ok("release")
    met.write(
        "tests/upgrades/app/0002/users.sql",
        "-- expect: accepted\ninsert into public.users (user_id, email) values (1, 'a');\n"
        "-- then:\nselect count(*) = 1 from public.users;\n",
    )
    met.build("phone")
    met.git("checkout", "--quiet", "feature")
    merge(met)
    told = met.ok("rebase").splitlines()
    assert told[3] == "  tests/upgrades/app/0002/orders.sql -> tests/upgrades/app/0004/orders.sql"
    assert told[4].endswith(", with 2 upgrade fixtures")
    assert told[5] == "next: git add migrations/app tests/upgrades/app && git commit"
    assert "-- through: 0005\n" in met.read("tests/upgrades/app/0004/orders.sql")
    assert (met.root / "tests/upgrades/app/0002/users.sql").exists()
    met.is_proved()


def test_files_named_by_hand_need_no_git(met: Workshop) -> None:
    met.git("-c", "merge.conflictStyle=diff3", "merge", "main", code=1)
    assert "|||||||" in met.read("migrations/app/pgsluice.lock")
    shutil.rmtree(met.root / ".git")
    assert met.fails(2, "rebase") == (
        f"error: {met.root} is in no git repository, so nothing says which migrations are yours\n"
        "hint: pgsluice rebase FILE, once for each migration of yours\n"
    )
    told = met.ok("rebase", "migrations/app/0002_mine.sql").splitlines()
    assert told[0] == (
        "put your migrations of app after the others, whose last is migrations/app/0002_theirs.sql"
    )
    assert told[1] == "  migrations/app/0002_mine.sql -> migrations/app/0003_mine.sql, built again"
    assert met.migrations() == MERGED
    assert met.lock() == 'open = "0003_mine.sql"'
    assert met.ok("verify") == "app: as built\n"


@pytest.mark.parametrize("what", ["edited", "removed"])
def test_a_shared_migration_that_was_changed(met: Workshop, what: str) -> None:
    merge(met)
    met.ok("rebase")
    met.git("add", "migrations/app")
    met.git("commit", "--quiet", "--no-edit")
    path = met.root / "migrations/app/0001_first.sql"
    if what == "edited":
        path.write_text("select 1;\n")
    else:
        path.unlink()
    assert met.fails(4, "rebase") == (
        f"error: migrations/app/0001_first.sql: the migration was {what}, and main has it\n"
        "hint: git checkout main -- migrations/app/0001_first.sql\n"
    )


def test_what_cannot_be_asked_for(met: Workshop) -> None:
    assert met.fails(2, "rebase", "--onto", "nowhere") == (
        "error: git knows no commit nowhere\nhint: git branch --all\n"
    )
    assert met.fails(2, "rebase", "--onto", "main", "0002_mine.sql") == (
        "error: name your migrations or --onto, not both\nhint: pgsluice rebase --help\n"
    )
    assert met.fails(2, "rebase", "0009_none.sql") == (
        "error: 0009_none.sql is no migration of target app\nhint: ls migrations/app\n"
    )
    merge(met)
    assert met.fails(2, "rebase", "--name", "more") == (
        "error: mine is open and takes what is left, so no other migration is started\n"
        "hint: pgsluice rebase\n"
    )
    met.ok("rebase")
    met.ok("release")
    assert met.fails(2, "rebase", "--name", "theirs") == (
        "error: a migration called theirs is there already\nhint: --name theirs_again\n"
    )


def test_without_a_branch_that_others_build_on(met: Workshop) -> None:
    met.git("branch", "--move", "main", "trunk")
    assert met.fails(2, "rebase") == (
        "error: nothing says which migrations are shared already: git has no main, master or origin\n"
        "hint: pgsluice rebase --onto BRANCH, or name your own: pgsluice rebase FILE\n"
    )
    met.git("merge", "trunk", code=1)
    assert met.ok("rebase", "--onto", "trunk").startswith("put your migrations of app after those of trunk,")


def test_carriage_returns_in_a_shared_migration(met: Workshop) -> None:
    merge(met)
    path = met.root / "migrations/app/0001_first.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert met.fails(2, "rebase") == (
        "error: CR found in migrations/app/0001_first.sql\n"
        "  it was committed with LF; .gitattributes keeps it so: *.sql text eol=lf\n"
        "hint: sed -i 's/\\r$//' migrations/app/0001_first.sql\n"
    )
    path = met.root / "migrations/app/0002_theirs.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert met.fails(2, "rebase") == (
        "error: CR found in migrations/app/0001_first.sql\n"
        "  and in 1 more\n"
        "  it was committed with LF; .gitattributes keeps it so: *.sql text eol=lf\n"
        "hint: sed -i 's/\\r$//' migrations/app/0001_first.sql migrations/app/0002_theirs.sql\n"
    )


def test_repositories_that_git_cannot_read(met: Workshop) -> None:
    tree = met.git("rev-parse", "main:migrations/app").strip()
    (met.root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert met.fails(2, "rebase").splitlines()[0] == f"error: git ls-tree failed in {met.root}"
    (met.root / ".git/HEAD").unlink()
    assert met.fails(2, "rebase").splitlines()[0] == (f"error: git cannot read the repository of {met.root}")
    shutil.rmtree(met.root / ".git")
    met.git("init", "--quiet")
    assert met.fails(2, "rebase") == "error: the repository has no commit yet\nhint: git commit\n"
