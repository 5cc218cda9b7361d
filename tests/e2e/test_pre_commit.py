"""The hooks of `.pre-commit-hooks.yaml`, installed and run by pre-commit itself in a scratch repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.digest import schema_digest
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
NOT_COPIED: Final = (".git", ".venv", ".*_cache", ".hypothesis", ".pgsluice", "__pycache__", "dist", "tests")
TIMEOUT_S: Final = 600
CONFIG: Final = """\
repos:
  - repo: {repo}
    rev: {rev}
    hooks:
      - id: pgsluice-lint
      - id: pgsluice-verify
"""


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, and the environment of the commands that run in it."""

    root: Path
    environment: Mapping[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command; its output is in `stdout` as a whole."""
        return subprocess.run(
            command,
            cwd=self.root,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    def ok(self, *command: str) -> str:
        """Run a command that succeeds."""
        done = self.run(*command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def commit(self) -> subprocess.CompletedProcess[str]:
        """Stage and commit everything, as a user does, hooks included."""
        self.ok("git", "add", "--all")
        return self.run("git", "commit", "--quiet", "--message=change")

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


def new_repository(root: Path, environment: Mapping[str, str]) -> Repository:
    """An empty repository."""
    root.mkdir(parents=True, exist_ok=True)
    repository = Repository(root, environment)
    repository.ok("git", "init", "--quiet")
    return repository


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Nothing of the user's: neither git's settings nor pre-commit's cache.

    What pip installs is compiled by its first use: not all of it, and not by each use.
    """
    home = tmp_path / "home"
    home.mkdir()
    left_out = ("GIT_", "PRE_COMMIT", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(home),
        "PRE_COMMIT_COLOR": "never",
        "PIP_NO_COMPILE": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "tester",
        "GIT_AUTHOR_EMAIL": "tester@example.org",
        "GIT_COMMITTER_NAME": "tester",
        "GIT_COMMITTER_EMAIL": "tester@example.org",
    }


@pytest.fixture
def hooks(tmp_path: Path, environment: Mapping[str, str]) -> Repository:
    """This project as a repository of hooks: its files as they are now, one of them not committed yet."""
    folder = tmp_path / "hooks"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    repository = new_repository(folder, environment)
    assert repository.commit().returncode == 0
    return repository


@pytest.fixture
def scratch(tmp_path: Path, environment: Mapping[str, str]) -> Repository:
    """A project as a build left it."""
    repository = new_repository(tmp_path / "scratch", environment)
    repository.write("pgsluice.toml", "[targets.app]\n")
    repository.write("schema/app/users.sql", "create table users (user_id bigint);\n")
    repository.write("migrations/app/0001_a.sql", "CREATE TABLE public.users (user_id bigint);\n")
    record(repository)
    repository.ok("git", "add", "--all")
    return repository


def record(repository: Repository) -> None:
    """Write `atlas.sum` and the lock as a build does; the migration stays open."""
    migrations = repository.root / "migrations/app"
    (migrations / SUM_NAME).write_bytes(compute_sum(migrations).render())
    digest = schema_digest(repository.root / "schema/app")
    (migrations / LOCK_NAME).write_bytes(Lock(schema=digest, open=("0001_a.sql",)).render())


def test_try_repo_installs_the_hooks_and_a_clean_project_passes(
    hooks: Repository, scratch: Repository
) -> None:
    listed = hooks.root / ".pre-commit-hooks.yaml"
    listed.write_text(listed.read_text("utf-8").replace("name: pgsluice lint", "name: uncommitted lint"))
    output = scratch.ok("pre-commit", "try-repo", str(hooks.root), "--all-files")
    results = [line for line in output.splitlines() if line.endswith(("Passed", "Failed"))]
    assert [line.replace(".", "") for line in results] == ["uncommitted lintPassed", "pgsluice verifyPassed"]


def test_a_commit_is_blocked_by_a_lint_error_and_by_a_broken_checksum(
    hooks: Repository, scratch: Repository
) -> None:
    rev = hooks.ok("git", "rev-parse", "HEAD").strip()
    scratch.write(".pre-commit-config.yaml", CONFIG.format(repo=hooks.root, rev=rev))
    scratch.ok("pre-commit", "install")
    assert scratch.commit().returncode == 0

    scratch.write("schema/app/users.sql", "CREATE table users (user_id bigint);\n")
    record(scratch)
    done = scratch.commit()
    assert done.returncode != 0
    assert "schema/app/users.sql:1:1: error: keywords must be lower case [sqlfluff/CP01]" in done.stdout

    scratch.write("schema/app/users.sql", "create table users (user_id bigint);\n")
    record(scratch)
    scratch.write("migrations/app/0001_a.sql", "CREATE TABLE public.users (user_id bigint);\n\n")
    done = scratch.commit()
    assert done.returncode != 0
    assert "migrations/app/0001_a.sql was edited after it was recorded" in done.stdout

    record(scratch)
    done = scratch.commit()
    assert done.returncode == 0, done.stdout
