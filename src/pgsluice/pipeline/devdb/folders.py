"""Where servers keep their sockets, state, data and caches, outside the project's own folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb.filelock import make_passable

RUNTIME_VARIABLE: Final = "PGSLUICE_RUNTIME_DIR"
CACHE_VARIABLE: Final = "PGSLUICE_CACHE_DIR"
STORAGE_VARIABLE: Final = "PGSLUICE_DEV_STORAGE"
SHARED_MEMORY: Final = Path("/dev/shm")
MEMORY_NEEDED_BYTES: Final = 1 << 30
LONGEST_SOCKET_PATH: Final = 100
UNUSED_AFTER_S: Final = 30 * 86400
SERVER_NAME: Final = re.compile(r"[0-9a-f]{12}-[0-9a-f]{6}")
SOCKET_FILE: Final = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """The runtime folder of one server: one a project root and specification."""

    path: Path

    @property
    def use_lock(self) -> Path:
        """Held shared by every command that uses the server; exclusively to stop it when idle."""
        return self.path / "use.lock"

    @property
    def start_lock(self) -> Path:
        """Held by the one command that starts, adopts or clears the server."""
        return self.path / "start.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor while it lives; contains its process id."""
        return self.path / "supervisor.lock"

    @property
    def server_lock(self) -> Path:
        """Held by the server's processes, which inherit it: free means that none of them is left."""
        return self.path / "server.lock"

    @property
    def state_file(self) -> Path:
        """Written when the server is ready."""
        return self.path / "state.json"

    @property
    def launch_file(self) -> Path:
        """What the supervisor has to start."""
        return self.path / "launch.json"

    @property
    def failure_file(self) -> Path:
        """Why the supervisor could not start the server."""
        return self.path / "failure.json"

    @property
    def log_file(self) -> Path:
        """What server and supervisor print."""
        return self.path / "server.log"

    @property
    def socket_dir(self) -> Path:
        """The folder of the server's socket."""
        return self.path / "s"

    @property
    def disk_data(self) -> Path:
        """The data folder when it is on disk."""
        return self.path / "data"

    @property
    def memory_data(self) -> Path:
        """The data folder when it is on tmpfs."""
        return memory_base(self.path.parent) / self.path.name


def runtime_base() -> Path:
    """The user's folder for running servers; does not depend on HOME or XDG variables, which vary."""
    if chosen := os.environ.get(RUNTIME_VARIABLE):
        return Path(chosen).absolute()
    parent = Path("/tmp")
    if not os.access(parent, os.W_OK | os.X_OK):
        parent = Path(tempfile.gettempdir())
    return parent / f"pgsluice-{os.getuid()}"


def memory_base(runtime: Path) -> Path:
    """The folder on tmpfs that belongs to one runtime folder."""
    digest = hashlib.sha256(os.fsencode(runtime)).hexdigest()[:8]
    return SHARED_MEMORY / f"pgsluice-{os.getuid()}-{digest}"


def root_key(root: Path) -> str:
    """The part of a server's key that comes from the project root, symbolic links resolved."""
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]


def server_folder(root: Path, identity: str) -> ServerFolder:
    """The folder of the server of this project root and specification.

    Raises:
        InputError: The path of the socket in it would be too long.
        UnreachableError: The runtime folder cannot be made, or belongs to somebody else.
    """
    base = runtime_base()
    spec_key = hashlib.sha256(identity.encode()).hexdigest()[:6]
    folder = ServerFolder(base / f"{root_key(root)}-{spec_key}")
    if len(os.fsencode(folder.socket_dir / SOCKET_FILE)) > LONGEST_SOCKET_PATH:
        raise InputError(
            f"runtime folder {base} is too long for a socket path",
            hint=f"export {RUNTIME_VARIABLE}=/tmp/pgsluice",
        )
    make_private(base)
    return folder


def make_private(folder: Path) -> None:
    """Create a folder that only this user can write to; root's may be passed through by the server's account.

    Raises:
        UnreachableError: It cannot be created, or belongs to or is writable by somebody else.
    """
    try:
        if os.getuid() == 0:
            make_passable(folder)
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as exc:
        raise UnreachableError(
            f"cannot create runtime folder {folder}: {exc.strerror}",
            hint=f"export {RUNTIME_VARIABLE}=/a/short/writable/folder",
        ) from exc
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    if not is_ours:
        raise UnreachableError(
            f"runtime folder {folder} belongs to or is writable by somebody else",
            hint=f"remove it, or export {RUNTIME_VARIABLE}=/a/short/writable/folder",
        )


def cache_base() -> Path:
    """The folder for what is slow to make and safe to lose; root's is outside /root."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        candidates = [Path(chosen).absolute()]
    elif os.getuid() == 0:
        candidates = [Path("/var/cache/pgsluice")]
    else:
        candidates = [_user_cache() / "pgsluice"]
    candidates.append(runtime_base() / "cache")
    for candidate in candidates:
        if _can_hold_files(candidate):
            return candidate
    raise UnreachableError(
        f"cannot write to cache folder {candidates[0]}", hint=f"export {CACHE_VARIABLE}=/a/writable/folder"
    )


def _user_cache() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen).absolute()
    return Path(os.environ.get("HOME") or "/nonexistent") / ".cache"


def _can_hold_files(folder: Path) -> bool:
    try:
        make_passable(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def forget_unused(folder: Path) -> None:
    """Remove what a part of the cache has not been asked for in a month, and drafts of killed commands."""
    with suppress(FileNotFoundError):
        for entry in folder.iterdir():
            if entry.name.startswith("draft-") or time.time() - entry.stat().st_mtime > UNUSED_AFTER_S:
                shutil.rmtree(entry, ignore_errors=True)


def wanted_storage() -> str:
    """What PGSLUICE_DEV_STORAGE says: `memory`, `disk`, or `auto` when it says nothing.

    Raises:
        InputError: It has another value.
    """
    storage = os.environ.get(STORAGE_VARIABLE, "auto")
    if storage not in {"auto", "memory", "disk"}:
        raise InputError(f"{STORAGE_VARIABLE}={storage} is not known", hint=f"export {STORAGE_VARIABLE}=disk")
    return storage


def choose_data_dir(folder: ServerFolder) -> Path:
    """The data folder: on tmpfs where it has room, else on disk; PGSLUICE_DEV_STORAGE=memory|disk decides.

    Raises:
        InputError: PGSLUICE_DEV_STORAGE has another value.
    """
    storage = wanted_storage()
    if storage == "memory" or (storage == "auto" and _memory_has_room()):
        try:
            make_private(folder.memory_data.parent)
        except UnreachableError:
            if storage == "memory":
                raise
        else:
            return folder.memory_data
    return folder.disk_data


def _memory_has_room() -> bool:
    if not (SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)):
        return False
    return free_bytes(SHARED_MEMORY) >= MEMORY_NEEDED_BYTES


def free_bytes(path: Path) -> int:
    """What is free on the file system of `path`."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
