"""The differs beside which the pipeline is measured, installed into a folder of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# setuptools 81 took pkg_resources away, and SQLAlchemy 2.1 asks for psycopg 3 where migra has psycopg2.
MIGRA: Final = ("migra==3.0.1663481299", "psycopg2-binary", "setuptools<81", "sqlalchemy<2.1")
PGKIT: Final = "@pgkit/migra@0.6.1"
DIFFERENCE_FOUND: Final = 2


@dataclass(frozen=True, slots=True)
class Rival:
    """A differ's command line before and after the two URLs; `problem` says why it cannot run."""

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    problem: str | None = None

    def command(self, have: str, want: str) -> tuple[str, ...]:
        """What prints the statements that lead one database to the other."""
        return (*self.before, have, want, *self.after)


def install_rivals(folder: Path) -> tuple[Rival, ...]:
    """Install what is not there yet; takes a minute the first time, and needs the package indexes."""
    return _migra(folder / "migra"), _pgkit(folder / "pgkit")


def _migra(folder: Path) -> Rival:
    program = folder / "bin" / "migra"
    problem = None
    if not program.exists():
        problem = _install([sys.executable, "-m", "venv", folder]) or _install(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *MIGRA]
        )
    return Rival("migra", (str(program), "--unsafe"), problem=problem)


def _pgkit(folder: Path) -> Rival:
    program = folder / "node_modules" / ".bin" / "migra"
    problem = None
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        problem = "npm is not installed" if npm is None else None
        problem = problem or _install(
            [str(npm), "install", "--no-audit", "--no-fund", "--prefix", folder, PGKIT]
        )
    return Rival("@pgkit/migra", (str(program), "run"), ("--unsafe",), problem=problem)


def _install(command: Sequence[str | Path]) -> str | None:
    """What went wrong, if something did."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else f"{command[0]}: {lines[-1] if lines else done.returncode}"
