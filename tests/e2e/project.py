"""A project in a folder of its own, and the command line run in it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from pgsluice.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SEQUENCE: Final = '[targets.app]\nversioning = "sequence"\n'
TIMEOUT_S: Final = 180
STATE: Final = ".pgsluice"
FAULTS: Final = ("Traceback", "this is a bug in pgsluice")

Tree = dict[str, tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Done:
    """What a command gave."""

    code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.stdout}{self.stderr}"


@dataclass(frozen=True, slots=True)
class Project:
    """A project whose commands run in processes of their own.

    `dev` is the server that its commands use; None leaves the choice to its configuration.
    """

    root: Path
    dev: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run a command; nothing that a user sees may ever be a traceback."""
        done = subprocess.run(
            command(*arguments),
            cwd=self.root,
            env=self.variables(**environment),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        result = Done(done.returncode, done.stdout, done.stderr)
        assert not any(fault in str(result) for fault in FAULTS), str(result)
        return result

    def variables(self, **environment: str) -> dict[str, str]:
        """The environment of its commands."""
        chosen = {} if self.dev is None else {"PGSLUICE_DEV": self.dev}
        return {**os.environ, "NO_COLOR": "1", **chosen, **self.environment, **environment}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command and go on."""
        return subprocess.Popen(
            command(*arguments),
            cwd=self.root,
            env=self.variables(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ok(self, *arguments: str, **environment: str) -> str:
        """Run a command that succeeds, and return what it printed."""
        done = self.run(*arguments, **environment)
        assert done.code == 0, f"pgsluice {' '.join(arguments)}: {done}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Run a command that succeeds with `--json`. `Any`: the caller knows the shape."""
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, code: int, *arguments: str, **environment: str) -> str:
        """Run a command that ends with `code` and changes no file, and return its error."""
        before = self.tree()
        done = self.run(*arguments, **environment)
        assert done.code == code, f"pgsluice {' '.join(arguments)}: {done}"
        assert self.tree() == before
        progress, start, error = done.stderr.partition("error: ")
        assert start, str(done)
        assert all(line.endswith(" …") for line in progress.splitlines()), str(done)
        return start + error

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name: str) -> str:
        """A file of the project."""
        return (self.root / name).read_bytes().decode()

    def remove(self, name: str) -> None:
        """Remove a file of the project."""
        (self.root / name).unlink()

    def migrations(self, target: str = "app") -> list[Path]:
        """The migrations in order."""
        return sorted((self.root / "migrations" / target).glob("*.sql"))

    def newest(self, target: str = "app") -> str:
        """The text of the last migration."""
        return self.migrations(target)[-1].read_bytes().decode()

    def tree(self) -> Tree:
        """Every file with its bytes and the time of its last change; folders too."""
        return dict(_files(self.root))

    def contents(self) -> dict[str, bytes]:
        """Every file with its bytes."""
        return {name: content for name, (content, _) in self.tree().items()}


@dataclass(frozen=True, slots=True)
class InProcess(Project):
    """A project whose commands run in this process, by the command line's own entry.

    For tests whose subject is what a command does: starting Python and importing all takes longer than that.
    Variables that shape the interpreter itself, such as `LC_ALL`, need a process.
    """

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run a command; nothing that a user sees may ever be a traceback."""
        stdout, stderr = _stream(), _stream()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
            for name, value in self.variables(**environment).items():
                if os.environ.get(name) != value:
                    patch.setenv(name, value)
            patch.chdir(self.root)
            code = main(arguments)
        result = Done(code, _written(stdout), _written(stderr))
        assert not any(fault in str(result) for fault in FAULTS), str(result)
        return result


def command(*arguments: str) -> list[str]:
    """The command line of a command."""
    return [sys.executable, "-m", "pgsluice", *arguments]


def _stream() -> io.TextIOWrapper:
    """A stream with an encoding, as a process has them."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def _files(root: Path) -> Iterable[tuple[str, tuple[bytes, int]]]:
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] == STATE:
            continue
        if path.is_dir():
            yield f"{name}/", (b"", 0)
        else:
            yield name, (path.read_bytes(), path.stat().st_mtime_ns)
