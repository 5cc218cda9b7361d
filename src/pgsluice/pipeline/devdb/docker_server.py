"""Brings up the server of a project in a container: the running one, or a new one."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb.docker_container import (
    NO_PROGRAMS,
    Container,
    Ending,
    Order,
    connection_parameters,
    list_containers,
    read_ending,
    remove_container,
    start_container,
)
from pgsluice.pipeline.devdb.docker_engine import engine_words, open_engine
from pgsluice.pipeline.devdb.docker_image import find_image
from pgsluice.pipeline.devdb.filelock import try_lock
from pgsluice.pipeline.devdb.folders import (
    ServerFolder,
    make_private,
    root_key,
    runtime_base,
    wanted_storage,
)
from pgsluice.pipeline.devdb.launcher import (
    ServerUse,
    check_root,
    idle_seconds,
    take_start_lock,
    take_use_lock,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgsluice.pipeline.devdb.admin import Admin
    from pgsluice.pipeline.devdb.docker_engine import Engine
    from pgsluice.pipeline.devdb.docker_image import Image
    from pgsluice.pipeline.devdb.filelock import FileLock
    from pgsluice.pipeline.devdb.spec import DockerSpec

FOLDER_PREFIX: Final = "docker-"
FORGOTTEN_AFTER_S: Final = 86400
READY_TIMEOUT_S: Final = 120.0
READY_PAUSE_S: Final = 0.05
LOOK_EVERY_S: Final = 0.25
TELL_EVERY_S: Final = 10.0
# This close to its limit a container may be about to end although it accepts connections.
EDGE_S: Final = 5.0
EDGE_WAIT_S: Final = 0.3
PING: Final = "select"


@dataclass(frozen=True, slots=True)
class Unready:
    """Why there is no connection to a server yet."""

    reason: str


@dataclass(frozen=True, slots=True)
class Job:
    """What one command needs to bring up its server."""

    engine: Engine
    image: Image
    order: Order
    folder: ServerFolder
    last_use: float
    progress: Callable[[str], None]

    def find(self) -> list[Container]:
        """The containers of the server, running or not."""
        return list_containers(self.engine, self.order.key)

    def fits(self, container: Container) -> bool:
        """Whether a container runs what is wanted now."""
        return container.fits(self.image, self.order.settings)


def use_container(
    spec: DockerSpec, root: Path, *, progress: Callable[[str], None]
) -> tuple[ServerUse, Admin]:
    """Use the project's container of an image, starting it when needed, and connect to it.

    Raises:
        InputError: The SDK is not installed, or the image holds no server.
        UnreachableError: The engine does not answer, or cannot pull or start the image.
    """
    check_root(root)
    folder = _folder(root, spec)
    order = Order(_key(folder), root.resolve(), idle_seconds(), wanted_storage())
    with open_engine() as engine:
        image = find_image(engine, spec, progress=progress)
        lock = take_use_lock(folder)
        try:
            job = Job(engine, image, order, folder, folder.use_lock.stat().st_mtime, progress)
            admin = _connect_running(job)
            if isinstance(admin, Unready):
                with take_start_lock(folder, progress):
                    lock = _make_room(job, lock)
                    admin = _bring_up(job)
        except BaseException:
            lock.close()
            raise
    os.utime(folder.use_lock)
    return ServerUse(folder, lock), admin


def stop_containers(root: Path) -> bool:
    """Remove the containers of a project root, whatever image they run.

    The engine is asked only when the project has used one.

    Returns:
        Whether any was running.

    Raises:
        InputError: The SDK is not installed any more.
        UnreachableError: The engine does not answer, or cannot remove them.
    """
    base = runtime_base()
    folders = [ServerFolder(path) for path in sorted(base.glob(f"{FOLDER_PREFIX}{root_key(root)}-*"))]
    if not folders:
        return False
    with open_engine() as engine:
        stopped = [_stop(engine, folder) for folder in folders]
    return any(stopped)


def _stop(engine: Engine, folder: ServerFolder) -> bool:
    with take_start_lock(folder, lambda _: None):
        containers = list_containers(engine, _key(folder))
        _remove(containers)
        shutil.rmtree(folder.path, ignore_errors=True)
    return any(container.is_running for container in containers)


def _folder(root: Path, spec: DockerSpec) -> ServerFolder:
    """The folder of the locks; it also tells `stop_containers` that there may be containers."""
    base = runtime_base()
    make_private(base)
    spec_key = hashlib.sha256(spec.identity.encode()).hexdigest()[:6]
    return ServerFolder(base / f"{FOLDER_PREFIX}{root_key(root)}-{spec_key}")


def _key(folder: ServerFolder) -> str:
    """The server's name on its engine, which other machines and accounts may use as well."""
    return hashlib.sha256(f"{platform.node()}\n{folder.path}".encode()).hexdigest()[:24]


def _remove(containers: list[Container]) -> None:
    for container in containers:
        with engine_words(f"cannot remove container {container.handle.name}"):
            remove_container(container.handle)


def _connect_running(job: Job) -> Admin | Unready:
    """Connect to a container that runs and is ready, which is what most commands find."""
    for container in job.find():
        if job.fits(container):
            return _connect(job, container, is_new=False)
    return Unready("not started")


def _make_room(job: Job, lock: FileLock) -> FileLock:
    """Remove what has ended and what runs another image or settings, unless a command still uses that.

    Returns:
        The shared use lock, which may be another one than was passed.
    """
    _forget_old(job.folder.path.parent)
    unfit = [container for container in job.find() if not job.fits(container)]
    _remove([container for container in unfit if not container.is_running])
    replaced = [container for container in unfit if container.is_running]
    if not replaced:
        return lock
    lock.close()
    alone = try_lock(job.folder.use_lock)
    if alone is None:  # the other command's container ends by itself
        return take_use_lock(job.folder)
    try:
        _remove(replaced)
    except BaseException:
        alone.close()
        raise
    alone.share()
    return alone


def _bring_up(job: Job) -> Admin:
    """Wait for a container that starts up, or start one; the caller holds the start lock."""
    for container in job.find():
        if job.fits(container):
            found = _wait_ready(job, container, is_new=False)
            if not isinstance(found, Ending):
                return found
            _remove([container])
    job.progress(f"starting a container of image {job.image.reference}")
    container = start_container(job.engine, job.image, job.order)
    started = _wait_ready(job, container, is_new=True)
    if isinstance(started, Ending):
        _remove([container])
        raise _failure(job.image, started)
    return started


def _wait_ready(job: Job, container: Container, *, is_new: bool) -> Admin | Ending:
    """Connect as soon as the server is ready, unless it ends."""
    begun = time.monotonic()
    look_at, tell_at = begun + LOOK_EVERY_S, begun + TELL_EVERY_S
    while isinstance(admin := _connect(job, container, is_new=is_new), Unready):
        now = time.monotonic()
        if now >= look_at:
            look_at = now + LOOK_EVERY_S
            ending = read_ending(container)
            if ending is not None:
                return ending
        if now - begun > READY_TIMEOUT_S:
            raise _late(container, admin)
        if now >= tell_at:
            tell_at = now + TELL_EVERY_S
            job.progress(f"waiting for the server in container {container.handle.name}")
        time.sleep(READY_PAUSE_S)
    return admin


def _connect(job: Job, container: Container, *, is_new: bool) -> Admin | Unready:
    """Connect if the server is ready and will stay."""
    import psycopg

    from pgsluice.pipeline.devdb.admin import Admin, session_options

    parameters = connection_parameters(job.engine, container)
    if parameters is None:
        return Unready("its port is not published")
    own = {
        "client_encoding": "UTF8",
        "application_name": "pgsluice",
        "connect_timeout": "10",
        "options": session_options(),
    }
    try:
        admin = Admin({**parameters, **own})
    except psycopg.OperationalError as exc:
        return Unready(str(exc).strip())
    if is_new or time.time() - job.last_use < container.idle_s - EDGE_S:
        return admin
    # It may have decided to end just before we came.
    time.sleep(EDGE_WAIT_S)
    try:
        admin.control.execute(PING)
    except psycopg.OperationalError as exc:
        admin.close()
        return Unready(str(exc).strip())
    return admin


def _failure(image: Image, ending: Ending) -> InputError | UnreachableError:
    if ending.status == NO_PROGRAMS:
        return InputError(
            f"image {image.reference} holds no PostgreSQL server:"
            " neither docker-entrypoint.sh nor initdb and postgres",
            hint='name an image of a server, such as dev = "docker://postgres:17"',
        )
    how = "ended" if ending.status is None else f"ended with status {ending.status}"
    run = f"docker run --rm --env POSTGRES_PASSWORD=secret {image.reference}"
    return UnreachableError(
        f"the server in a container of image {image.reference} {how}",
        details=ending.log,
        hint=f"try it alone: {run}",
    )


def _late(container: Container, why: Unready) -> UnreachableError:
    return UnreachableError(
        f"the server in container {container.handle.name} is not ready after {READY_TIMEOUT_S:.0f} s",
        details=tuple(why.reason.splitlines()),
        hint=f"see what it says: docker logs {container.handle.name}",
    )


def _forget_old(base: Path) -> None:
    """Remove the lock folders of projects that used no container for a day: none of theirs still runs."""
    for path in base.glob(f"{FOLDER_PREFIX}*"):
        folder = ServerFolder(path)
        with suppress(FileNotFoundError):
            if time.time() - folder.use_lock.stat().st_mtime < FORGOTTEN_AFTER_S:
                continue
            lock = try_lock(folder.use_lock)
            if lock is not None:
                with lock:
                    shutil.rmtree(path, ignore_errors=True)
