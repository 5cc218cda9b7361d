"""Columns that hold values of a type which is made anew: they are converted, never lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.errors import RefusedError
from pgsluice.pipeline.generate import Alteration, Scene
from pgsluice.pipeline.generate.conversion import Conversion
from pgsluice.pipeline.generate.held import HELD, is_held_inside
from pgsluice.pipeline.generate.type_change import type_dependants
from pgsluice.pipeline.snapshot import Address

if TYPE_CHECKING:
    from collections.abc import Mapping, Set


def pulled_along(column: Address, gone: Address, scene: Scene) -> frozenset[Address]:
    """What must be torn down so that `column` can be converted to the successor of the type `gone`.

    A partition key cannot be converted: then the table is made anew, and its rows are kept.

    Raises:
        RefusedError: There is no successor, or the column becomes something else at the same time.
    """
    old, new = scene.before.objects[column], scene.after.objects.get(column)
    has_successor = new is not None and any(one.path[:2] == gone.path[:2] for one in new.needs)
    if gone.kind not in HELD or new is None or not has_successor or new.get("type") != old.get("type"):
        raise _lost(column, gone)
    table = Address("table", column.path[:2])
    if column.path[2] in (scene.before.objects[table].get("key_columns") or ()):
        return frozenset({table})
    return type_dependants(column, scene)


def _lost(column: Address, gone: Address) -> RefusedError:
    return RefusedError(
        f"{gone} must be rebuilt, but {column} holds values of it",
        hint="change it in two migrations: first a new type and column with a backfill, then drop the old",
    )


def with_conversions(
    altered: Mapping[Address, Alteration], converted: Set[Address], destroyed: Set[Address], scene: Scene
) -> dict[Address, Alteration]:
    """The alterations, with a conversion ahead of what else happens to each converted column.

    Raises:
        RefusedError: Arrays of a composite type whose attributes moved.
    """
    rebuilt = frozenset(one for one in destroyed if one.kind in HELD)
    result = dict(altered)
    for column in sorted(converted - destroyed):
        old, new = scene.before.objects[column], scene.after.objects[column]
        steps = Conversion(rebuilt, scene).of_column(old, new)
        if steps is None:
            raise _lost(column, next(one for one in sorted(old.needs & rebuilt)))
        more = result.get(column, Alteration())
        result[column] = Alteration((*steps, *more.steps), more.disturbs)
    return result


def put_aside_types(converted: Set[Address], destroyed: Set[Address], scene: Scene) -> frozenset[Address]:
    """The destroyed types and collations that must stay, under another name, until the last column left."""
    before = scene.before.objects
    found: set[Address] = set()
    queue = sorted(converted - destroyed)
    while queue:
        for needed in before[queue.pop()].needs:
            if needed.kind in HELD and needed in destroyed and needed not in found:
                found.add(needed)
                queue.append(needed)
    return frozenset(found)


def unchecked_domains(changed: Set[Address], scene: Scene) -> frozenset[Address]:
    """Domains with a new check that PostgreSQL refuses to add, as stored arrays or composites hold them."""
    checked = {
        Address("domain", address.path[:2])
        for address in changed
        if address.kind == "domain constraint"
        and (new := scene.after.objects.get(address)) is not None
        and not new.get("not_valid")
    }
    both = scene.before.objects.keys() & scene.after.objects.keys()
    return frozenset(domain for domain in checked & both if is_held_inside(domain, scene))


def refuse_unreadable_copies(columns: Set[Address], destroyed: Set[Address], scene: Scene) -> None:
    """Refuse to rebuild a table whose composite column changes its layout meanwhile."""
    rebuilt = frozenset(one for one in destroyed if one.kind in HELD)
    for column in sorted(columns):
        old = scene.before.objects[column]
        if Conversion(rebuilt, scene).moves_attributes_in(old):
            raise _lost(column, min(old.needs & rebuilt))
