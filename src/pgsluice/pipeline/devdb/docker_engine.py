"""Reaches the Docker engine through its Python SDK, which is imported when it is needed."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pgsluice.errors import InputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_SOCKET: Final = "/var/run/docker.sock"
DEFAULT_URL: Final = f"unix://{DEFAULT_SOCKET}"
LOCAL_SCHEMES: Final = frozenset({"unix", "http+unix"})
LOOPBACK: Final = "127.0.0.1"
LOCAL_HOSTS: Final = frozenset({LOOPBACK, "localhost", "::1"})
ALL_INTERFACES: Final = "0.0.0.0"
# Creating a container on a busy engine takes its time; a pull sends something all the while.
TIMEOUT_S: Final = 120
INSIDE_CONTAINER: Final = (Path("/.dockerenv"), Path("/run/.containerenv"))


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that answers.

    `url` is for messages. A published port is reached at `host` when it is bound to the engine's `interface`.
    """

    client: Any  # docker.DockerClient: the SDK carries no types
    url: str
    host: str
    interface: str


@contextmanager
def open_engine() -> Iterator[Engine]:
    """The engine that DOCKER_HOST, else the current context of Docker's own command, names.

    Raises:
        InputError: The SDK is not installed, or what names the engine cannot be read.
        UnreachableError: No engine answers there, or it is not for us.
    """
    docker = _import_sdk()
    url, client = _connect(docker)
    try:
        host, interface = place_of_ports(url)
        yield Engine(client, url, host, interface)
    finally:
        client.close()


@contextmanager
def engine_words(what: str) -> Iterator[None]:
    """Turn what the SDK raises in the `with` block into an `UnreachableError` that begins with `what`."""
    import docker.errors
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, OSError) as exc:
        raise UnreachableError(f"{what}: {explain(exc)}", hint="docker info") from exc


def explain(exc: BaseException) -> str:
    """The engine's own words, in one line."""
    words = getattr(exc, "explanation", None) or str(exc)
    if isinstance(words, bytes):
        words = words.decode(errors="replace")
    return " ".join(str(words).split()) or type(exc).__name__


def is_inside_container() -> bool:
    """Whether this process itself runs in a container, where its loopback is not the engine's."""
    return any(mark.exists() for mark in INSIDE_CONTAINER)


def _import_sdk() -> Any:  # Any: the SDK carries no types
    try:
        import docker
    except ImportError as exc:
        raise InputError(
            'dev = "docker://..." needs Docker\'s Python SDK, which is not installed',
            hint="pip install 'pgsluice[docker]'",
        ) from exc
    return docker


def _connect(docker: Any) -> tuple[str, Any]:  # Any: the SDK carries no types
    import requests

    try:
        named = docker.utils.kwargs_from_env()
        if "base_url" not in named:
            named = {**docker.context.ContextAPI.kwargs_from_context(), **named}
        url = str(named.get("base_url") or DEFAULT_URL)
    except Exception as exc:  # the SDK raises no other kind for a file that it cannot read
        raise InputError(
            f"cannot tell which Docker engine to use: {explain(exc)}", hint=_naming_hint()
        ) from exc
    try:
        _knock(url)
        client = docker.DockerClient(**named, timeout=TIMEOUT_S, use_ssh_client=True)
    except (docker.errors.DockerException, requests.RequestException, OSError) as exc:
        raise _no_engine(exc, url) from exc
    return url, client


def _knock(url: str) -> None:
    """Connect to a local socket once: the SDK wraps what goes wrong beyond recognition, and leaks it."""
    parts = urlsplit(url)
    if parts.scheme in LOCAL_SCHEMES:
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.connect(f"{parts.netloc}{parts.path}" or DEFAULT_SOCKET)


def _no_engine(exc: Exception, url: str) -> InputError | UnreachableError:
    """The error for an engine that does not answer; the SDK wraps the cause several times."""
    cause = _system_error(exc)
    if isinstance(cause, PermissionError):
        return UnreachableError(
            f"this account may not use the Docker engine at {url}",
            hint='add it to the group, and log in again: sudo usermod -aG docker "$USER"',
        )
    if cause is None and "bind address" in str(exc):
        return InputError(f"{url!r} is not the address of a Docker engine", hint=_naming_hint())
    reason = cause.strerror if cause is not None and cause.strerror else explain(exc)
    return UnreachableError(f"no Docker engine answers at {url}: {reason}", hint=_naming_hint())


def _system_error(exc: BaseException) -> OSError | None:
    """What the operating system said: the deepest `OSError` with a number among causes and arguments."""
    found: OSError | None = None
    waiting: list[object] = [exc]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, OSError) and one.errno is not None:
            found = one
        waiting += [one.__cause__, one.__context__, *one.args, getattr(one, "reason", None)]
    return found


def _naming_hint() -> str:
    return (
        "start Docker, or name the engine: export DOCKER_HOST=unix:///run/user/1000/podman/podman.sock"
        " (or tcp://host:2376, ssh://user@host)"
    )


def place_of_ports(url: str) -> tuple[str, str]:
    """Where published ports of this engine are reached, and the interface that they need."""
    parts = urlsplit(url)
    if parts.scheme in {"tcp", "http", "https", "ssh"} and parts.hostname not in {None, *LOCAL_HOSTS}:
        return str(parts.hostname), ALL_INTERFACES
    return LOOPBACK, LOOPBACK
