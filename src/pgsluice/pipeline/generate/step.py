"""What generators return, and the scene that they look at."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pgsluice.pipeline.snapshot import Address, Object, Snapshot
    from pgsluice.pipeline.statement import Backfill, Hazard, Phase, RowCheck, Work


@dataclass(frozen=True, slots=True)
class Step:
    """One statement that a generator asks for, with the latest phase in which it may stand."""

    sql: str
    phase: Phase
    hazards: tuple[Hazard, ...] = ()
    loss: str | None = None
    checks: tuple[RowCheck, ...] = ()
    backfill: Backfill | None = None
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class Alteration:
    """How one object is altered in place.

    `disturbs` are objects that must be torn down before and put back after, whole.
    """

    steps: tuple[Step, ...] = ()
    disturbs: frozenset[Address] = frozenset()


@dataclass(frozen=True)
class Scene:
    """Both catalogs, for generators that must look beyond their own object.

    `settling` is true when a plan has run and only what it left unpaid is looked at: then inherited
    facets, which a parent's statement normally brings along, are written one by one.
    """

    before: Snapshot
    after: Snapshot
    settling: bool = False

    @cached_property
    def users(self) -> dict[Address, set[Address]]:
        """For each object of *before*, those that need it."""
        found: dict[Address, set[Address]] = defaultdict(set)
        for address, obj in self.before.objects.items():
            for needed in obj.needs:
                found[needed].add(address)
        return found

    @cached_property
    def parts(self) -> dict[tuple[str, ...], list[Object]]:
        """Columns, defaults and constraints of *after* by the path of their table."""
        found: dict[tuple[str, ...], list[Object]] = defaultdict(list)
        for address, obj in self.after.objects.items():
            if address.kind in ("column", "default", "constraint"):
                found[address.path[:2]].append(obj)
        return found

    @cached_property
    def not_nulls(self) -> dict[tuple[str, ...], Object]:
        """The not-null constraints of *after* with a name or form of their own, by column."""
        return {
            (*address.path[:2], obj.get("columns")[0]): obj
            for address, obj in self.after.objects.items()
            if address.kind == "constraint" and obj.get("type") == "n"
        }

    @cached_property
    def not_null_names(self) -> dict[tuple[str, str], frozenset[str]]:
        """The tables of *before* with a not-null constraint of this schema and name that is not automatic."""
        found: dict[tuple[str, str], frozenset[str]] = defaultdict(frozenset)
        for address, obj in self.before.objects.items():
            if address.kind == "constraint" and obj.get("type") == "n":
                found[address.path[0], address.path[2]] |= {address.path[1]}
        return found

    def users_of(self, address: Address, kinds: Collection[str]) -> frozenset[Address]:
        """The objects of the given kinds that need `address` in *before*."""
        return frozenset(user for user in self.users.get(address, ()) if user.kind in kinds)


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of object is created, dropped and altered.

    `alter` returns None when only a rebuild (drop, then create) brings the object home. Owner, comment
    and grants are not its business: `decoration` writes them for every kind.
    """

    create: Callable[[Object, Scene], list[Step]]
    drop: Callable[[Object, Scene], list[Step]]
    alter: Callable[[Object, Object, Scene], Alteration | None] = field(default=lambda old, new, scene: None)


def changed(old: Object, new: Object) -> set[str]:
    """The names of the facets that differ, less those that `decoration` writes."""
    names = {
        facet
        for facet in old.facets.keys() | new.facets.keys()
        if old.facets.get(facet) != new.facets.get(facet)
    }
    return names - {"owner", "comment", "grants", "column_comments", "column_grants", "extensions"}
