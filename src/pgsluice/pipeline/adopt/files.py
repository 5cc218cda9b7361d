"""From the statements of a dump to schema files, one object a file."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.adopt.homes import REQUIRED, Home, Subject, find_homes
from pgsluice.pipeline.adopt.paths import file_paths
from pgsluice.pipeline.adopt.roles import owner_of, without_runner
from pgsluice.pipeline.adopt.secrets import mapping_name
from pgsluice.pipeline.adopt.spelling import code, spell
from pgsluice.pipeline.generate.spelling import keep_array_casts
from pgsluice.pipeline.live.values import as_values
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pgsluice.pipeline.adopt.provided import Provided
    from pgsluice.pipeline.snapshot import Snapshot
    from pgsluice.pipeline.sources.parse import Parsed

DUMP: Final = "pg_dump"
# Of the session in which a dump is restored, not of the schema.
SESSION: Final = frozenset({"SelectStmt", "VariableSetStmt", "CreateExtensionStmt"})
# Of an object that is there already.
ABOUT: Final = frozenset({"AlterOwnerStmt", "CommentStmt", "GrantStmt"})
NO_DATA: Final = ("with", "no", "data")


# Statements of one file, by the object that it is named after.
Pieces = dict[Home, list["Piece"]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement of a schema file, without its semicolon, as the file will have it."""

    text: str
    kind: str


def split_dump(text: str) -> tuple[Parsed, ...]:
    """The statements of `pg_dump --schema-only` that say what the schema is.

    Raises:
        InputError: PostgreSQL's grammar, as the parser here knows it, does not accept one of them.
    """
    return tuple(one for one in parse_file(SourceFile(DUMP, text)) if one.kind not in SESSION)


def without_usual_comments(statements: Sequence[Parsed], snapshot: Snapshot) -> tuple[Parsed, ...]:
    """The statements of a dump less the comments that extensions bring: only their owners may repeat them."""
    usual = {
        address.path[0]
        for address, obj in snapshot.objects.items()
        if address.kind == "extension" and obj.get("comment") is None
    }
    return tuple(one for one in statements if _commented_extension(one) not in usual)


def _commented_extension(parsed: Parsed) -> str | None:
    """The extension that a statement describes."""
    if parsed.kind != "CommentStmt" or parsed.node["objtype"] != "OBJECT_EXTENSION":
        return None
    return str(parsed.node["object"]["String"]["sval"])


def place_statements(
    statements: Sequence[Parsed],
    *,
    runner: str,
    ignore: Sequence[str],
    provided: Provided,
    populated: Collection[tuple[str, str]],
) -> Pieces:
    """Put each statement of a dump to its object.

    Args:
        statements: From `split_dump`.
        runner: The role that runs the migrations: its name is left out.
        ignore: Patterns of what stays out.
        provided: What `requires` brings.
        populated: The materialized views that hold rows in the live database.
    """
    homes = find_homes(statements)
    subjects = [(parsed, homes.of(parsed)) for parsed in statements]
    owners = {subject.home: owner for one, subject in subjects if (owner := owner_of(one)) is not None}
    kept = [
        (parsed, subject)
        for parsed, subject in subjects
        if not provided.has(parsed, subject) and not _is_ignored(parsed, subject, ignore)
    ]
    made = {subject.home for parsed, subject in kept if parsed.kind not in ABOUT}
    pieces: Pieces = {}
    for parsed, subject in kept:
        text = without_runner(parsed, runner, owner=owners.get(subject.home, ""))
        if text is None:
            continue
        if parsed.kind == "CreateTableAsStmt" and (subject.home.schema, subject.home.name) in populated:
            text = with_data(text)
        text = as_values(text, parsed.kind, node=parsed.node)
        home = subject.home if subject.home in made or not subject.home.folder else REQUIRED
        piece = Piece(spell(keep_array_casts(text), parsed.kind), parsed.kind)
        pieces.setdefault(home, []).append(piece)
    return pieces


def render_files(pieces: Pieces) -> dict[str, str]:
    """The files' texts by their path in the schema folder."""
    paths = file_paths(pieces)
    return {
        paths[home]: "\n\n".join(f"{piece.text};" for piece in own) + "\n" for home, own in pieces.items()
    }


def with_data(text: str) -> str:
    """A `create materialized view` without the `with no data` that pg_dump writes for all of them."""
    last = list(code(text))[-3:]
    words = tuple(token.text.lower() for token in last)
    return text[: last[0].start].rstrip() if words == NO_DATA else text


def _is_ignored(parsed: Parsed, subject: Subject, ignore: Sequence[str]) -> bool:
    """Whether a pattern means what a snapshot calls the object, or the part of it that is made here."""
    home, part = subject.home, subject.part
    if not home.folder:
        names = [f"{home.schema}.{part}" if part is not None else home.schema]
    else:
        name = f"{home.schema}.{home.name}" if home.schema else home.name
        names = [name] if part is None else [name, f"{name}.{part}", f"{home.schema}.{part}"]
    if parsed.kind == "CreateUserMappingStmt":
        names = [mapping_name(parsed)]
    return any(fnmatchcase(one, pattern) for one in names for pattern in ignore)
