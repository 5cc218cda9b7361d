"""Tables as a migration would create them: keys, identities and defaults inside of `create table`.

pg_dump spreads a table over many `alter table`; the planner, which makes it from nothing, says the same
in fewer words. Its statements about tables and sequences stand in for the dump's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.adopt.files import Piece, Pieces
from pgsluice.pipeline.adopt.homes import find_homes
from pgsluice.pipeline.adopt.spelling import spell
from pgsluice.pipeline.sources.kinds import IMPERATIVE
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Sequence

# A plan grants before default privileges are set, a schema folder after it.
GRANT: Final = "GrantStmt"
GENERATED: Final = frozenset({"tables", "sequences"})


def with_generated_tables(pieces: Pieces, statements: Sequence[str]) -> Pieces | None:
    """The pieces with tables and sequences as the planner makes them; None where it does so in detours.

    Args:
        pieces: From the dump.
        statements: The plan that makes all of them from nothing.
    """
    text = "".join(f"{statement};\n" for statement in statements)
    planned = tuple(parse_file(SourceFile("plan", text)))
    if any(one.kind in IMPERATIVE for one in planned):
        return None
    homes = find_homes(planned)
    made: Pieces = {}
    for parsed in planned:
        home = homes.of(parsed).home
        if home.folder in GENERATED and parsed.kind != GRANT:
            piece = Piece(spell(parsed.text, parsed.kind, relay=False), parsed.kind)
            made.setdefault(home, []).append(piece)
    if made.keys() != {home for home in pieces if home.folder in GENERATED}:
        return None
    for home, planned_pieces in made.items():
        planned_pieces += [piece for piece in pieces[home] if piece.kind == GRANT]
    return {home: made.get(home, own) for home, own in pieces.items()}
