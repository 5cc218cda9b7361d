"""Whether the files of an adoption give what the database has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import FindingError
from pgsluice.pipeline.live.compare import compare_live, without_parts
from pgsluice.pipeline.snapshot import Address, Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from pgsluice.pipeline.live.catalog import LiveCatalog
    from pgsluice.pipeline.states import States

# In every database, and as much the user's as any other.
PUBLIC: Final = Address("schema", ("public",))
SHOWN: Final = 30


def judge(
    live: LiveCatalog,
    states: States,
    *,
    provided: Collection[Address],
    root: Path,
    progress: Callable[[str], None],
) -> tuple[str, ...]:
    """Compare what the files give with the database, as `pgsluice drift` does.

    Args:
        live: The database.
        states: The files, loaded.
        provided: What `requires` brings: there a difference is told and no fault of the files.
        root: The folder that `requires` is relative to.
        progress: Gets a line for each stage that may take long.

    Returns:
        What a reader must know of the comparison.

    Raises:
        FindingError: They differ.
    """
    comparison = compare_live(
        live, states.after, states.server, target=states.target, root=root, progress=progress
    )
    notes = list(comparison.notes)
    left: list[Difference] = []
    role = states.after.runner
    for one in comparison.differences:
        if one.address != PUBLIC and (one.address in provided or _is_stand_in(one)):
            notes.append(f"what requires brings is not what the database has: {one}")
        elif _names_dev_role(one, role, live):
            notes.append(
                f"{one.address} names {role}, which is the dev server's own role, too: its {one.facet} "
                "cannot be told from those of whoever runs the migrations"
            )
        else:
            left.append(one)
    if not left:
        return tuple(notes)
    whole = without_parts(left, states.after, live.snapshot)
    raise FindingError(
        f"the schema files would not give what {live.place} has; differences: {len(left)}",
        details=tuple(str(difference) for difference, _ in whole[:SHOWN]),
        hint="nothing was written; change the database, or leave the objects out: --ignore 'schema.name'",
    )


def _is_stand_in(difference: Difference) -> bool:
    """Whether an extension is missing for which a recipe brings the objects."""
    return difference.address.kind == "extension" and difference.facet is None


def _names_dev_role(difference: Difference, role: str, live: LiveCatalog) -> bool:
    """Whether an owner or grant differs because a role of the database has the name of the dev server's."""
    if difference.facet == "owner":
        return difference.before is None and bool(difference.after == role)
    if difference.facet != "grants":
        return False
    owner = live.snapshot.objects[difference.address].get("owner")
    return owner == role or any(grant[0] == role for grant in difference.after or ())
