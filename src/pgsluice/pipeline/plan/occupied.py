"""The names that an object takes in namespaces which kinds share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.naming import automatic

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object

RELATIONS = frozenset({"table", "view", "materialized view", "sequence", "index"})
TYPES = frozenset({"table", "view", "materialized view", "enum", "composite", "domain", "range", "base type"})
ROUTINES = frozenset({"function", "aggregate"})


def occupied(obj: Object) -> list[tuple[str, ...]]:
    """The names that an object takes in namespaces which kinds share."""
    kind, path = obj.address
    taken: list[tuple[str, ...]] = []
    if kind in RELATIONS:
        taken.append(("relation", *path))
    if kind in TYPES:
        taken.append(("type", *path))
    if kind == "constraint" and obj.get("type") in ("p", "u", "x"):
        taken.append(("relation", path[0], path[2]))
    if kind == "constraint":
        taken.append(("constraint", *path))
    if kind in ROUTINES:
        taken.append(("routine", *path))
    if kind == "column":
        taken.append(("column", *path))
        if obj.get("sequence"):
            spec = obj.get("sequence")
            taken.append(("relation", spec["schema"], spec.get("name", automatic(path[1], path[2], "seq"))))
    return taken
