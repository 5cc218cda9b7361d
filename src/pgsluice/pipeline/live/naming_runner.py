"""Migrations that name the very role that runs them, as those made of a dump do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pgsluice.pipeline.snapshot import Address, Object, Snapshot
from pgsluice.pipeline.snapshot.reader import GRANT_LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgsluice.pipeline.snapshot import Value

OWNER = "@owner"
RUNNER = "@runner"


def as_run_by(snapshot: Snapshot, runner: str) -> Snapshot:
    """What a catalog would be, had `runner` run the migrations: what they give it by name is its own already.

    Args:
        snapshot: Of the dev server, where somebody else ran them.
        runner: The role that does so in a real database.
    """
    if runner == snapshot.runner:
        return snapshot
    objects = [_as_run_by(obj, runner, snapshot) for obj in snapshot.objects.values()]
    return replace(snapshot, objects={obj.address: obj for obj in objects})


def _as_run_by(obj: Object, runner: str, snapshot: Snapshot) -> Object:
    facets = {name: value for name, value in obj.facets.items() if (name, value) != ("owner", runner)}
    if "owner" not in facets and _owner_of_table(obj, snapshot) in (None, runner):
        facets = _own_grants(obj, facets, runner, snapshot)
    address = obj.address
    if address.kind == "default privileges" and address.path[1] == runner:
        address = Address(address.kind, (address.path[0], RUNNER, address.path[2]))
    if address == obj.address and facets == obj.facets:
        return obj
    return replace(obj, address=address, facets=facets)


def _owner_of_table(obj: Object, snapshot: Snapshot) -> str | None:
    """The owner of the table of a column."""
    table = snapshot.objects.get(Address("table", obj.path[:2])) if obj.kind == "column" else None
    return None if table is None else table.get("owner")


def _own_grants(
    obj: Object, facets: Mapping[str, Value], runner: str, snapshot: Snapshot
) -> dict[str, Value]:
    """The facets in which what the runner is granted on its own object is what the owner has."""
    implied = list(snapshot.implied_grants.get(GRANT_LETTERS.get(obj.kind, ""), ()))
    found = dict(facets)
    for name in ("grants", "privileges"):
        grants = facets.get(name)
        if grants and any(grant[0] == runner for grant in grants):
            found[name] = _merged(grants, runner)
            if found[name] == implied:
                del found[name]
    return found


def _merged(grants: Sequence[Value], runner: str) -> list[Value]:
    merged: dict[tuple[str | None, str], bool] = {}
    for grantee, privilege, grantable in grants:
        key = (OWNER if grantee == runner else grantee, privilege)
        merged[key] = merged.get(key, False) or grantable
    return sorted(
        ([*key, grantable] for key, grantable in merged.items()), key=lambda one: (one[0] or "", *one[1:])
    )
