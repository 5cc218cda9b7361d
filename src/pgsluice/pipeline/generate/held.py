"""Types and collations that are made anew while columns hold their values.

The old one is renamed aside, the new one takes its name, each column is converted, and the old one goes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import NAME_BYTES, ident, identity, literal, qualified
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.statement import Hazard, Phase, RowCheck

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Address, Object

# Kinds whose values or whose order stored columns depend on.
HELD: Final = frozenset({"enum", "composite", "domain", "range", "collation"})
SUFFIX: Final = "__old"


def aside_name(old: Object) -> tuple[str, str]:
    """The name that an old type has until it is dropped."""
    schema, name = old.path[:2]
    return schema, _aside(name)


def _aside(name: str) -> str:
    return name.encode()[: NAME_BYTES - len(SUFFIX)].decode(errors="ignore") + SUFFIX


def put_aside(old: Object, scene: Scene) -> list[Step]:
    """Give up the name; a domain gives up all that needs others, and the names of its constraints."""
    hazard = Hazard("rewrites-table", f"every table with a {'.'.join(old.path)} column is rewritten")
    steps = [
        Step(f"ALTER {identity(old)} RENAME TO {ident(aside_name(old)[1])}", Phase.EXPAND, (hazard,)),
    ]
    if old.kind == "domain":
        head = f"ALTER DOMAIN {qualified(aside_name(old))} DROP"
        words = ["NOT NULL"] if old.get("not_null") else []
        words += ["DEFAULT"] if old.get("default") is not None else []
        words += [f"CONSTRAINT {ident(one.path[2])}" for one in _checks_of(old, scene)]
        steps += [Step(f"{head} {word}", Phase.EXPAND) for word in words]
    return _constructors_aside(old) + steps if old.kind == "range" else steps


def _checks_of(domain: Object, scene: Scene) -> list[Object]:
    return [
        obj
        for address, obj in sorted(scene.before.objects.items())
        if address.kind == "domain constraint" and address.path[:2] == domain.path
    ]


def _constructors_aside(old: Object) -> list[Step]:
    """A range brings a multirange type and constructor functions, which keep their names at a rename."""
    subtype, schema_and_name = old.get("range")["subtype"], tuple(old.get("multirange"))
    range_name, multirange = qualified(old.path), qualified(schema_and_name)
    functions = [
        (old.path, f"{range_name}({subtype}, {subtype})"),
        (old.path, f"{range_name}({subtype}, {subtype}, text)"),
        (schema_and_name, f"{multirange}()"),
        (schema_and_name, f"{multirange}({range_name})"),
        (schema_and_name, f"{multirange}({range_name}[])"),
    ]
    steps = [
        Step(f"ALTER FUNCTION {signature} RENAME TO {ident(_aside(path[1]))}", Phase.EXPAND)
        for path, signature in functions
    ]
    rename = f"ALTER TYPE {multirange} RENAME TO {ident(_aside(schema_and_name[1]))}"
    return [*steps, Step(rename, Phase.EXPAND)]


def drop_aside(old: Object, scene: Scene) -> list[Step]:
    """Drop what was put aside, after the last column left it."""
    keyword = {"domain": "DOMAIN", "collation": "COLLATION"}.get(old.kind, "TYPE")
    loss, checks = lost_values(old, scene)
    return [
        Step(f"DROP {keyword} {qualified(aside_name(old))}", Phase.EXPAND, (), loss=loss, checks=checks),
    ]


def lost_values(old: Object, scene: Scene) -> tuple[str | None, tuple[RowCheck, ...]]:
    """What stored values lose when a type is made anew, and the rows that stand against it."""
    new = scene.after.objects.get(old.address)
    if new is None:
        return None, ()
    name = ".".join(old.path)
    if old.kind == "enum":
        gone = [label for label in old.get("labels") or [] if label not in (new.get("labels") or [])]
        if gone:
            checks = tuple(_label_check(column, gone) for column in _columns_with_labels(old.address, scene))
            return f"label {', '.join(gone)} of enum {name}", checks
    if old.kind == "composite" and is_stored(old.address, scene):
        kept = {one[0] for one in new.get("attributes") or []}
        gone = [one[0] for one in old.get("attributes") or [] if one[0] not in kept]
        if gone:
            return f"attribute {', '.join(gone)} of {name} in the columns that hold it", ()
    return None, ()


def _columns_with_labels(enum: Address, scene: Scene) -> list[Object]:
    """Columns whose text form is a label or an array of labels: of the enum, or of a domain over it."""
    found: list[Object] = []
    for user in sorted(scene.users.get(enum, ())):
        if user.kind == "domain":
            found += _columns_with_labels(user, scene)
        elif user.kind == "column":
            column = scene.before.objects[user]
            if column.get("inherited") is None and not column.get("generated"):
                found.append(column)
    return found


def _label_check(column: Object, gone: list[str]) -> RowCheck:
    name, table = ident(column.path[2]), qualified(column.path[:2])
    listed = ", ".join(literal(label) for label in gone)
    test = (
        f"{name}::text[] && array[{listed}]"
        if str(column.get("type")).endswith("[]")
        else f"{name}::text in ({listed})"
    )
    return RowCheck(
        rows=f"select * from {table} where {test}",
        message=f"column {'.'.join(column.path)} still holds a label that goes: {', '.join(gone)}",
        hint="update these rows to a label that stays, first or in block preflight of the template",
    )


def is_stored(held: Address, scene: Scene) -> bool:
    """Whether a column holds values of the type, itself or inside another type; tables of the type count."""
    seen: set[Address] = set()
    queue = [held]
    while queue:
        for user in scene.users.get(queue.pop(), ()):
            if user.kind in ("column", "table"):
                return True
            if user.kind in HELD and user not in seen:
                seen.add(user)
                queue.append(user)
    return False


def is_held_inside(domain: Address, scene: Scene) -> bool:
    """Whether stored arrays, composites or ranges hold the domain: PostgreSQL cannot check what they hold."""
    for user in scene.users.get(domain, ()):
        if user.kind == "column" and str(scene.before.objects[user].get("type")).endswith("[]"):
            return True
        if user.kind in ("composite", "range") and is_stored(user, scene):
            return True
        if user.kind == "domain" and is_held_inside(user, scene):
            return True
    return False


def kept_aside(old: Object, destroyed: frozenset[Address]) -> str:
    """The column as a copy holds it that must not depend on a type or collation that goes meanwhile."""
    name, gone = ident(old.path[2]), old.needs & destroyed
    if any(one.kind != "collation" for one in gone):
        name += "::text"
    return f'{name} COLLATE pg_catalog."default" AS {ident(old.path[2])}' if gone else name


def brought_back(old: Object, new: Object, destroyed: frozenset[Address]) -> str:
    """The column as read from such a copy, in its new type."""
    textual = any(one.kind != "collation" for one in old.needs & destroyed)
    return f"{ident(new.path[2])}::{new.get('type')}" if textual else ident(new.path[2])
