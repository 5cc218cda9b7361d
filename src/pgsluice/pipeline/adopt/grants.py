"""Grants of objects that are born with some: under standing default privileges.

A schema folder sets default privileges ahead of what they are for, a dump behind it. What pg_dump grants
counts from what PostgreSQL gives by itself, so here it is counted anew from what default privileges give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.adopt.homes import find_homes
from pgsluice.pipeline.generate.decoration import decorate_new
from pgsluice.pipeline.generate.step import Scene
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pgsluice.pipeline.adopt.provided import Provided
    from pgsluice.pipeline.snapshot import Address, Snapshot
    from pgsluice.pipeline.sources.parse import Parsed

RUNNER: Final = "@runner"
GRANTS: Final = ("GRANT ", "REVOKE ")


def has_default_privileges(snapshot: Snapshot) -> bool:
    """Whether what the runner creates is born with other grants than PostgreSQL's."""
    return any(
        address.kind == "default privileges" and address.path[1] == RUNNER for address in snapshot.objects
    )


def without_grants(statements: Sequence[Parsed], provided: Provided) -> tuple[Parsed, ...]:
    """A dump without the grants on what schema files create; those on members of extensions stay."""
    homes = find_homes(statements)
    subjects = [(one, homes.of(one)) for one in statements]
    created = {
        subject.home for one, subject in subjects if subject.creates and not provided.has(one, subject)
    }
    return tuple(one for one, subject in subjects if one.kind != "GrantStmt" or subject.home not in created)


def grants_from_birth(snapshot: Snapshot, *, but_for: Collection[Address]) -> tuple[Parsed, ...]:
    """The statements that lead each object from the grants that it is born with to those that it has.

    Args:
        snapshot: The live database.
        but_for: What is made elsewhere, before default privileges are set.
    """
    text = "".join(f"{statement};\n" for statement in _statements(snapshot, but_for))
    return tuple(parse_file(SourceFile("grants", text)))


def _statements(snapshot: Snapshot, but_for: Collection[Address]) -> Iterator[str]:
    scene = Scene(snapshot, snapshot)
    for address in sorted(snapshot.objects.keys() - set(but_for)):
        steps = decorate_new(snapshot.objects[address], scene)
        yield from (step.sql for step in steps if step.sql.startswith(GRANTS))
