"""A dev server: cached templates and scratch databases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pgsluice.pipeline.devdb.extensions import Extensions
    from pgsluice.pipeline.devdb.scratch import ScratchDatabases
    from pgsluice.pipeline.devdb.templates import TemplateCache


@dataclass(frozen=True, slots=True)
class DevServer:
    """A server that accepts connections, while `open_dev` holds it open; may be used by several threads.

    `version_num` is PostgreSQL's own, such as 180003; `description` is for messages; `bin_dir` holds the
    server's programs, None where they are not on this machine.
    """

    version_num: int
    description: str
    extensions: Extensions
    _templates: TemplateCache
    _scratch: ScratchDatabases
    bin_dir: Path | None = None

    @property
    def major(self) -> int:
        """The major version, such as 18."""
        return self.version_num // 10000

    def template(self, digest: str, *, parent: str | None, fill: Callable[[str], None]) -> str:
        """The name of the cached database for `digest`, made by `fill` when it is not there.

        Args:
            digest: Names the content that `fill` adds.
            parent: The template that it starts from; None starts from an empty database.
            fill: Gets a connection string; may leave no connection open. One process at a time fills a
                digest; when it fails or is killed, nobody takes what it left for a template.

        Raises:
            UnreachableError: The server refuses or cannot be reached.
        """
        return self._templates.get(digest, parent=parent, fill=fill)

    def clone(self, template: str | None) -> AbstractContextManager[str]:
        """A scratch database for the `with` block, as a connection string; a copy of `template`, or empty.

        Raises:
            UnreachableError: The server refuses or cannot be reached.
        """
        return self._scratch.clone(template)
