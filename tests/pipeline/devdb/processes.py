"""Starts actors, and waits for what they and the server's processes do."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgsluice.pipeline.devdb.filelock import is_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pgsluice.pipeline.devdb.folders import ServerFolder

ACTOR = Path(__file__).with_name("actor.py")
LIMIT_S = 60.0


class Actor:
    """One command in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def hears(self, at: str) -> dict[str, Any]:  # Any: JSON
        """The next line that the actor prints, which must be of this kind."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        assert readable, f"actor did not reach {at!r} in {LIMIT_S} s"
        line = self.process.stdout.readline()
        assert line, f"actor ended before {at!r} with {self.process.wait()}"
        values: dict[str, Any] = json.loads(line)
        assert values["at"] == at
        return values

    def go(self) -> None:
        """Let the actor go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def ends(self) -> None:
        """Wait until the actor has ended well."""
        assert self.process.wait(timeout=LIMIT_S) == 0


@contextmanager
def actor(
    *arguments: str | Path, prefix: Sequence[str] = (), environment: dict[str, str] | None = None
) -> Iterator[Actor]:
    """Run an actor for the `with` block; one that is still there in the end is killed."""
    command = prefix or [sys.executable]
    process = subprocess.Popen(
        [*command, str(ACTOR), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    with process:
        try:
            yield Actor(process)
        finally:
            if process.poll() is None:
                process.kill()


def wait_until(condition: Callable[[], bool], what: str, *, limit_s: float = LIMIT_S) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not so after {limit_s} s: {what}"
        time.sleep(0.01)


def supervisor_pid(folder: ServerFolder) -> int:
    """The process id of the supervisor."""
    assert is_held(folder.supervisor_lock)
    return int(folder.supervisor_lock.read_text())


def process_commands() -> list[str]:
    """The command lines of all processes that have not ended."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # ended since
    return commands


def is_silent(folder: ServerFolder) -> bool:
    """Whether no process and no data of this server is left."""
    mentions = [line for line in process_commands() if folder.path.name in line]
    has_data = folder.memory_data.exists() or folder.disk_data.exists() or folder.state_file.exists()
    return not mentions and not has_data and not is_held(folder.server_lock)
