"""Brings up the server of a project: the running one, an adopted one, or a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb.account import server_account
from pgsluice.pipeline.devdb.binaries import CLEAN_ENVIRONMENT, Binaries, find_binaries, usable_bin_dir
from pgsluice.pipeline.devdb.cluster import SUPERUSER, cached_cluster
from pgsluice.pipeline.devdb.filelock import FileLock, is_held, try_lock, wait_lock
from pgsluice.pipeline.devdb.folders import (
    ServerFolder,
    cache_base,
    choose_data_dir,
    root_key,
    runtime_base,
    server_folder,
)
from pgsluice.pipeline.devdb.leftovers import clear, sweep
from pgsluice.pipeline.devdb.state import (
    Launch,
    ServerState,
    read_failure,
    read_launch,
    read_state,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.devdb.spec import EmbeddedSpec, LocalSpec

IDLE_VARIABLE: Final = "PGSLUICE_DEV_IDLE_S"
DEFAULT_IDLE_S: Final = 300.0
SUPERVISOR: Final = "pgsluice.pipeline.devdb.supervisor"
WAIT_S: Final = 120.0
PAUSE_S: Final = 0.005
ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class ServerUse:
    """A running server, and the lock that keeps it running."""

    folder: ServerFolder
    lock: FileLock

    def end(self) -> None:
        """Let the server go; its supervisor counts the idle time from now."""
        with suppress(FileNotFoundError):  # stopped and removed under us
            os.utime(self.folder.use_lock)
        self.lock.close()


def use_server(spec: EmbeddedSpec | LocalSpec, root: Path, *, progress: Callable[[str], None]) -> ServerUse:
    """Use the project's server, starting or adopting it when needed.

    Raises:
        InputError: The specification leads to no binaries.
        UnreachableError: The server cannot be started.
    """
    check_root(root)
    binaries = find_binaries(spec)
    folder = server_folder(root, spec.identity)
    sweep(folder.path.parent, keep=folder)
    lock = take_use_lock(folder)
    try:
        state = live_state(folder)
        if state is None or not _fits(state, binaries):
            lock = _bring_up(folder, lock, root.resolve(), binaries=binaries, progress=progress)
    except BaseException:
        lock.close()
        raise
    os.utime(folder.use_lock)
    return ServerUse(folder, lock)


def check_root(root: Path) -> None:
    """Refuse a project root that is not there.

    Raises:
        InputError: It is not a folder.
    """
    if not root.is_dir():
        raise InputError(f"project root {root} is not a folder")


def live_state(folder: ServerFolder) -> ServerState | None:
    """The state of a server that runs and has a supervisor."""
    if is_held(folder.server_lock) and is_held(folder.supervisor_lock):
        return read_state(folder.state_file)
    return None


def _fits(state: ServerState, binaries: Binaries) -> bool:
    """Whether a server runs the binaries that are wanted, under our name, and they are still there."""
    return state.binaries == _wanted(binaries) and Path(state.bin_dir, "postgres").exists()


def _wanted(binaries: Binaries) -> str:
    return f"{binaries.identity} as {SUPERUSER}"


def _is_foreign(folder: ServerFolder) -> bool:
    """Whether another version of pgsluice runs the server, and wrote a state that we cannot read."""
    return folder.state_file.exists() and read_state(folder.state_file) is None


def stop_servers(root: Path) -> bool:
    """Stop the servers of a project root, whatever binaries they run, and remove their data.

    Returns:
        Whether any was running.
    """
    base = runtime_base()
    if not base.is_dir():
        return False
    stopped = [_stop(ServerFolder(path)) for path in sorted(base.glob(f"{root_key(root)}-*"))]
    sweep(base, keep=None)
    return any(stopped)


def _stop(folder: ServerFolder) -> bool:
    with take_start_lock(folder, lambda _: None):
        was_running = is_held(folder.server_lock)
        _stop_supervisor(folder)
        return clear(folder) or was_running


def _stop_supervisor(folder: ServerFolder) -> None:
    """Ask the supervisor to stop its server, and wait until it has."""
    deadline = time.monotonic() + WAIT_S
    asked = ""
    while is_held(folder.supervisor_lock):
        pid = folder.supervisor_lock.read_text(encoding="utf-8")
        if pid != asked and pid.isdecimal():  # it changes once, when the supervisor detaches
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
            asked = pid
        if time.monotonic() > deadline:
            raise UnreachableError(f"supervisor {pid} of the dev server does not stop", hint=f"kill -9 {pid}")
        time.sleep(PAUSE_S)


def take_use_lock(folder: ServerFolder) -> FileLock:
    """The shared lock that keeps others from stopping or replacing the server while we use it.

    Raises:
        UnreachableError: Whoever stops the server does not finish.
    """
    lock = wait_lock(folder.use_lock, shared=True, timeout_s=WAIT_S)
    if lock is None:
        raise UnreachableError(
            f"the dev server in {folder.path} does not finish stopping", hint="pgsluice dev stop"
        )
    return lock


def take_start_lock(folder: ServerFolder, progress: Callable[[str], None]) -> FileLock:
    """The lock of the one command that starts, adopts or stops the server.

    Raises:
        UnreachableError: Another command holds it for too long.
    """
    lock = try_lock(folder.start_lock)
    if lock is None:
        progress("waiting for another command that starts or stops the dev server")
        lock = wait_lock(folder.start_lock, timeout_s=WAIT_S)
    if lock is None:
        raise UnreachableError(
            f"another command does not finish starting or stopping the dev server in {folder.path}",
            hint=f"fuser -v {folder.start_lock}",
        )
    return lock


def _bring_up(
    folder: ServerFolder,
    lock: FileLock,
    root: Path,
    *,
    binaries: Binaries,
    progress: Callable[[str], None],
) -> FileLock:
    """Start or adopt; one command at a time, the others find the server running.

    Returns:
        The shared use lock, which may be another one than was passed.
    """
    with take_start_lock(folder, progress):
        state = live_state(folder)
        if (state is None and _is_foreign(folder)) or (state is not None and not _fits(state, binaries)):
            lock = _retire(folder, lock)
        for _ in range(ATTEMPTS):
            if live_state(folder) is not None:
                return lock
            if not is_held(folder.supervisor_lock):
                _prepare(folder, root, binaries=binaries, progress=progress)
                _spawn_supervisor(folder)
            _wait_while_starting(folder)
        if live_state(folder) is not None:
            return lock
    lock.close()
    raise _silent_failure(folder)


def _retire(folder: ServerFolder, lock: FileLock) -> FileLock:
    """Stop a server of binaries that were replaced since, unless another command uses it."""
    lock.close()
    alone = try_lock(folder.use_lock)
    if alone is None:
        return take_use_lock(folder)
    _stop_supervisor(folder)
    clear(folder)
    alone.share()
    return alone


def _prepare(
    folder: ServerFolder, root: Path, *, binaries: Binaries, progress: Callable[[str], None]
) -> None:
    """Leave an orphan server to be adopted, or clear what is left and write down what to start."""
    state = read_state(folder.state_file)
    is_orphan = is_held(folder.server_lock) and read_launch(folder.launch_file) is not None
    if state is not None and is_orphan and _fits(state, binaries):
        return
    clear(folder)
    account = server_account()
    with _cache_lock():
        bin_dir = usable_bin_dir(binaries, account, progress=progress)
        cluster = cached_cluster(bin_dir, binaries.identity, account, progress=progress)
    progress(f"starting the PostgreSQL server of {binaries.bin_dir}")
    launch = Launch(
        bin_dir=str(bin_dir),
        binaries=_wanted(binaries),
        cluster=str(cluster),
        data_dir=str(choose_data_dir(folder)),
        uid=account.uid if account else None,
        gid=account.gid if account else None,
        root=str(root),
        idle_s=idle_seconds(),
    )
    write_record(folder.launch_file, launch)


def _cache_lock() -> FileLock:
    path = cache_base() / "cache.lock"
    lock = wait_lock(path, timeout_s=WAIT_S)
    if lock is None:
        raise UnreachableError(f"another command holds {path}", hint=f"fuser -v {path}")
    return lock


def idle_seconds() -> float:
    """After how many seconds without a use a server stops: PGSLUICE_DEV_IDLE_S.

    Raises:
        InputError: It is not a number.
    """
    text = os.environ.get(IDLE_VARIABLE, "")
    try:
        return float(text) if text else DEFAULT_IDLE_S
    except ValueError as exc:
        raise InputError(
            f"{IDLE_VARIABLE}={text} is not a number of seconds", hint=f"export {IDLE_VARIABLE}=300"
        ) from exc


def _spawn_supervisor(folder: ServerFolder) -> None:
    """Start the supervisor, which detaches; nothing of ours stays open in it."""
    environment = {
        **CLEAN_ENVIRONMENT,
        **{
            name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ
        },  # for Python itself
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
    }
    command = [sys.executable, "-m", SUPERVISOR, str(folder.path)]
    with folder.log_file.open("ab") as log:
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=False,
            )
        except OSError as exc:
            raise UnreachableError(f"cannot run {sys.executable}: {exc.strerror}") from exc
    if done.returncode != 0:
        raise _silent_failure(folder)


def _wait_while_starting(folder: ServerFolder) -> None:
    """Wait until the server is ready, or its supervisor has ended.

    Raises:
        UnreachableError: The supervisor says why there is no server.
    """
    deadline = time.monotonic() + WAIT_S
    is_alive = True
    while is_alive and live_state(folder) is None:
        if time.monotonic() > deadline:
            raise _silent_failure(folder)
        is_alive = is_held(folder.supervisor_lock)
        failure = read_failure(folder.failure_file)
        if failure is not None and not _lost_its_cluster(folder):
            raise UnreachableError(failure.message, details=failure.details, hint=failure.hint)
        time.sleep(PAUSE_S)


def _lost_its_cluster(folder: ServerFolder) -> bool:
    """Whether the cached cluster vanished before the supervisor had copied it."""
    launch = read_launch(folder.launch_file)
    return launch is not None and not Path(launch.cluster).is_dir()


def _silent_failure(folder: ServerFolder) -> UnreachableError:
    lines: tuple[str, ...] = ()
    with suppress(FileNotFoundError):
        lines = tuple(folder.log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
    return UnreachableError(
        "the dev server did not become ready, and its supervisor does not say why",
        details=lines,
        hint="pgsluice dev stop",
    )
