"""What happens to each object: created, destroyed, rebuilt or altered; and what a rebuild pulls along."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pgsluice.pipeline.generate import KINDS, Alteration, Scene, unchangeable
from pgsluice.pipeline.generate.database_wide import relist
from pgsluice.pipeline.generate.lineage import brought_by, leaves_parent
from pgsluice.pipeline.generate.step import changed
from pgsluice.pipeline.plan.conversions import (
    pulled_along,
    put_aside_types,
    unchecked_domains,
    with_conversions,
)
from pgsluice.pipeline.snapshot import Address, Object

# Children that vanish with what they hang on, so that no statement of their own is needed.
HANGING = frozenset({"column", "default", "constraint", "trigger", "rule", "policy"})


@dataclass
class Events:
    """The double-entry book: an address in both `destroyed` and `created` is rebuilt.

    `converted` are columns that stay while their type is rebuilt; the types in `put_aside` are renamed and
    dropped only when the last column has left them. `relisted` are publications that lost a table so.
    """

    destroyed: set[Address] = field(default_factory=set)
    created: set[Address] = field(default_factory=set)
    altered: dict[Address, Alteration] = field(default_factory=dict)
    converted: set[Address] = field(default_factory=set)
    put_aside: frozenset[Address] = frozenset()
    relisted: set[Address] = field(default_factory=set)

    def rebuilt(self, address: Address) -> bool:
        return address in self.destroyed and address in self.created


def classify(scene: Scene) -> Events:
    """Compare both catalogs object by object, then tear down whatever stands on something destroyed.

    Raises:
        RefusedError: A kind that has no generator differs, or a rebuild would take a column's values.
    """
    events = Events()
    before, after = scene.before.objects, scene.after.objects
    _refuse_unknown_kinds(scene)
    disturbed: set[Address] = set()
    for address in sorted(before.keys() | after.keys()):
        old, new = before.get(address), after.get(address)
        if old is None:
            events.created.add(address)
        elif new is None:
            events.destroyed.add(address)
        elif old.facets != new.facets:
            alteration = KINDS[address.kind].alter(old, new, scene)
            if alteration is None:
                events.destroyed.add(address)
                events.created.add(address)
            else:
                events.altered[address] = alteration
    for domain in unchecked_domains(events.created | events.altered.keys(), scene):
        events.altered.pop(domain, None)
        events.destroyed.add(domain)
        events.created.add(domain)
    for address, alteration in events.altered.items():
        disturbed.update(
            user for user in alteration.disturbs if not steps_aside(user, address, events, scene)
        )
    _tear_down(events, disturbed, scene)
    events.put_aside = put_aside_types(events.converted, events.destroyed, scene)
    _relist(events, scene)
    events.altered = with_conversions(events.altered, events.converted, events.destroyed, scene)
    return events


def _refuse_unknown_kinds(scene: Scene) -> None:
    before, after = scene.before.objects, scene.after.objects
    unknown = []
    for address in sorted(before.keys() | after.keys()):
        if address.kind in unchangeable.NAMES:
            old, new = before.get(address), after.get(address)
            if old is None or new is None or changed(old, new):
                unknown.append(address)
    if unknown:
        raise unchangeable.refusal(unknown)


def _tear_down(events: Events, disturbed: set[Address], scene: Scene) -> None:
    before, after = scene.before.objects, scene.after.objects
    queue = deque(sorted(events.destroyed))

    def destroy(address: Address) -> None:
        if address in events.destroyed:
            return
        events.destroyed.add(address)
        alteration = events.altered.pop(address, None)
        if address in after:
            events.created.add(address)
        queue.append(address)
        for user in sorted(alteration.disturbs if alteration else ()):
            if not steps_aside(user, address, events, scene):
                destroy(user)

    for address in sorted(disturbed):
        destroy(address)
    while queue:
        gone = queue.popleft()
        for user in sorted(scene.users.get(gone, ())):
            if user in events.destroyed or _lets_go(user, gone, events, scene):
                continue
            if user.kind == "publication" and gone.kind in ("table", "schema") and user in after:
                events.relisted.add(user)
                continue
            if user.kind == "column" and not before[user].get("generated") and gone.kind != "table":
                events.converted.add(user)
                for one in sorted(pulled_along(user, gone, scene)):
                    destroy(one)
                continue
            destroy(user)


def _relist(events: Events, scene: Scene) -> None:
    for publication in sorted(events.relisted - events.destroyed):
        old, new = scene.before.objects[publication], scene.after.objects[publication]
        if old.get("tables") == new.get("tables") and old.get("schemas") == new.get("schemas"):
            more = events.altered.get(publication, Alteration())
            events.altered[publication] = Alteration((relist(new), *more.steps), more.disturbs)


def _lets_go(user: Address, gone: Address, events: Events, scene: Scene) -> bool:
    """Whether `user` is altered in place so that it no longer needs what is destroyed."""
    new = scene.after.objects.get(user)
    return user in events.altered and new is not None and gone not in new.needs


def steps_aside(user: Address, column: Address, events: Events, scene: Scene) -> bool:
    """Whether `user` is altered in place, before the column is, so that it no longer needs it."""
    return column.kind == "column" and _lets_go(user, column, events, scene)


def container(obj: Object) -> Address | None:
    """The object whose drop takes `obj` along."""
    kind, path = obj.address
    if kind == "column":
        return Address("table", path[:2])
    if kind == "default":
        return Address("column", path)
    if kind == "domain constraint":
        return Address("domain", path[:2])
    if kind == "index":
        table = tuple(obj.get("table"))
        return Address("materialized view" if obj.get("table_kind") == "m" else "table", table)
    if kind == "sequence" and obj.get("owned_by"):
        return Address("column", tuple(obj.get("owned_by")))
    if kind == "default privileges" and path[0]:
        return Address("schema", path[:1])
    if kind in HANGING:
        return next(
            (
                Address(one, path[:2])
                for one in ("table", "view", "materialized view")
                if Address(one, path[:2]) in obj.needs
            ),
            Address("table", path[:2]),
        )
    if kind == "statistics":
        return next((needed for needed in sorted(obj.needs) if needed.kind == "table"), None) or next(
            (Address("table", needed.path[:2]) for needed in sorted(obj.needs) if needed.kind == "column"),
            None,
        )
    return None


def taken_along(obj: Object, events: Events, scene: Scene) -> Address | None:
    """The destroyed object whose drop drops `obj` too: its container, or a column that it stands on."""
    above = container(obj)
    for _ in range(3):
        if above is None:
            break
        if above in events.destroyed:
            return above
        holder = scene.before.objects.get(above)
        above = container(holder) if holder is not None else None
    stays = obj.get("inherited") == "merged" or leaves_parent(obj, scene)
    whole = brought_by(obj, scene.before) if not stays else None
    if whole is not None and whole in events.destroyed:
        return whole
    if obj.kind in ("constraint", "index", "statistics") and not events.rebuilt(obj.address):
        return next(
            (
                needed
                for needed in sorted(obj.needs)
                if needed.kind == "column"
                and needed in events.destroyed
                and scene.before.objects[needed].get("inherited") != "only"
                and _same_table(obj, needed)
            ),
            None,
        )
    return None


def _same_table(obj: Object, column: Address) -> bool:
    above = container(obj)
    return above is not None and above.path[:2] == column.path[:2]
