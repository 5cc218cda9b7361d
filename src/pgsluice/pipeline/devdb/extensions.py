"""Which extensions a server offers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.devdb.spec import DockerSpec, EmbeddedSpec

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb.admin import Admin
    from pgsluice.pipeline.devdb.spec import Spec

DISTRIBUTION_SERVERS: Final = Path("/usr/lib/postgresql")
AVAILABLE: Final = (
    "select name::text, default_version from pg_catalog.pg_available_extensions where name = any(%s)"
)


class Extensions:
    """The extensions that can be created on one server."""

    def __init__(self, admin: Admin, spec: Spec) -> None:
        self._admin = admin
        self._spec = spec

    def versions(self, names: list[str]) -> dict[str, str]:
        """The default version of each of these extensions that the server offers."""
        rows = self._admin.control.execute(AVAILABLE, [names]).fetchall() if names else []
        return {str(name): str(version) for name, version in rows}

    def missing(self, name: str) -> InputError:
        """The error for an extension that the server does not offer."""
        major = self._admin.version_num // 10000
        if isinstance(self._spec, EmbeddedSpec):
            where = "the embedded PostgreSQL"
            hint = f'dev = "local:{_local_bin_dir(major)}", once that server has the extension'
        elif isinstance(self._spec, DockerSpec):
            where = f"PostgreSQL in image {self._spec.image}"
            hint = 'name an image that has it, such as dev = "docker://pgvector/pgvector:pg17" for vector'
        else:
            where = "the dev server"
            hint = "install it there, or correct requires = [...]"
        return InputError(f"extension {name} is not available on {where}", hint=hint)


def _local_bin_dir(major: int) -> Path:
    """A server of this machine, the newest where it has several, else where one would be."""
    found = [
        path.parent for path in DISTRIBUTION_SERVERS.glob("*/bin/postgres") if path.parts[-3].isdecimal()
    ]
    return max(found, key=lambda path: int(path.parts[-2]), default=DISTRIBUTION_SERVERS / str(major) / "bin")
