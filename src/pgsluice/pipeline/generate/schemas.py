"""Schemas and extensions."""

from __future__ import annotations

from pgsluice.pipeline.generate.naming import ident, literal
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.snapshot import Object
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


SCHEMA = Kind(_create_schema, _drop_schema, _alter_schema)
EXTENSION = Kind(_create_extension, _drop_extension, _alter_extension)
