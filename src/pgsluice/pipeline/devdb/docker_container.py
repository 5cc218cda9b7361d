"""The containers of a dev server, found by their labels, and how they are started and left."""

from __future__ import annotations

import hashlib
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.devdb.cluster import INITDB_OPTIONS, SETTINGS
from pgsluice.pipeline.devdb.cluster import SUPERUSER as OUR_SUPERUSER
from pgsluice.pipeline.devdb.docker_engine import LOOPBACK, engine_words, is_inside_container

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgsluice.pipeline.devdb.docker_engine import Engine
    from pgsluice.pipeline.devdb.docker_image import Image

ENTRY: Final = Path(__file__).with_name("docker_entry.sh")
SERVER_LABEL: Final = "pgsluice.server"
IMAGE_LABEL: Final = "pgsluice.image"
SETTINGS_LABEL: Final = "pgsluice.settings"
IDLE_LABEL: Final = "pgsluice.idle_s"
ROOT_LABEL: Final = "pgsluice.root"
PORT: Final = "5432"
EXPOSED: Final = f"{PORT}/tcp"
PASSWORD_VARIABLE: Final = "POSTGRES_PASSWORD"
DATA_FOLDER: Final = "/tmp/pgsluice"
# Any account of the image may start the server.
MEMORY_OPTIONS: Final = "mode=1777"
MEMORY_NEEDED_BYTES: Final = 2 << 30
# The scripts of many an image want a superuser of this name.
SUPERUSER: Final = "postgres"
UNFIT_OPTIONS: Final = frozenset({f"--username={OUR_SUPERUSER}", "--auth=trust"})
UNFIT_SETTINGS: Final = ("listen_addresses=", "unix_socket_permissions=")
UNSHARED_NETWORKS: Final = frozenset({"host", "none"})
LOG_LINES: Final = 12
LOG_READ: Final = 80  # what is left of a crashed server may speak after the word of its end
ENDING: Final = re.compile(r"pgsluice: (?:the server ended with status (\d+)|no server programs)")
NO_PROGRAMS: Final = -1


@dataclass(frozen=True, slots=True)
class Container:
    """A container of ours, as the engine described it when it was found or started."""

    handle: Any  # docker.models.containers.Container: the SDK carries no types
    image_id: str
    settings: str
    idle_s: float
    is_running: bool

    def fits(self, image: Image, settings: str) -> bool:
        """Whether it runs what is wanted now."""
        return self.is_running and (self.image_id, self.settings) == (image.id, settings)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container's server ended; `status` is None where only the container's end is known."""

    status: int | None
    log: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What to start: `key` names the server; `storage` says where its data go: memory, disk or auto."""

    key: str
    root: Path
    idle_s: float
    storage: str

    @property
    def settings(self) -> str:
        """The version of all that decides how a container of ours behaves, but for its image."""
        parts = (ENTRY.read_text(encoding="utf-8"), *_initdb_options(), *server_settings(), self.storage)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def server_settings() -> list[str]:
    """Our launcher's settings, for a server that is reached by TCP."""
    kept = [setting for setting in SETTINGS if not setting.startswith(UNFIT_SETTINGS)]
    return ["listen_addresses=*", f"port={PORT}", *kept]


def _initdb_options() -> list[str]:
    """Our launcher's options; the official images name superuser and authentication themselves."""
    return [option for option in INITDB_OPTIONS if option not in UNFIT_OPTIONS]


def list_containers(engine: Engine, key: str) -> list[Container]:
    """The containers of a server, running or not, the newest first.

    Raises:
        UnreachableError: The engine does not tell.
    """
    with engine_words("cannot list containers"):
        found = engine.client.containers.list(
            all=True, filters={"label": f"{SERVER_LABEL}={key}"}, ignore_removed=True
        )
    return [_read(handle) for handle in found]


def start_container(engine: Engine, image: Image, order: Order) -> Container:
    """Create and start a container, which removes itself when it ends.

    Raises:
        UnreachableError: The engine cannot start it.
    """
    with engine_words(f"cannot start a container of image {image.reference}"):
        handle = engine.client.containers.create(**_creation(engine, image, order))
        try:
            handle.start()
            handle.reload()
        except BaseException:
            remove_container(handle)
            raise
    return _read(handle)


def _creation(engine: Engine, image: Image, order: Order) -> dict[str, Any]:  # Any: arguments of the SDK
    options = [option for setting in server_settings() for option in ("-c", setting)]
    idle_s = str(max(1, round(order.idle_s)))
    kind = ("plain",) if image.command is None else ("image", *image.command)
    network = own_network(engine)
    return {
        "image": image.reference,
        "name": f"pgsluice-{_fit_for_name(order.root)}-{secrets.token_hex(4)}",
        "entrypoint": ["sh", "-c", ENTRY.read_text(encoding="utf-8"), "pgsluice", idle_s],
        "command": [*kind, *options],
        "user": image.user,
        "environment": {
            "PGDATA": f"{DATA_FOLDER}/data",
            "POSTGRES_USER": SUPERUSER,
            "POSTGRES_DB": "postgres",
            PASSWORD_VARIABLE: secrets.token_urlsafe(24),
            "POSTGRES_INITDB_ARGS": " ".join(_plain_or_official_options(image)),
            "TZ": "UTC",
        },
        "tmpfs": {DATA_FOLDER: MEMORY_OPTIONS} if _is_in_memory(engine, order) else None,
        "ports": {EXPOSED: (engine.interface, None)},
        "network": network,
        "auto_remove": True,
        # Nobody asks for it, and its connections would count as use.
        "healthcheck": {"test": ["NONE"]} if image.has_healthcheck else None,
        "labels": {
            SERVER_LABEL: order.key,
            IMAGE_LABEL: image.id,
            SETTINGS_LABEL: order.settings,
            IDLE_LABEL: idle_s,
            ROOT_LABEL: str(order.root),
        },
    }


def _plain_or_official_options(image: Image) -> list[str]:
    """The official entry point adds the superuser's name itself."""
    return _initdb_options() if image.command else [*_initdb_options(), f"--username={SUPERUSER}"]


def _is_in_memory(engine: Engine, order: Order) -> bool:
    """Whether the data go to tmpfs: the engine's machine, which may be another one, has memory enough."""
    if order.storage == "auto":
        return int(engine.client.info().get("MemTotal") or 0) >= MEMORY_NEEDED_BYTES
    return order.storage == "memory"


def _fit_for_name(root: Path) -> str:
    return re.sub(r"[^a-zA-Z0-9_.-]+", "-", root.name).strip("-.") or "project"


def own_network(engine: Engine) -> str | None:
    """The network of the container that we run in ourselves, when it is one of this engine's."""
    import docker.errors

    if engine.host != LOOPBACK or not is_inside_container():
        return None
    try:
        own = engine.client.containers.get(socket.gethostname())
    except docker.errors.NotFound:
        return None
    names = own.attrs["NetworkSettings"]["Networks"]
    return next((name for name in names if name not in UNSHARED_NETWORKS), None)


def remove_container(handle: Any) -> None:  # Any: the SDK carries no types
    """End a container, if it has not ended by itself, and remove it with its data."""
    import docker.errors

    try:
        handle.remove(force=True, v=True)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as exc:
        if exc.status_code != 409:  # it is being removed right now
            raise


def connection_parameters(engine: Engine, container: Container) -> dict[str, str] | None:
    """Where and how the server is reached, None when the container has ended meanwhile."""
    attributes = container.handle.attrs
    environment = dict(line.split("=", 1) for line in attributes["Config"]["Env"] if "=" in line)
    place = _inner_place(attributes) if own_network(engine) else _published_place(engine, attributes)
    if place is None:
        return None
    return {
        "host": place[0],
        "port": place[1],
        "user": SUPERUSER,
        "password": environment[PASSWORD_VARIABLE],
        "dbname": "postgres",
        "sslmode": "disable",
        "gssencmode": "disable",
    }


def _published_place(engine: Engine, attributes: Mapping[str, Any]) -> tuple[str, str] | None:
    published = (attributes["NetworkSettings"].get("Ports") or {}).get(EXPOSED) or []
    return (engine.host, str(published[0]["HostPort"])) if published else None


def _inner_place(attributes: Mapping[str, Any]) -> tuple[str, str] | None:
    addresses = [network["IPAddress"] for network in attributes["NetworkSettings"]["Networks"].values()]
    return (addresses[0], PORT) if addresses and addresses[0] else None


def read_ending(container: Container) -> Ending | None:
    """How the container's server ended, None while it has not.

    Raises:
        UnreachableError: The engine does not tell.
    """
    import docker.errors

    with engine_words(f"cannot look at container {container.handle.name}"):
        try:
            container.handle.reload()
            text = container.handle.logs(tail=LOG_READ).decode(errors="replace")
        except docker.errors.NotFound:
            return Ending(None, ())
        except docker.errors.APIError as exc:
            if exc.status_code != 409:  # marked for removal
                raise
            return Ending(None, ())
    lines = tuple(text.splitlines())
    for number, line in enumerate(lines):
        if match := ENDING.fullmatch(line):
            status = int(match[1]) if match[1] else NO_PROGRAMS
            return Ending(status, lines[max(0, number - LOG_LINES) : number])
    return None if container.handle.status == "running" else Ending(None, lines[-LOG_LINES:])


def _read(handle: Any) -> Container:  # Any: the SDK carries no types
    labels = handle.labels
    return Container(
        handle,
        labels.get(IMAGE_LABEL, ""),
        labels.get(SETTINGS_LABEL, ""),
        float(labels.get(IDLE_LABEL, "0")),
        handle.status == "running",
    )
