"""Grants of objects that are born with some: under standing default privileges.

A schema folder sets default privileges ahead of what they are for, a dump behind it. What pg_dump grants
counts from what PostgreSQL gives by itself, so here it is counted anew from what default privileges give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.decoration import decorate_new
from pgsluice.pipeline.generate.step import Scene
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.snapshot import Snapshot
    from pgsluice.pipeline.sources.parse import Parsed

RUNNER: Final = "@runner"
GRANTS: Final = ("GRANT ", "REVOKE ")


def has_default_privileges(snapshot: Snapshot) -> bool:
    """Whether what the runner creates is born with other grants than PostgreSQL's."""
    return any(
        address.kind == "default privileges" and address.path[1] == RUNNER for address in snapshot.objects
    )


def grants_from_birth(snapshot: Snapshot) -> tuple[Parsed, ...]:
    """The statements that lead each object from the grants that it is born with to those that it has."""
    text = "".join(f"{statement};\n" for statement in _statements(snapshot))
    return tuple(parse_file(SourceFile("grants", text)))


def _statements(snapshot: Snapshot) -> Iterator[str]:
    scene = Scene(snapshot, snapshot)
    for address in sorted(snapshot.objects):
        steps = decorate_new(snapshot.objects[address], scene)
        yield from (step.sql for step in steps if step.sql.startswith(GRANTS))
