"""The commands of the tutorial for an existing database work, one after the other, and show what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.client import TIMEOUT_S, program
from tests.conftest import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer

TUTORIAL: Final = Path(__file__).parents[2] / "docs/tutorial/existing-database.md"
BLOCK: Final = re.compile(r"(?:<!-- (file|shown): (\S+) -->\n)?```(sh|sql)\n(.*?)```\n", re.DOTALL)
STOP: Final = "pgsluice dev stop\n"


def test_the_tutorial_works(tmp_path: Path, open_server: Callable[[str], DevServer], dev: str) -> None:
    with open_server(EMBEDDED).clone(None) as conninfo:
        folder = tmp_path
        for purpose, name, language, body in blocks():
            if purpose == "file":
                (tmp_path / name).write_text(body, encoding="utf-8")
            elif purpose == "shown":
                assert (folder / name).read_text("utf-8") == body
            elif language == "sh" and body != STOP:
                folder = run(body, folder, DATABASE_URL=conninfo, PGSLUICE_DEV=dev)
        assert (tmp_path / "shop/pgsluice.toml").is_file()


def blocks() -> Iterator[tuple[str, str, str, str]]:
    """Purpose, file, language and body of each fenced block."""
    for match in BLOCK.finditer(TUTORIAL.read_text("utf-8")):
        purpose, name, language, body = match.groups(default="")
        yield purpose, name, language, body


def run(commands: str, folder: Path, **environment: str) -> Path:
    """Run a block in the shell; returns the folder in which the shell ends."""
    path = f"{Path(sys.executable).parent}:{program('psql').parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", f"{commands}pwd"],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return Path(done.stdout.splitlines()[-1])
