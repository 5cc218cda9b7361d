"""Advisory file locks that end with their process and survive the removal of their folder."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

FIRST_PAUSE_S: Final = 0.001
LONGEST_PAUSE_S: Final = 0.02


@dataclass(slots=True)
class FileLock:
    """A held `flock`; leaving the `with` block, `close` or the end of the process releases it."""

    path: Path
    fd: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock; once is enough."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def share(self) -> None:
        """Turn an exclusive lock into a shared one."""
        fcntl.flock(self.fd, fcntl.LOCK_SH)

    def is_current(self) -> bool:
        """Whether the path still leads to the locked file: a removed one locks nobody out."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        held = os.fstat(self.fd)
        return (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)

    def write(self, text: str) -> None:
        """Replace the file's content, such as the holder's process id."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, text.encode(), 0)


def make_passable(folder: Path) -> None:
    """Create a folder that, when it is root's, the server's account may pass through whatever the umask."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):  # removed since
        mode = folder.stat().st_mode
        if os.getuid() == 0 and mode & 0o011 != 0o011:
            folder.chmod(mode | 0o011)


def try_lock(path: Path, *, shared: bool = False) -> FileLock | None:
    """Take the lock at once, creating file and folder, or return None while another holds it."""
    while True:
        make_passable(path.parent)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the folder was removed since
            continue
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        lock = FileLock(path, fd)
        if lock.is_current():
            return lock
        lock.close()


def wait_lock(path: Path, *, shared: bool = False, timeout_s: float) -> FileLock | None:
    """Take the lock as soon as it is free, or return None when `timeout_s` have passed."""
    deadline = time.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    while (lock := try_lock(path, shared=shared)) is None:
        if time.monotonic() >= deadline:
            return None
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
    return lock


class LockProbe:
    """Watches who holds a lock file, even after its path was removed."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def is_held(self) -> bool:
        """Whether some process holds the lock exclusively."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        return False


def is_held(path: Path) -> bool:
    """Whether some process holds the lock exclusively."""
    if not path.exists():
        return False
    lock = try_lock(path, shared=True)
    if lock is None:
        return True
    lock.close()
    return False
