"""The detached process that owns one dev server: starts it, watches it, and stops it when nobody uses it.

Run by `launcher` as `python -m pgsluice.pipeline.devdb.supervisor FOLDER`. It imports no driver: it reads the
server's own `postmaster.pid`, and knows uses by the locks that commands hold.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import PipelineError, UnreachableError
from pgsluice.pipeline.devdb.account import ServerAccount, popen_options
from pgsluice.pipeline.devdb.binaries import CLEAN_ENVIRONMENT
from pgsluice.pipeline.devdb.cluster import copy_cluster, server_command
from pgsluice.pipeline.devdb.filelock import FileLock, LockProbe, is_held, try_lock, wait_lock
from pgsluice.pipeline.devdb.folders import STORAGE_VARIABLE, ServerFolder, free_bytes
from pgsluice.pipeline.devdb.leftovers import end_server, remove_files
from pgsluice.pipeline.devdb.postmaster import is_ready
from pgsluice.pipeline.devdb.state import (
    Failure,
    Launch,
    ServerState,
    read_launch,
    read_state,
    write_record,
)

if TYPE_CHECKING:
    from types import FrameType

POLL_S: Final = 0.5
READY_POLL_S: Final = 0.005
READY_TIMEOUT_S: Final = 60.0
LOCK_TIMEOUT_S: Final = 5.0
SMALLEST_ROOM_BYTES: Final = 64 << 20
LOG_LINES: Final = 12


class Wakeup:
    """Sleeps until time has passed or a signal came; remembers whether the signal asks to stop."""

    def __init__(self) -> None:
        self.stop_requested = False
        self._reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGCHLD, self._on_child)
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, self._on_child)

    def _on_stop(self, _signal: int, _frame: FrameType | None) -> None:
        self.stop_requested = True

    def _on_child(self, _signal: int, _frame: FrameType | None) -> None:
        pass

    def sleep(self, timeout_s: float) -> None:
        """Return after `timeout_s`, or as soon as a signal comes."""
        readable, _, _ = select.select([self._reader], [], [], timeout_s)
        if readable:
            os.read(self._reader, 512)


@dataclass(slots=True)
class Server:
    """The server that this supervisor watches; `process` is None for one that another supervisor started."""

    folder: ServerFolder
    pid: int
    process: subprocess.Popen[bytes] | None
    probe: LockProbe

    def is_alive(self) -> bool:
        """Whether any process of it is left; collects our own child."""
        if self.process is not None:
            self.process.poll()
        return self.probe.is_held()

    def end(self) -> None:
        """End all its processes."""
        end_server(self.is_alive, lambda: self.pid)

    def kill(self) -> None:
        """End it without a chance to touch files, which may be another server's by now."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)


def main() -> None:
    """Take the supervisor's lock, detach from the command that started us, and serve until the end of use."""
    folder = ServerFolder(Path(sys.argv[1]))
    own = wait_lock(folder.supervisor_lock, timeout_s=LOCK_TIMEOUT_S)
    if own is None:  # another one lives
        return
    own.write(str(os.getpid()))
    if os.fork() != 0:
        os._exit(0)  # the child has the lock as well
    own.write(str(os.getpid()))
    with own:
        supervise(folder, own)


def supervise(folder: ServerFolder, own: FileLock) -> None:
    """Adopt or start the server, watch it, and remove every trace of it in the end."""
    wakeup = Wakeup()
    launch = read_launch(folder.launch_file)
    if launch is None:
        sys.exit(f"cannot read {folder.launch_file}")
    try:
        server = adopt_server(folder) or start_server(folder, launch)
    except PipelineError as exc:
        remove_files(folder)
        write_record(folder.launch_file, launch)
        write_record(folder.failure_file, Failure(exc.message, exc.details, exc.hint))
        return
    with watch(server, launch, own, wakeup) or nullcontext():
        if not own.is_current():
            server.kill()
            return
        server.end()
        remove_files(folder)


def adopt_server(folder: ServerFolder) -> Server | None:
    """The ready server that a killed supervisor left behind."""
    state = read_state(folder.state_file)
    if state is not None and is_held(folder.server_lock):
        return Server(folder, state.server_pid, None, LockProbe(folder.server_lock))
    return None


def start_server(folder: ServerFolder, launch: Launch) -> Server:
    """Start a server on a fresh copy of the initialised cluster, and wait until it accepts connections.

    Raises:
        UnreachableError: It did not become ready.
    """
    account = None
    if launch.uid is not None and launch.gid is not None:
        account = ServerAccount(launch.uid, launch.gid)
    data_dir = Path(launch.data_dir)
    copy_cluster(Path(launch.cluster), data_dir, account)
    shutil.rmtree(folder.socket_dir, ignore_errors=True)
    folder.socket_dir.mkdir(mode=0o700)
    if account:
        account.own(folder.socket_dir)
    process = _spawn(folder, server_command(Path(launch.bin_dir), data_dir, folder.socket_dir), account)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not is_ready(data_dir):
        if process.poll() is not None:
            raise _start_failure(folder, launch, f"exited with status {process.returncode}")
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise _start_failure(folder, launch, f"was not ready after {READY_TIMEOUT_S:.0f} s")
        time.sleep(READY_POLL_S)
    write_record(folder.state_file, ServerState(process.pid, launch.bin_dir, launch.binaries))
    return Server(folder, process.pid, process, LockProbe(folder.server_lock))


def _spawn(
    folder: ServerFolder, command: list[str], account: ServerAccount | None
) -> subprocess.Popen[bytes]:
    """Start the server with the lock that all its processes inherit and hold."""
    held = wait_lock(folder.server_lock, timeout_s=LOCK_TIMEOUT_S)
    if held is None:
        raise UnreachableError(f"another server still runs in {folder.path}", hint="pgsluice dev stop")
    with held, folder.log_file.open("ab") as log:
        try:
            return subprocess.Popen(
                command,
                **popen_options(account),
                env=CLEAN_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[held.fd],
            )
        except OSError as exc:
            raise UnreachableError(f"cannot start {command[0]}: {exc.strerror}") from exc


def _start_failure(folder: ServerFolder, launch: Launch, what: str) -> UnreachableError:
    lines = folder.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    if free_bytes(Path(launch.data_dir).parent) < SMALLEST_ROOM_BYTES:
        hint = f"free some space in {Path(launch.data_dir).parent}, or export {STORAGE_VARIABLE}=disk"
    else:
        hint = f"try {launch.bin_dir}/postgres --version"
    return UnreachableError(
        f"the PostgreSQL server of {launch.bin_dir} {what}", details=tuple(lines[-LOG_LINES:]), hint=hint
    )


def watch(server: Server, launch: Launch, own: FileLock, wakeup: Wakeup) -> FileLock | None:
    """Return when the server should stop or has stopped, with the lock that keeps new uses waiting if free.

    Reasons to stop: a request, nobody used it for `idle_s`, the project root is gone, our own runtime folder
    was removed, or the server died.
    """
    folder = server.folder
    last_use, last_mark = time.monotonic(), _use_mark(folder)
    while True:
        wakeup.sleep(min(POLL_S, launch.idle_s))
        use = try_lock(folder.use_lock)
        now, mark = time.monotonic(), _use_mark(folder)
        if use is None or mark != last_mark:
            last_use, last_mark = now, mark
        is_over = (
            wakeup.stop_requested
            or not server.is_alive()
            or not Path(launch.root).is_dir()
            or not own.is_current()
        )
        if is_over or (use is not None and now - last_use >= launch.idle_s):
            return use
        if use is not None:
            use.close()


def _use_mark(folder: ServerFolder) -> float:
    try:
        return folder.use_lock.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    main()
