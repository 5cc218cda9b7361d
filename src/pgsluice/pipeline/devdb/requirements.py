"""What a project's schema stands on: extensions, SQL files and named recipes, loaded before it."""

from __future__ import annotations

import hashlib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pgsluice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from pgsluice.pipeline.devdb.server import DevServer

PGMQ: Final = "pgmq"
UNWANTED: Final = {"\ufeff": "a byte order mark", "\0": "a zero byte"}
PGMQ_SQL: Final = "pgmq/sql/pgmq.sql"


class Requirement(Protocol):
    """One entry of `requires`."""

    @property
    def digest(self) -> str:
        """Names the content that `load` brings."""

    def load(self, conn: psycopg.Connection[tuple[object, ...]]) -> None:
        """Load it through an autocommit connection."""


@dataclass(frozen=True, slots=True)
class ExtensionRequirement:
    """An extension that the server offers."""

    name: str
    version: str

    @property
    def digest(self) -> str:
        """Name and version."""
        return f"extension {self.name} {self.version}"

    def load(self, conn: psycopg.Connection[tuple[object, ...]]) -> None:
        """Create the extension, and those that it needs."""
        from pgsluice.pipeline.devdb.script import create_extension

        create_extension(conn, self.name)


@dataclass(frozen=True, slots=True)
class ScriptRequirement:
    """A SQL file; `file` is its name for messages, `schema` is made first when given."""

    file: str
    text: str
    schema: str | None = None

    @property
    def digest(self) -> str:
        """The content alone: a moved file loads the same."""
        return f"script {self.schema or ''} {hashlib.sha256(self.text.encode()).hexdigest()}"

    def load(self, conn: psycopg.Connection[tuple[object, ...]]) -> None:
        """Run the statements one by one."""
        from pgsluice.pipeline.devdb.script import create_schema, run_script

        if self.schema is not None:
            create_schema(conn, self.schema)
        run_script(conn, self.text, file=self.file)


def bootstrap(server: DevServer, requires: Sequence[str], *, root: Path) -> str:
    """The name of a template database with `requires` loaded, in that order.

    Args:
        server: An open dev server.
        requires: Names of extensions, paths of `.sql` files relative to `root`, or the recipe `pgmq`.
        root: The project's root folder.

    Raises:
        InputError: An extension is not available, or a file is missing or fails; names it, and the line.
        UnreachableError: The server refuses or cannot be reached.
    """
    loaded = read_requirements(server, requires, root=root)

    def fill(conninfo: str) -> None:
        import psycopg

        with psycopg.connect(conninfo, autocommit=True) as conn:
            for requirement in loaded:
                requirement.load(conn)

    digest = hashlib.sha256("\n".join(("bootstrap", *(each.digest for each in loaded))).encode()).hexdigest()
    return server.template(digest, parent=None, fill=fill)


def read_requirements(server: DevServer, requires: Sequence[str], *, root: Path) -> tuple[Requirement, ...]:
    """Find out what each entry of `requires` means on this server."""
    names = [entry for entry in requires if not entry.endswith(".sql")]
    versions = server.extensions.versions(names)

    def read(entry: str) -> Requirement:
        if entry.endswith(".sql"):
            return _read_script(entry, root)
        if entry in versions:
            return ExtensionRequirement(entry, versions[entry])
        if entry == PGMQ:
            return _pgmq_script()
        raise server.extensions.missing(entry)

    return tuple(read(entry) for entry in requires)


def _read_script(entry: str, root: Path) -> ScriptRequirement:
    path = root / entry
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise InputError(f"required file {entry} is not UTF-8: byte {exc.start} is invalid") from exc
    except OSError as exc:
        raise InputError(
            f"cannot read required file {entry}: {exc.strerror}",
            hint="correct requires = [...]; its paths are relative to the project root",
        ) from exc
    for character, what in UNWANTED.items():
        if character in text:
            raise InputError(f"required file {entry} contains {what}", hint=f"remove it from {entry}")
    return ScriptRequirement(entry, text)


def _pgmq_script() -> ScriptRequirement:
    """PGMQ from its Python package, for servers without the extension."""
    hint = "pip install pgmq"
    try:
        package = importlib.metadata.distribution(PGMQ)
    except importlib.metadata.PackageNotFoundError as exc:
        raise InputError(
            "pgmq is neither an extension of the dev server nor installed as a Python package", hint=hint
        ) from exc
    path = Path(str(package.locate_file(PGMQ_SQL)))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise InputError(
            f"the installed pgmq {package.version} carries no {PGMQ_SQL}", hint=f"{hint} --upgrade"
        ) from exc
    return ScriptRequirement(f"{PGMQ} {package.version}: {PGMQ_SQL}", text, schema=PGMQ)
