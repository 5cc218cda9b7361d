"""Kinds that are seen and whose owner, comment and grants follow, but that are not created or dropped yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import RefusedError
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pgsluice.pipeline.snapshot import Object

NAMES: Final = (
    "base type",
    "language",
    "transform",
    "access method",
    "text search parser",
    "text search template",
)


def refusal(objects: Iterable[object]) -> RefusedError:
    """What a user is told when objects of such a kind differ."""
    named = [str(one) for one in objects]
    return RefusedError(
        f"{len(named)} changed object(s) are of a kind that cannot be migrated yet",
        details=tuple(named[:20]),
        hint="write their statements in block prepare of the migration's template; "
        "docs/reference/coverage.md lists the kinds",
    )


def _refuse(obj: Object, scene: Scene) -> list[Step]:
    raise refusal([obj.address])


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    return None if changed(old, new) else Alteration()


UNCHANGEABLE: Final = Kind(_refuse, _refuse, _alter)
