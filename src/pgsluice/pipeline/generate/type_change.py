"""A column's new type: how its values get there, what is lost on the way, what must stand aside meanwhile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import alter_column, ident, qualified
from pgsluice.pipeline.generate.spelling import keep_array_casts
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.statement import Hazard, Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Address, Object, Snapshot

# What must be gone while a column's type changes; PostgreSQL itself brings indexes and constraints along.
TYPE_DISTURBS: Final = frozenset(
    {"view", "materialized view", "rule", "policy", "trigger", "function", "column", "default", "publication"}
)
# Families inside which an assignment cast exists, so that no `using` is needed.
FAMILIES: Final = (
    ("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    ("text", "character varying", "character", "name"),
    ("date", "timestamp without time zone", "timestamp with time zone"),
    ("time without time zone", "time with time zone", "interval"),
)
NUMBERS: Final = frozenset(FAMILIES[0])
RANGES: Final = frozenset(
    f"{kind}{form}"
    for kind in ("int4", "int8", "num", "ts", "tstz", "date")
    for form in ("range", "multirange")
)
# From the left to the right no value is lost.
WIDENS: Final = frozenset(
    (was, now)
    for was, wider in {
        "smallint": ("integer", "bigint", "numeric", "double precision"),
        "integer": ("bigint", "numeric", "double precision", "boolean"),
        "bigint": ("numeric",),
        "real": ("double precision",),
        "character varying": ("text",),
        "name": ("text",),
        "json": ("jsonb",),
        "bit": ("bit varying",),
        "date": ("timestamp without time zone", "timestamp with time zone"),
        "timestamp without time zone": ("timestamp with time zone",),
        "timestamp with time zone": ("timestamp without time zone",),
    }.items()
    for now in wider
)


def type_dependants(column: Address, scene: Scene) -> frozenset[Address]:
    """What must be torn down while the type of `column` changes."""
    found = {
        user
        for user in scene.users_of(column, TYPE_DISTURBS)
        if user.kind != "column" or scene.before.objects[user].get("generated")
    }
    for user in scene.users_of(column, {"constraint", "index"}):
        obj = scene.before.objects[user]
        # PostgreSQL itself makes the others anew, from what it prints: not all of it reads back as it was
        if obj.get("type") == "f" or keep_array_casts(str(obj.get("definition"))) != obj.get("definition"):
            found.add(user)
    return frozenset(found)


def enum_labels(column: Object, snapshot: Snapshot) -> frozenset[str] | None:
    """The labels that the values of a column are made of, None where its type is no enum nor array of one."""
    enum = next((one for one in column.needs if one.kind == "enum"), None)
    if enum is None or qualified(enum.path) != str(column.get("type")).removesuffix("[]"):
        return None
    return frozenset(snapshot.objects[enum].get("labels") or ())


def change_type(old: Object, new: Object, scene: Scene) -> Step:
    was, now = old.get("type"), new.get("type")
    sql = f"{alter_column(new.path)} TYPE {now}"
    if new.get("collation"):
        sql += f" COLLATE {qualified(new.get('collation'))}"
    if was != now and not _assigns(was, now):
        sql += f" USING {_converted(old, new)}"
    hazards = [Hazard("rewrites-table", f"{'.'.join(new.path[:2])} may be rewritten under an exclusive lock")]
    loss = None
    if was != now and _narrows(was, now) and not _knows_all_labels(old, new, scene):
        loss = f"values of {'.'.join(new.path)} that do not fit {now} (was {was})"
        hazards.append(Hazard("narrows-type", loss))
    return Step(sql, Phase.EXPAND, tuple(hazards), loss=loss)


def _knows_all_labels(old: Object, new: Object, scene: Scene) -> bool:
    """Whether both types are enums, and the new one has every label of the old one."""
    labels, known = enum_labels(old, scene.before), enum_labels(new, scene.after)
    return labels is not None and known is not None and labels <= known


def _converted(old: Object, new: Object) -> str:
    """The column's value as an expression of the new type, also where PostgreSQL has no cast."""
    column, was, now = ident(new.path[2]), str(old.get("type")), str(new.get("type"))
    bare, new_bare = _bare(was)[0], _bare(now)[0]
    if now == f"{was}[]":
        return f"CASE WHEN {column} IS NOT NULL THEN ARRAY[{column}] END"
    if new_bare == "boolean" and bare in NUMBERS:
        return f"{column} <> 0"
    if bare == "boolean" and new_bare in NUMBERS:
        return f"{column}::integer::{now}"
    own = [{one.kind for one in obj.needs} & {"enum", "composite", "range", "domain"} for obj in (old, new)]
    by_text = bare in RANGES and new_bare in RANGES
    if by_text or (all(own) and own != [{"domain"}, {"domain"}]):
        return f"{column}::text::{now}"
    return f"{column}::{now}"


def _bare(type_name: str) -> tuple[str, tuple[int, ...]]:
    """A type without its modifiers, and those: `numeric(10,2)` gives numeric and (10, 2)."""
    match = re.search(r"\(([\d, ]+)\)", type_name)
    numbers = tuple(int(part) for part in match[1].split(",")) if match else ()
    return re.sub(r"\([\d, ]+\)", "", type_name), numbers


def _assigns(was: str, now: str) -> bool:
    old, new = _bare(was)[0], _bare(now)[0]
    return old == new or any(old in family and new in family for family in FAMILIES)


def _narrows(was: str, now: str) -> bool:
    (old, limits), (new, new_limits) = _bare(was), _bare(now)
    if old == new:
        if not new_limits:
            return False
        if not limits:
            return True
        if old == "numeric":
            whole, scale = limits[0] - (limits[1:] or (0,))[0], (limits[1:] or (0,))[0]
            new_whole, new_scale = new_limits[0] - (new_limits[1:] or (0,))[0], (new_limits[1:] or (0,))[0]
            return new_whole < whole or new_scale < scale
        return new_limits[0] < limits[0]
    if new == "text" and not new_limits:
        return False
    return bool(new_limits) or (old, new) not in WIDENS
