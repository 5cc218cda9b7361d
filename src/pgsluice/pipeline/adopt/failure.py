"""Why the adopted files do not load, said of the database that they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.devdb import bootstrap
from pgsluice.pipeline.proof import InvalidFunctionsError, connected, validate_functions
from pgsluice.pipeline.sources import load_schema, read_schema
from pgsluice.pipeline.states import search_path

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.config import Target
    from pgsluice.errors import PipelineError
    from pgsluice.pipeline.devdb import DevServer

SHOWN: Final = 40


def explain(
    error: PipelineError, server: DevServer, target: Target, *, root: Path, major: int, place: str
) -> PipelineError:
    """The error to raise instead: of an older dev server, or of all functions that are invalid.

    Args:
        error: What loading the files gave.
        server: The dev server.
        target: The adopted one.
        root: Its project's folder.
        major: That of the database's server.
        place: The database, for messages.
    """
    if major > server.major:
        return InputError(
            f"{server.description} is older than {place}, which is PostgreSQL {major}, and does not load "
            "its schema",
            details=error.lines(),
            hint=f"name a dev server of that major: --dev docker://postgres:{major}, --dev embedded "
            "or --dev postgresql://...",
        )
    invalid = _invalid_functions(server, target, root)
    if invalid is None:
        return error
    return InputError(
        f"functions of {place} would fail when called with search_path = {search_path(target)}: "
        f"{len(invalid.oids)}",
        details=invalid.details[:SHOWN],
        hint="mend them there; or give them a path of their own: alter function ... set search_path = ...; "
        "or adopt their schema as the first: --schema NAME; or leave them out: --ignore 'schema.name'",
    )


def _invalid_functions(server: DevServer, target: Target, root: Path) -> InvalidFunctionsError | None:
    """All functions whose bodies are wrong, None where something else keeps the files from loading."""
    source = read_schema(target.schema_dir, root=root)
    template = bootstrap(server, target.requires, root=root)
    with server.clone(template) as conninfo, connected(conninfo) as conn:
        try:
            load_schema(conn, source, search_path=search_path(target))
        except InputError:
            return None
        try:
            validate_functions(conn, target.manages, search_path=search_path(target))
        except InvalidFunctionsError as exc:
            return exc
    return None
