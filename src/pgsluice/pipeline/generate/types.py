"""Enums, composites, domains and ranges."""

from __future__ import annotations

from typing import Final

from pgsluice.pipeline.generate.columns import type_dependants
from pgsluice.pipeline.generate.decoration import decorate_new
from pgsluice.pipeline.generate.naming import ident, identity, literal, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Hazard, Phase, RowCheck

# Kinds that cannot be converted along with a type that is swapped for a new one of the same name.
STUCK: Final = frozenset({"domain", "composite", "range"})


def _create_enum(new: Object, scene: Scene) -> list[Step]:
    labels = ", ".join(literal(label) for label in new.get("labels"))
    return [Step(f"CREATE TYPE {qualified(new.path)} AS ENUM ({labels})", Phase.EXPAND)]


def _drop_type(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP {identity(old)}", Phase.RETIRE)]


def _alter_enum(old: Object, new: Object, scene: Scene) -> Alteration | None:
    was, now = old.get("labels"), new.get("labels")
    if was == now:
        return Alteration()
    if [label for label in now if label in was] == was and not _used_at_once(new, set(now) - set(was), scene):
        return Alteration(tuple(_added_labels(new, was, now)))
    columns = _columns_of(old, scene)
    gone = [label for label in was if label not in now]
    loss = f"label {', '.join(gone)} of enum {'.'.join(new.path)}" if gone else None
    checks = tuple(_label_check(column, gone, scene) for column in columns) if gone else ()
    return swap(old, new, columns, scene, loss=loss, checks=checks)


def _used_at_once(new: Object, added: set[str], scene: Scene) -> bool:
    """Whether something that the plan creates or changes spells an added label: not allowed before a commit."""
    marks = [literal(label) for label in added]
    for address, obj in scene.after.objects.items():
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


def _columns_of(old: Object, scene: Scene) -> list[Object]:
    columns = (scene.before.objects[user] for user in sorted(scene.users_of(old.address, {"column"})))
    return [column for column in columns if column.get("inherited") != "only" and not column.get("generated")]


def _label_check(column: Object, gone: list[str], scene: Scene) -> RowCheck:
    name, table = ident(column.path[2]), qualified(column.path[:2])
    listed = ", ".join(literal(label) for label in gone)
    test = (
        f"{name}::text[] && array[{listed}]"
        if column.get("type").endswith("[]")
        else f"{name}::text in ({listed})"
    )
    return RowCheck(
        rows=f"select * from {table} where {test}",
        message=f"column {'.'.join(column.path)} still holds a label that goes: {', '.join(gone)}",
        hint="update these rows to a label that stays, first or in block preflight of the migration's template",
    )


def swap(
    old: Object,
    new: Object,
    columns: list[Object],
    scene: Scene,
    *,
    loss: str | None = None,
    checks: tuple[RowCheck, ...] = (),
) -> Alteration | None:
    """Put a new type in the place of an old one and convert every column, all other users rebuilt.

    Returns None where a user cannot be rebuilt.
    """
    users = scene.users.get(old.address, set())
    if any(user.kind in STUCK for user in users):
        return None
    aside = (old.path[0], f"{old.path[1][:55]}__old")
    rewrites = (Hazard("rewrites-table", f"every table with a {'.'.join(new.path)} column is rewritten"),)
    steps = [
        Step(
            f"ALTER {identity(old)} RENAME TO {ident(aside[1])}",
            Phase.EXPAND,
            rewrites,
            loss=loss,
            checks=checks,
        )
    ]
    steps += KINDS_OF_TYPE[new.kind].create(new, scene)
    disturbs = {
        user for user in users if user.kind != "column" or scene.before.objects[user].get("generated")
    }
    for column in columns:
        after = scene.after.objects.get(column.address)
        if after is None:
            continue
        name, type_name = ident(column.path[2]), str(column.get("type"))
        via = f"::text{'[]' if type_name.endswith('[]') else ''}" if new.kind != "domain" else ""
        steps.append(
            Step(
                f"ALTER TABLE {qualified(column.path[:2])} ALTER COLUMN {name} TYPE {type_name} USING {name}{via}::{type_name}",
                Phase.EXPAND,
            )
        )
        disturbs |= type_dependants(column.address, scene) | _spelled_in(column.address, scene)
    keyword = "DOMAIN" if old.kind == "domain" else "TYPE"
    steps.append(Step(f"DROP {keyword} {qualified(aside)}", Phase.EXPAND))
    return Alteration((*steps, *decorate_new(new, scene)), frozenset(disturbs))


def _spelled_in(column: Address, scene: Scene) -> frozenset[Address]:
    """Checks and partial or expression indexes over the column, whose constants are of the old type."""
    found = set()
    for user in scene.users_of(column, {"constraint", "index", "statistics"}):
        obj = scene.before.objects[user]
        if user.kind != "constraint" or obj.get("type") in ("c", "x"):
            found.add(user)
    return frozenset(found)


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
    in_place = list(now)[: len(kept)] == kept
    in_columns = bool(scene.users_of(old.address, {"column"}))
    if not in_place and not in_columns:
        return None
    retyped = [name for name in kept if was[name] != now[name]]
    if retyped and in_columns:
        return swap(old, new, _columns_of(old, scene), scene)
    words = [f"DROP ATTRIBUTE {ident(name)} CASCADE" for name in was if name not in now]
    words += [f"ALTER ATTRIBUTE {_retype(now[name])} CASCADE" for name in retyped]
    words += [f"ADD ATTRIBUTE {_attribute(now[name])} CASCADE" for name in now if name not in was]
    gone = [name for name in was if name not in now]
    loss = (
        f"attribute {', '.join(gone)} of {'.'.join(new.path)} in the columns that hold it"
        if gone and in_columns
        else None
    )
    disturbs = (
        scene.users_of(old.address, {"view", "materialized view", "rule", "policy"})
        if retyped or gone
        else frozenset()
    )
    return Alteration(
        (Step(f"ALTER TYPE {qualified(new.path)} {', '.join(words)}", Phase.EXPAND, loss=loss),), disturbs
    )


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
        words.append("NOT NULL")
    words += [f"CONSTRAINT {ident(check.path[2])} {check.get('definition')}" for check in checks]
    return [Step(" ".join(words), Phase.EXPAND)]


def _create_domain(new: Object, scene: Scene) -> list[Step]:
    return create_domain(new, [])


def _alter_domain(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets & {"type", "collation"}:
        return swap(old, new, _columns_of(old, scene), scene)
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
    if old.get("range") == new.get("range"):
        return Alteration()
    return swap(old, new, _columns_of(old, scene), scene) if scene.users_of(old.address, {"column"}) else None


ENUM = Kind(_create_enum, _drop_type, _alter_enum)
COMPOSITE = Kind(_create_composite, _drop_type, _alter_composite)
DOMAIN = Kind(_create_domain, _drop_type, _alter_domain)
RANGE = Kind(_create_range, _drop_type, _alter_range)
KINDS_OF_TYPE: Final = {"enum": ENUM, "composite": COMPOSITE, "domain": DOMAIN, "range": RANGE}
