"""Tables as a migration would create them: keys, identities and defaults inside of `create table`.

pg_dump spreads a table over many `alter table`; the baseline, which the planner wrote and the proof ran,
says the same in fewer words. Its statements about tables and sequences stand in for the dump's.
"""

from __future__ import annotations

from typing import Final

from pgsluice.pipeline.adopt.files import Piece, Pieces
from pgsluice.pipeline.adopt.homes import find_homes
from pgsluice.pipeline.adopt.spelling import spell
from pgsluice.pipeline.sources.kinds import IMPERATIVE
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

GENERATED: Final = frozenset({"tables", "sequences"})
SETTINGS: Final = frozenset({"VariableSetStmt"})


def with_generated_tables(pieces: Pieces, baseline: str) -> Pieces | None:
    """The pieces with tables and sequences as the baseline makes them; None where it does so in detours.

    Args:
        pieces: From the dump.
        baseline: The text of the migration that makes them all.
    """
    statements = [one for one in parse_file(SourceFile("baseline", baseline)) if one.kind not in SETTINGS]
    if any(one.kind in IMPERATIVE for one in statements):
        return None
    homes = find_homes(statements)
    made: Pieces = {}
    for parsed in statements:
        home = homes.of(parsed).home
        if home.folder in GENERATED:
            made.setdefault(home, []).append(Piece(spell(parsed.text, parsed.kind, relay=False), parsed.kind))
    wanted = {home for home in pieces if home.folder in GENERATED}
    if made.keys() != wanted:
        return None
    return {home: made.get(home, own) for home, own in pieces.items()}
