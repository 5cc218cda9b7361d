"""Defaults of columns: objects of their own, since what they call comes and goes without the column."""

from __future__ import annotations

from pgsluice.pipeline.generate.lineage import parents_of
from pgsluice.pipeline.generate.naming import alter_column
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase


def _create(new: Object, scene: Scene) -> list[Step]:
    if (
        scene.after.objects[Address("column", new.path)].get("inherited") == "only"
        and not scene.settling
        and _follows_parent(new, scene)
    ):
        return []
    return [Step(f"{alter_column(new.path)} SET DEFAULT {new.get('expression')}", Phase.EXPAND)]


def _follows_parent(new: Object, scene: Scene) -> bool:
    parents = parents_of(new.path, scene.after)
    above = [scene.after.objects.get(Address("default", (*parent, new.path[2]))) for parent in parents]
    return any(one is not None and one.get("expression") == new.get("expression") for one in above)


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"{alter_column(old.path)} DROP DEFAULT", Phase.EXPAND)]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    if any(one.kind == "function" and one not in scene.after.objects for one in old.needs):
        return None  # its routine goes before another of that name comes
    return Alteration(tuple(_create(new, scene)))


DEFAULT = Kind(_create, _drop, _alter)
