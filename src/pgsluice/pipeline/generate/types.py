"""Enums, composites, domains and ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.held import is_held_inside, is_stored, lost_values
from pgsluice.pipeline.generate.naming import ident, identity, literal, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.generate.type_change import enum_labels
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Address, Object

# What may name an attribute of a composite type, so that it stands in the way of its change.
ATTRIBUTE_USERS: Final = frozenset(
    {"view", "materialized view", "rule", "policy", "trigger", "function", "default"}
)


def _create_enum(new: Object, scene: Scene) -> list[Step]:
    labels = ", ".join(literal(label) for label in new.get("labels"))
    return [Step(f"CREATE TYPE {qualified(new.path)} AS ENUM ({labels})", Phase.EXPAND)]


def _drop_type(old: Object, scene: Scene) -> list[Step]:
    loss, checks = lost_values(old, scene)
    return [Step(f"DROP {identity(old)}", Phase.RETIRE, loss=loss, checks=checks)]


def _alter_enum(old: Object, new: Object, scene: Scene) -> Alteration | None:
    was, now = old.get("labels"), new.get("labels")
    if was == now:
        return Alteration()
    if [label for label in now if label in was] == was and not _used_at_once(new, set(now) - set(was), scene):
        return Alteration(tuple(_added_labels(new, was, now)))
    return None


def _used_at_once(new: Object, added: set[str], scene: Scene) -> bool:
    """Whether the plan itself uses an added label, which needs a commit first: spelled, or found in rows."""
    marks = [literal(label) for label in added]
    for address, obj in scene.after.objects.items():
        if _takes_in(obj, new.address, added, scene):
            return True
        if new.address not in obj.needs and not any(
            used.kind == "column" and used in _enum_columns(new, scene) for used in obj.needs
        ):
            continue
        old = scene.before.objects.get(address)
        if (old is None or old.facets != obj.facets) and any(
            mark in str(value) for mark in marks for value in obj.facets.values()
        ):
            return True
    return False


def _takes_in(column: Object, enum: Address, added: set[str], scene: Scene) -> bool:
    """Whether a column is converted to the enum from a type whose values may be labels that are added."""
    old = scene.before.objects.get(column.address)
    if column.kind != "column" or old is None or enum not in column.needs or enum in old.needs:
        return False
    labels = enum_labels(old, scene.before)
    return labels is None or not added.isdisjoint(labels)


def _enum_columns(new: Object, scene: Scene) -> set[Address]:
    return {
        address
        for address, obj in scene.after.objects.items()
        if address.kind == "column" and new.address in obj.needs
    }


def _added_labels(new: Object, was: list[str], now: list[str]) -> list[Step]:
    steps: list[Step] = []
    have = list(was)
    for position, label in enumerate(now):
        if label in have:
            continue
        place = f" AFTER {literal(now[position - 1])}" if position else f" BEFORE {literal(have[0])}"
        if position and position == len(have):
            place = ""
        have.insert(position, label)
        steps.append(
            Step(f"ALTER TYPE {qualified(new.path)} ADD VALUE {literal(label)}{place}", Phase.EXPAND)
        )
    return steps


def _attribute(attribute: list[object]) -> str:
    name, type_name, collation = attribute
    clause = f" COLLATE {qualified(collation)}" if isinstance(collation, list) else ""
    return f"{ident(str(name))} {type_name}{clause}"


def _create_composite(new: Object, scene: Scene) -> list[Step]:
    listed = ",\n  ".join(_attribute(one) for one in new.get("attributes") or [])
    body = f"(\n  {listed}\n)" if listed else "()"
    return [Step(f"CREATE TYPE {qualified(new.path)} AS {body}", Phase.EXPAND)]


def _alter_composite(old: Object, new: Object, scene: Scene) -> Alteration | None:
    was = {one[0]: one for one in old.get("attributes") or []}
    now = {one[0]: one for one in new.get("attributes") or []}
    if was == now and list(was) == list(now):
        return Alteration()
    kept = [name for name in was if name in now]
    retyped = [name for name in kept if was[name] != now[name]]
    stored = is_stored(old.address, scene)
    if list(now)[: len(kept)] != kept or (retyped and stored):
        return None
    words = [f"DROP ATTRIBUTE {ident(name)} CASCADE" for name in was if name not in now]
    words += [f"ALTER ATTRIBUTE {_retype(now[name])} CASCADE" for name in retyped]
    words += [f"ADD ATTRIBUTE {_attribute(now[name])} CASCADE" for name in now if name not in was]
    loss, _ = lost_values(old, scene)
    gone = len(kept) < len(was)
    disturbs = scene.users_of(old.address, ATTRIBUTE_USERS) if retyped or gone else frozenset()
    sql = f"ALTER TYPE {qualified(new.path)} {', '.join(words)}"
    return Alteration((Step(sql, Phase.EXPAND, loss=loss),), disturbs)


def _retype(attribute: list[object]) -> str:
    name, type_name, collation = attribute
    clause = f" COLLATE {qualified(collation)}" if isinstance(collation, list) else ""
    return f"{ident(str(name))} TYPE {type_name}{clause}"


def create_domain(new: Object, checks: list[Object]) -> list[Step]:
    """`create domain` with the checks that may stand inside."""
    words = [f"CREATE DOMAIN {qualified(new.path)} AS {new.get('type')}"]
    if new.get("collation"):
        words.append(f"COLLATE {qualified(new.get('collation'))}")
    if new.get("default") is not None:
        words.append(f"DEFAULT {new.get('default')}")
    if new.get("not_null"):
        named = new.get("not_null_name")
        words.append(f"CONSTRAINT {ident(named)} NOT NULL" if named else "NOT NULL")
    words += [f"CONSTRAINT {ident(check.path[2])} {check.get('definition')}" for check in checks]
    return [Step(" ".join(words), Phase.EXPAND)]


def _create_domain(new: Object, scene: Scene) -> list[Step]:
    return create_domain(new, [])


def _alter_domain(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets & {"type", "collation"} or (
        new.get("not_null") and "not_null" in facets and is_held_inside(old.address, scene)
    ):
        return None
    if new.get("not_null") and "not_null_name" in facets:
        return None  # only PostgreSQL 17 and later could name it afterwards
    head, steps = f"ALTER DOMAIN {qualified(new.path)}", []
    if "default" in facets:
        clause = "DROP DEFAULT" if new.get("default") is None else f"SET DEFAULT {new.get('default')}"
        steps.append(Step(f"{head} {clause}", Phase.EXPAND))
    if "not_null" in facets:
        on = new.get("not_null")
        steps.append(
            Step(f"{head} {'SET' if on else 'DROP'} NOT NULL", Phase.ENFORCE if on else Phase.PREPARE)
        )
    return Alteration(tuple(steps))


def _create_range(new: Object, scene: Scene) -> list[Step]:
    spec = new.get("range")
    listed = ",\n  ".join(f"{key} = {value}" for key, value in spec.items())
    return [Step(f"CREATE TYPE {qualified(new.path)} AS RANGE (\n  {listed}\n)", Phase.EXPAND)]


def _alter_range(old: Object, new: Object, scene: Scene) -> Alteration | None:
    return Alteration() if old.get("range") == new.get("range") else None


ENUM = Kind(_create_enum, _drop_type, _alter_enum)
COMPOSITE = Kind(_create_composite, _drop_type, _alter_composite)
DOMAIN = Kind(_create_domain, _drop_type, _alter_domain)
RANGE = Kind(_create_range, _drop_type, _alter_range)
