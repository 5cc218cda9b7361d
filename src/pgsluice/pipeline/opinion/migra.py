"""The opinion of migra: what a second differ, which shares no code with ours, would still change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgsluice.pipeline.opinion.inspector import import_migra, inspect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection


def propose(
    have: Connection[Any], want: Connection[Any], *, manages: Sequence[str], ignore: Sequence[str] = ()
) -> tuple[str, ...]:
    """The statements by which migra would lead one database to the other, in its order."""
    migration_class, _ = import_migra()
    migration = migration_class(
        inspect(have, manages=manages, ignore=ignore), inspect(want, manages=manages, ignore=ignore)
    )
    migration.set_safety(False)
    migration.add_all_changes(privileges=True)
    return tuple(str(statement).strip() for statement in migration.statements)
