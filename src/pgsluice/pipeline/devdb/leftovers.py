"""Stops servers and removes what they leave behind."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.devdb.filelock import is_held, try_lock
from pgsluice.pipeline.devdb.folders import SERVER_NAME, ServerFolder, memory_base
from pgsluice.pipeline.devdb.postmaster import postmaster_pid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GRACE_S: Final = 10.0
PAUSE_S: Final = 0.01


def stop_server(folder: ServerFolder) -> None:
    """End every process of the folder's server.

    Raises:
        UnreachableError: Something of it survives SIGKILL.
    """

    def find_pid() -> int | None:
        return postmaster_pid(folder.memory_data) or postmaster_pid(folder.disk_data)

    def is_alive() -> bool:
        return is_held(folder.server_lock)

    if not end_server(is_alive, find_pid):
        raise UnreachableError(
            f"cannot stop the dev server in {folder.path}", hint=f"fuser -k {folder.server_lock}"
        )


def end_server(is_alive: Callable[[], bool], find_pid: Callable[[], int | None]) -> bool:
    """Signal a server, as soon as its process id is known, until none of its processes is left.

    Its data are thrown away: no checkpoint is worth waiting for.
    """
    return any(_signal_until_gone(number, is_alive, find_pid) for number in (signal.SIGQUIT, signal.SIGKILL))


def _signal_until_gone(
    number: signal.Signals, is_alive: Callable[[], bool], find_pid: Callable[[], int | None]
) -> bool:
    deadline = time.monotonic() + GRACE_S
    signalled = False
    while is_alive():
        if time.monotonic() > deadline:
            return False
        if not signalled and (pid := find_pid()) is not None:
            with suppress(ProcessLookupError):  # it ended by itself, its children are about to
                os.kill(pid, number)
            signalled = True
        time.sleep(PAUSE_S)
    return True


def remove_files(folder: ServerFolder) -> None:
    """Remove data, sockets and state; the lock files stay, others may be waiting for them."""
    for file in (folder.state_file, folder.launch_file, folder.failure_file, folder.log_file):
        file.unlink(missing_ok=True)
    for directory in (folder.memory_data, folder.disk_data, folder.socket_dir):
        shutil.rmtree(directory, ignore_errors=True)
    with suppress(OSError):  # not there, or it holds the data of other servers
        folder.memory_data.parent.rmdir()


def clear(folder: ServerFolder) -> bool:
    """Stop and remove a server that has no supervisor; the caller holds the start lock.

    Returns:
        Whether a server was running.
    """
    was_running = is_held(folder.server_lock)
    if was_running:
        stop_server(folder)
    remove_files(folder)
    return was_running


def sweep(runtime: Path, keep: ServerFolder | None) -> None:
    """Clear what killed commands of other projects left: servers without supervisor, data without server."""
    names = set(os.listdir(runtime))
    with suppress(FileNotFoundError):
        names |= set(os.listdir(memory_base(runtime)))
    for name in names - ({keep.path.name} if keep else set()):
        if SERVER_NAME.fullmatch(name):
            _sweep_one(ServerFolder(runtime / name))


def _sweep_one(folder: ServerFolder) -> None:
    if is_held(folder.supervisor_lock):
        return
    start = try_lock(folder.start_lock)
    if start is None:
        return
    with start:
        use = try_lock(folder.use_lock)
        if use is None:
            return
        with use:
            if is_held(folder.supervisor_lock):
                return
            clear(folder)
            shutil.rmtree(folder.path, ignore_errors=True)
