"""Two branches meet in a repository whose project is one folder of many."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeProject
    from tests.e2e.project import Project

USERS: Final = "create table users (\n  user_id bigint primary key\n);\n"
NOTES: Final = "create table notes (note text);\n"
TAGS: Final = "create table tags (tag text);\n"
ADA: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}


def git(project: Project, *arguments: str, code: int = 0) -> str:
    """Run git at the top of the repository, which is the folder above the project."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=project.root.parent,
        env={**os.environ, **ADA, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def commit(project: Project, name: str) -> None:
    """Build a migration and commit all."""
    project.ok("build", name)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", name)


def meet(project: Project) -> None:
    """Leave a merge in the conflict of two branches that took one number."""
    git(project, "init", "--quiet", "--initial-branch=main")
    commit(project, "first")
    git(project, "checkout", "--quiet", "-b", "feature")
    project.write("schema/app/notes.sql", NOTES)
    commit(project, "notes")
    git(project, "checkout", "--quiet", "main")
    project.write("schema/app/tags.sql", TAGS)
    commit(project, "tags")
    git(project, "checkout", "--quiet", "feature")
    git(project, "merge", "main", code=1)


def test_rebase_in_a_folder_of_a_larger_repository(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS}, name="services/billing")
    meet(project)
    conflict = project.fails(1, "verify")
    assert conflict.startswith("error: migrations/app/atlas.sum:1 holds a merge conflict\n")
    assert conflict.count("hint: pgsluice rebase\n") == 2
    told = project.ok("rebase")
    assert "  migrations/app/0002_notes.sql -> migrations/app/0003_notes.sql, built again\n" in told
    assert project.ok("verify") == "app: as built\n"
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--no-edit")
    assert git(project, "status", "--short") == ""
    assert [path.name for path in project.migrations()] == [
        "0001_first.sql",
        "0002_tags.sql",
        "0003_notes.sql",
    ]


def test_rebase_under_the_environment_of_a_hook(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS}, name="services/billing")
    meet(project)
    told = project.ok(
        "rebase", "--dry-run", GIT_DIR=".git", GIT_INDEX_FILE=".git/index", GIT_ICASE_PATHSPECS="1"
    )
    assert told.splitlines()[1].endswith("0003_notes.sql, built again")


def test_rebase_without_a_dev_server_writes_nothing(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS}, name="services/billing")
    meet(project)
    project.fails(3, "rebase", PGSLUICE_DEV="postgresql://localhost:1/none")
