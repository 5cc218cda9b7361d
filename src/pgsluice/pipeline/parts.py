"""The files of an online migration: which transaction each needs, and which hand-written blocks it holds."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.template_source import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Part(StrEnum):
    """One file of an online migration, in the order in which they are applied."""

    EXPAND = "expand"
    CONCURRENTLY = "concurrently"
    VALIDATE = "validate"
    RETIRE = "retire"

    @property
    def transactional(self) -> bool:
        """Whether the file runs in one transaction."""
        return self is not Part.CONCURRENTLY

    @property
    def blocks(self) -> frozenset[str]:
        """The template's blocks that this file holds; settings stand in each that is a transaction."""
        return _BLOCKS[self] | ({"settings"} if self.transactional else frozenset())

    @property
    def others(self) -> frozenset[str]:
        """The template's blocks that another file holds."""
        return frozenset(BLOCKS) - self.blocks

    @property
    def advice(self) -> str:
        """What whoever applies the file must know, for its head."""
        return _ADVICE[self]


PARTS: Final = tuple(Part)

_BLOCKS: Final[Mapping[Part, frozenset[str]]] = {
    Part.EXPAND: frozenset({"locks", "preflight", "prepare", "expand", "install"}),
    Part.CONCURRENTLY: frozenset({"backfill"}),
    Part.VALIDATE: frozenset({"enforce"}),
    Part.RETIRE: frozenset({"retire", "postflight"}),
}
_ADVICE: Final[Mapping[Part, str]] = {
    Part.EXPAND: "locks are short where no hazard says otherwise",
    Part.CONCURRENTLY: "outside of a transaction; after a failure, run the file again from its start",
    Part.VALIDATE: "reads and writes go on while rows are checked",
    Part.RETIRE: "apply it when no running code needs what it drops",
}
