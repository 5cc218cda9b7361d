"""What pg_dump does not print, and a schema file can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.quoting import join_name
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.snapshot import Snapshot
    from pgsluice.pipeline.sources.parse import Parsed


def unprinted(snapshot: Snapshot) -> tuple[Parsed, ...]:
    """The statements that a dump of this catalog lacks."""
    text = "".join(f"{statement};\n" for statement in _statistics(snapshot))
    return tuple(parse_file(SourceFile("catalog", text)))


def _statistics(snapshot: Snapshot) -> Iterator[str]:
    """Statistics targets of the index behind an exclusion constraint."""
    for address in sorted(snapshot.objects):
        targets = snapshot.objects[address].get("index_statistics")
        if address.kind == "constraint" and targets:
            name = join_name((address.path[0], address.path[2]))
            for number, target in sorted(targets.items()):
                yield f"ALTER INDEX {name} ALTER COLUMN {number} SET STATISTICS {target}"
