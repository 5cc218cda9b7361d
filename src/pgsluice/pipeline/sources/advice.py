"""From a server's refusal of a schema to an error with a place in a file and something to do."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from pglast.parser import parse_sql_json

from pgsluice.errors import InputError, Location, PipelineError, UnreachableError
from pgsluice.pipeline.sources.names import Space
from pgsluice.pipeline.sources.read import read_entries
from pgsluice.pipeline.sources.tree import read_trees

if TYPE_CHECKING:
    import psycopg

    from pgsluice.pipeline.sources.catalog import Entry
    from pgsluice.pipeline.sources.model import SchemaSource, SourceStatement
    from pgsluice.pipeline.sources.names import Definition, Use

_DUPLICATE: Final = frozenset(("42P07", "42710", "42723", "42P06", "42712"))
_UNDEFINED: Final = {
    "42P01": frozenset((Space.RELATION,)),
    "42704": frozenset((Space.TYPE, Space.COLLATION, Space.OPERATOR_CLASS, Space.TEXT_SEARCH, Space.SERVER)),
    "42883": frozenset((Space.ROUTINE, Space.OPERATOR)),
    "3F000": frozenset((Space.SCHEMA,)),
}
_NOT_OFFERED: Final = frozenset(("0A000", "58P01"))
_NO_RIGHTS: Final = "42501"
_RESERVED_NAME: Final = "42939"
# Classes of errors that are the server's state and not the schema's fault.
_SERVER_STATE: Final = frozenset(("08", "53", "57", "58", "XX"))
_OTHER_SERVER: Final = (
    'set dev to a server that has it, such as dev = "local:/usr/lib/postgresql/17/bin", '
    'or dev = "postgresql://..."'
)
_DOTTED: Final = re.compile(r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)(?:\.(?:"(?:[^"]|"")+"|[^\W\d][\w$]*))*')


def load_error(
    source: SchemaSource, error: psycopg.Error, *, statement: SourceStatement | None, position: int | None
) -> PipelineError:
    """The error to raise when the server refuses a statement.

    Args:
        source: The schema.
        error: What the server said.
        statement: The statement at fault; None when it is none of the schema's.
        position: The character in the statement that the server points at.
    """
    state = error.sqlstate or ""
    message = error.diag.message_primary or str(error).strip()
    details = _details(error)
    if statement is None:
        return InputError(f"the schema does not load: {message}", details=details, hint=_server_hint(error))
    location = _location(source, statement, position)
    if state[:2] in _SERVER_STATE and state not in _NOT_OFFERED:
        return UnreachableError(message, location=location, details=details, hint=_server_hint(error))
    if state == _NO_RIGHTS:
        return UnreachableError(message, location=location, details=details, hint=_server_hint(error))
    if state in _NOT_OFFERED:
        return _not_offered(error, statement, location=location)
    entries = read_entries(source.files.values())
    if state in _DUPLICATE:
        first = _first_definition(entries, statement)
        if first is not None:
            details = (f"first defined at {first.location}: {first}", *details)
            return InputError(message, location=location, details=details, hint="delete one of the two")
    if state in _UNDEFINED:
        return _undefined(
            error, source, entries=entries, statement=statement, position=position, location=location
        )
    return InputError(message, location=location, details=details, hint=_server_hint(error))


def role_error(source: SchemaSource, error: psycopg.Error, *, role: str, command: str) -> PipelineError:
    """The error for a role that a schema names and that cannot be made on the dev server.

    Args:
        source: The schema.
        error: What the server said.
        role: The role's name.
        command: The statement that it refused.
    """
    entries = read_entries(source.files.values())
    location = next((entry.location for entry in entries if role in entry.facts.roles), None)
    message = f'role "{role}" cannot be created on the dev server'
    details = (error.diag.message_primary or str(error).strip(),)
    if error.sqlstate == _RESERVED_NAME:
        return InputError(message, location=location, details=details)
    return UnreachableError(message, location=location, details=details, hint=f"{command};")


def _details(error: psycopg.Error) -> tuple[str, ...]:
    diag = error.diag
    lines: list[str] = []
    if diag.message_detail:
        lines += diag.message_detail.splitlines()
    if diag.context:
        lines += diag.context.splitlines()
    if diag.internal_query:
        lines += [f"in the query: {line}" for line in diag.internal_query.strip().splitlines()[:5]]
    return tuple(lines)


def _server_hint(error: psycopg.Error) -> str | None:
    return error.diag.message_hint


def _location(source: SchemaSource, statement: SourceStatement, position: int | None) -> Location:
    file = source.files[statement.file]
    if not statement.is_verbatim:
        return file.location(statement.offset)
    if position is None:
        return Location(statement.file, line=statement.line)
    return file.location(statement.offset + min(position, len(statement.text)))


def _not_offered(error: psycopg.Error, statement: SourceStatement, *, location: Location) -> InputError:
    """Something that this build of the server has not: an extension, or the ICU library."""
    tree = next(read_trees(parse_sql_json(statement.text)))
    message = error.diag.message_primary or ""
    if tree.kind == "CreateExtensionStmt":
        message = f'the dev server has no extension "{tree.node["extname"]}"'
    elif tree.kind != "DefineStmt":
        return InputError(message, location=location, details=_details(error), hint=_server_hint(error))
    return InputError(message, location=location, details=_details(error), hint=_OTHER_SERVER)


def _first_definition(entries: list[Entry], statement: SourceStatement) -> Entry | None:
    """The other statement that defines what a statement defines, whether or not it says the schema."""
    own = next((entry for entry in entries if _is_at(entry, statement)), None)
    if own is None:
        return None
    names = {(item.name.space, item.name.name) for item in own.facts.definitions}
    for entry in entries:
        if entry is not own and any(
            (item.name.space, item.name.name) in names for item in entry.facts.definitions
        ):
            return entry
    return None


def _is_at(entry: Entry, statement: SourceStatement) -> bool:
    return entry.file.name == statement.file and entry.start <= statement.offset < entry.end


def _undefined(
    error: psycopg.Error,
    source: SchemaSource,
    *,
    entries: list[Entry],
    statement: SourceStatement,
    position: int | None,
    location: Location,
) -> InputError:
    """A name that resolves to nothing, with the place of the name and a similar one that is defined."""
    spaces = _UNDEFINED[error.sqlstate or ""]
    message = error.diag.message_primary or ""
    own = next((entry for entry in entries if _is_at(entry, statement)), None)
    defined = [
        (definition, entry)
        for entry in entries
        for definition in entry.facts.definitions
        if definition.name.space in spaces
    ]
    missing = _missing(own, defined, spaces=spaces, message=message)
    if missing is not None and position is None and statement.is_verbatim:
        found = _find_word(statement.text, missing.name.name)
        if found is not None:
            location = source.files[statement.file].location(statement.offset + found)
    hint = _similar(missing, defined) if missing is not None else None
    return InputError(message, location=location, details=_details(error), hint=hint or _server_hint(error))


def _missing(
    own: Entry | None,
    defined: list[tuple[Definition, Entry]],
    *,
    spaces: frozenset[Space],
    message: str,
) -> Use | None:
    """The use that the server speaks of: one of its name spaces that no statement defines."""
    if own is None:
        return None
    names = {definition.name for definition, _ in defined}
    uses = [*own.facts.uses, *own.facts.keys.values()]
    candidates = [use for use in uses if use.name.space in spaces and use.name not in names]
    told = [use for use in candidates if str(use.name) in message]
    chosen = told or candidates
    return max(chosen, key=lambda use: len(str(use.name))) if chosen else None


def _similar(missing: Use, defined: list[tuple[Definition, Entry]]) -> str | None:
    by_name = {str(definition.name): (definition, entry) for definition, entry in defined}
    for cutoff_name in (str(missing.name), missing.name.name):
        close = difflib.get_close_matches(cutoff_name, sorted(by_name), n=1, cutoff=0.6)
        if close:
            definition, entry = by_name[close[0]]
            return f"did you mean {definition} ({entry.location})?"
    return None


def _find_word(text: str, name: str) -> int | None:
    """Where a name stands in a statement, qualified or not."""
    for match in _DOTTED.finditer(text):
        last = match[0].rpartition(".")[2]
        if last.strip('"') == name or last.lower() == name:
            return match.start()
    return None
