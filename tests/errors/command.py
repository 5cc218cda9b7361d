"""Commands in the test's own process: what they said and how they ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgsluice.cli.main import main
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIG = "pgsluice.toml"
SEQUENCE = '[targets.app]\nversioning = "sequence"\n'


@dataclass(frozen=True, slots=True)
class Folder:
    """A project whose commands run on the server that `PGSLUICE_DEV` names."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def record(self) -> None:
        """Bring `atlas.sum` to what the folder holds, as `rehash` does."""
        folder = self.root / "migrations/app"
        (folder / SUM_NAME).write_bytes(compute_sum(folder).render())

    def ok(self, *arguments: str) -> str:
        """Run a command that succeeds, and return what it printed."""
        code, printed, said = self._run(arguments)
        assert code == 0, said
        return printed

    def fails(self, code: int, *arguments: str) -> str:
        """Run a command that ends with `code`, and return its error without progress."""
        ended, _, said = self._run(arguments)
        assert ended == code, said
        return "".join(line for line in said.splitlines(keepends=True) if not line.endswith(" …\n"))

    def _run(self, arguments: tuple[str, ...]) -> tuple[int, str, str]:
        self.capsys.readouterr()
        code = main(["-C", str(self.root), *arguments])
        return code, *self.capsys.readouterr()
