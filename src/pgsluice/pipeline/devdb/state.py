"""The files through which commands and supervisor of one server talk."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: binaries, initialised cluster to copy, where to put it, and who owns it."""

    bin_dir: str
    binaries: str  # identity of the binaries; a server of others is not reused
    cluster: str
    data_dir: str
    uid: int | None  # the unprivileged account when the supervisor is root
    gid: int | None
    root: str
    idle_s: float


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server that became ready."""

    server_pid: int
    bin_dir: str
    binaries: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a server did not become ready."""

    message: str
    details: tuple[str, ...]
    hint: str | None


def write_record(path: Path, record: Launch | ServerState | Failure) -> None:
    """Replace the file at once, so that a reader sees the old or the new record."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(record)), encoding="utf-8")
    draft.replace(path)


def read_launch(path: Path) -> Launch | None:
    """Read what to start; None when there is nothing, or another version of pgsluice wrote it."""
    try:
        return Launch(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def read_state(path: Path) -> ServerState | None:
    """Read the state of a ready server; None when there is none, or another version of pgsluice wrote it."""
    try:
        return ServerState(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def read_failure(path: Path) -> Failure | None:
    """Read why a start failed; None when it did not."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Failure(record["message"], tuple(record["details"]), record["hint"])
