"""Schemas, extensions and what is granted on their members."""

from __future__ import annotations

from pgsluice.pipeline.generate.decoration import grant_steps
from pgsluice.pipeline.generate.naming import ident, literal
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase


def _create_schema(new: Object, scene: Scene) -> list[Step]:
    return [Step(f"CREATE SCHEMA {ident(new.path[0])}", Phase.EXPAND)]


def _drop_schema(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP SCHEMA {ident(old.path[0])}", Phase.RETIRE)]


def _alter_schema(old: Object, new: Object, scene: Scene) -> Alteration:
    return Alteration()


def _create_extension(new: Object, scene: Scene) -> list[Step]:
    return [
        Step(f"CREATE EXTENSION {ident(new.path[0])} WITH SCHEMA {ident(new.get('schema'))}", Phase.EXPAND)
    ]


def _drop_extension(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP EXTENSION {ident(old.path[0])}", Phase.RETIRE)]


def _alter_extension(old: Object, new: Object, scene: Scene) -> Alteration:
    steps: list[Step] = []
    name, facets = ident(new.path[0]), changed(old, new)
    if "schema" in facets:
        steps.append(Step(f"ALTER EXTENSION {name} SET SCHEMA {ident(new.get('schema'))}", Phase.EXPAND))
    if "version" in facets:
        steps.append(Step(f"ALTER EXTENSION {name} UPDATE TO {literal(new.get('version'))}", Phase.EXPAND))
    return Alteration(tuple(steps))


def _create_member(new: Object, scene: Scene) -> list[Step]:
    return grant_steps(new.get("initial"), new.get("grants"), on=new.path[1])


def _drop_member(old: Object, scene: Scene) -> list[Step]:
    extension = Address("extension", old.path[:1])
    if extension in scene.before.objects and extension not in scene.after.objects:
        return []
    return grant_steps(old.get("grants"), old.get("initial"), on=old.path[1])


def _alter_member(old: Object, new: Object, scene: Scene) -> Alteration:
    return Alteration(tuple(grant_steps(old.get("grants"), new.get("grants"), on=new.path[1])))


SCHEMA = Kind(_create_schema, _drop_schema, _alter_schema)
EXTENSION = Kind(_create_extension, _drop_extension, _alter_extension)
EXTENSION_MEMBER = Kind(_create_member, _drop_member, _alter_member)
