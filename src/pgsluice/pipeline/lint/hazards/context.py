"""What a hazard's check is given: the file, and the files that come before or beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.script import Script, read_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.lint.model import FileKind


KEPT_CHARS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Context:
    """One file to check.

    `others` gives name and text of the earlier migrations in their order, or of the other schema files.
    """

    kind: FileKind
    script: Script
    others: Callable[[], Iterator[tuple[str, str]]]

    def mentions(self, needle: str) -> bool:
        """Whether one of the other files holds `needle` (lower case)."""
        return any(needle in text.lower() for _, text in self.others())

    def before(self, *needles: str) -> Iterator[Script]:
        """The other files that hold one of `needles` (lower case), parsed; those with errors are left out."""
        for name, text in self.others():
            lower = text.lower()
            if any(needle in lower for needle in needles):
                script = _parsed(name, text) if len(text) <= KEPT_CHARS else read_script(name, text)
                if script.is_valid:
                    yield script


@lru_cache(1024)
def _parsed(name: str, text: str) -> Script:
    """An earlier file, which each later one asks about."""
    return read_script(name, text)
