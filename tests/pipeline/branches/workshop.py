"""A project in a git repository of its own, and commands run in it without a process each."""

from __future__ import annotations

import io
import json
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from pgsluice.cli.main import main
from pgsluice.config import DEV_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

MAJOR: Final = 'postgres = ["18", "18"]\n'
SEQUENCE: Final = MAJOR + '[targets.app]\nversioning = "sequence"\n'
USERS: Final = "create table users (\n  user_id bigint primary key\n);\n"
ORDERS: Final = "create table orders (\n  order_id bigint primary key\n);\n"
IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_EDITOR": "true",
}


@dataclass(frozen=True, slots=True)
class Workshop:
    """A work tree; `dev` is the server that its commands use."""

    root: Path
    dev: str

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; exit code, standard output and standard error without progress."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
            patch.chdir(self.root)
            patch.setenv(DEV_VARIABLE, self.dev)
            patch.setenv("NO_COLOR", "1")
            code = main(arguments)
        said = stderr.getvalue().splitlines(keepends=True)
        return code, stdout.getvalue(), "".join(line for line in said if not line.endswith(" …\n"))

    def ok(self, *arguments: str) -> str:
        """Run a command that succeeds."""
        code, out, err = self.run(*arguments)
        assert code == 0, f"pgsluice {' '.join(arguments)}: {code}\n{out}{err}"
        return out

    def json(self, *arguments: str) -> Any:
        """Run a command that succeeds with `--json`. `Any`: the caller knows the shape."""
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, code: int, *arguments: str) -> str:
        """Run a command that ends with `code` and changes no file; its error."""
        before = self.contents()
        found, out, err = self.run(*arguments)
        assert found == code, f"pgsluice {' '.join(arguments)}: {found}\n{out}{err}"
        assert self.contents() == before
        return err

    def git(self, *arguments: str, code: int | None = 0) -> str:
        """Run git; None for a code means that it may fail."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={**os.environ, **IDENTITY, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert code in (None, done.returncode), f"git {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def commit(self, message: str) -> None:
        """Commit all that is there."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def write(self, name: str, content: str) -> None:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())

    def read(self, name: str) -> str:
        """A file's text."""
        return (self.root / name).read_bytes().decode()

    def add_column(self, table: str, column: str) -> None:
        """Add a column in the schema file of a table."""
        name = f"schema/app/{table}.sql"
        self.write(name, self.read(name).replace("primary key", f"primary key,\n  {column}"))

    def build(self, name: str, *arguments: str) -> None:
        """Build a migration and commit it."""
        self.ok("build", name, *arguments)
        self.commit(name)

    def migrations(self) -> list[str]:
        """The names of the migrations."""
        return sorted(path.name for path in (self.root / "migrations/app").glob("*.sql"))

    def lock(self) -> str:
        """What the lock says is open."""
        lines = self.read("migrations/app/pgsluice.lock").splitlines()
        return "\n".join(line for line in lines if line.startswith(("open", "  ", "online")))

    def contents(self) -> dict[str, bytes]:
        """Every file with its bytes, without git's and pgsluice's own."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_file() and name.split("/")[0] not in (".git", ".pgsluice"):
                found[name] = path.read_bytes()
        return found

    def is_sound(self) -> None:
        """What holds after every rebase: verified, and nothing more to do."""
        assert self.ok("verify") == "app: as built\n"
        before = self.contents()
        assert self.ok("rebase").startswith("nothing to do: ")
        assert self.contents() == before

    def is_proved(self) -> None:
        """What `check` says after every rebase, for some of them."""
        self.is_sound()
        assert "FAILED" not in self.ok("check")
