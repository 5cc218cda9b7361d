"""Finds the image of a dev server, pulling it when the engine does not have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.devdb.docker_engine import engine_words, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pgsluice.pipeline.devdb.docker_engine import Engine
    from pgsluice.pipeline.devdb.spec import DockerSpec

OFFICIAL_ENTRYPOINT: Final = "docker-entrypoint.sh"
SERVER: Final = "postgres"
ACCOUNT: Final = "postgres"
ROOT: Final = frozenset({"", "0", "root"})  # PostgreSQL refuses to run as this
LAYER_DONE: Final = "Pull complete"


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has.

    `command` is what the image itself would run, without settings of ours; None for one without the entry
    point of the official images. `user` is the account to run as, None for the image's own choice.
    """

    reference: str
    id: str
    command: tuple[str, ...] | None
    user: str | None
    has_healthcheck: bool


def find_image(engine: Engine, spec: DockerSpec, *, progress: Callable[[str], None]) -> Image:
    """The image that the reference means on this engine now, pulled when there is none.

    Raises:
        UnreachableError: It is not there and cannot be pulled.
    """
    import docker.errors

    with engine_words(f"cannot look for image {spec.image}"):
        try:
            found = engine.client.images.get(spec.image)
        except docker.errors.NotFound:
            found = None
    if found is None:
        _pull(engine, spec, progress=progress)
        with engine_words(f"cannot look for image {spec.image}"):
            found = engine.client.images.get(spec.image)
    return read_image(spec.image, str(found.id), found.attrs.get("Config") or {})


def read_image(reference: str, image_id: str, config: Mapping[str, Any]) -> Image:  # Any: the engine's JSON
    """What an image's configuration says of how to run it."""
    entrypoint = tuple(map(str, config.get("Entrypoint") or ()))
    command = tuple(map(str, config.get("Cmd") or (SERVER,)))
    has_healthcheck = bool(config.get("Healthcheck"))
    if any(word.rsplit("/", 1)[-1] == OFFICIAL_ENTRYPOINT for word in entrypoint):
        return Image(reference, image_id, (*entrypoint, *command), None, has_healthcheck)
    user = str(config.get("User") or "")
    is_root = user.partition(":")[0] in ROOT
    return Image(reference, image_id, None, ACCOUNT if is_root else user, has_healthcheck)


def _pull(engine: Engine, spec: DockerSpec, *, progress: Callable[[str], None]) -> None:
    import docker.errors
    import requests

    progress(f"pulling image {spec.image}")
    try:
        events = engine.client.api.pull(spec.name, tag=spec.digest or spec.tag, stream=True, decode=True)
        complaint = _follow(events, spec.image, progress=progress)
    except (docker.errors.DockerException, requests.RequestException, OSError) as exc:
        complaint = explain(exc)
    if complaint is not None:
        raise UnreachableError(
            f"cannot pull image {spec.image}: {complaint}",
            hint=f"see what docker itself says: docker pull {spec.image}",
        )


def _follow(
    events: Iterable[Mapping[str, Any]],  # Any: the engine's JSON
    image: str,
    *,
    progress: Callable[[str], None],
) -> str | None:
    """Tell of each layer that has come; the registry's complaint, if it has one.

    Everything is read: the SDK does not close a connection before its end.
    """
    complaint: str | None = None
    layers: set[str] = set()
    done: set[str] = set()
    for event in events:
        if "error" in event:
            complaint = " ".join(str(event["error"]).split())
        layer = str(event.get("id", ""))
        if "progressDetail" in event:
            layers.add(layer)
        if event.get("status") == LAYER_DONE and layer not in done:
            done.add(layer)
            progress(f"pulling image {image}: {len(done)} of {len(layers)} layers")
    return complaint
