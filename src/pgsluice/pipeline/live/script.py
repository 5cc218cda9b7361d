"""A migration's file as `apply` runs it: its statements, and what each of them needs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.history import is_transactional
from pgsluice.pipeline.live.ledger import content_digest
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.model import SourceFile
from pgsluice.pipeline.sources.parse import parse_file

if TYPE_CHECKING:
    from pgsluice.config import Project
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.sources.names import Facts
    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.sources.tree import Node

SHOWN_CHARS: Final = 100
DIGEST_CHARS: Final = 16

_BEGINS: Final = frozenset({"TRANS_STMT_BEGIN", "TRANS_STMT_START"})
_PARTS: Final = frozenset({"TRANS_STMT_SAVEPOINT", "TRANS_STMT_RELEASE", "TRANS_STMT_ROLLBACK_TO"})
_SESSION: Final = frozenset(
    {"DeallocateStmt", "ListenStmt", "LoadStmt", "PrepareStmt", "UnlistenStmt", "VariableSetStmt"}
)
_OUTSIDE: Final = frozenset(
    {
        "AlterSubscriptionStmt",
        "AlterSystemStmt",
        "CreateSubscriptionStmt",
        "CreateTableSpaceStmt",
        "CreatedbStmt",
        "DropSubscriptionStmt",
        "DropTableSpaceStmt",
        "DropdbStmt",
    }
)
_ENDS_TRANSACTION: Final = re.compile(r"\b(?:commit|rollback)\b", re.IGNORECASE)


class Mode(StrEnum):
    """How a statement of a file without a transaction of its own is run."""

    SESSION = "session"
    """It changes the session, and nothing that stays."""
    INSIDE = "inside"
    """In one transaction with its record; outside of one when the server says that it must."""
    OUTSIDE = "outside"
    """Alone, between two records."""


@dataclass(frozen=True)
class Script:
    """One migration: `file` is its text under the name that messages show, `digest` its own."""

    migration: Migration
    file: SourceFile
    digest: str
    transactional: bool

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.migration.filename

    @cached_property
    def statements(self) -> tuple[Parsed, ...]:
        """The statements in order, without a `begin` and `commit` around all of a transactional file.

        Raises:
            InputError: A syntax error, or transaction control; with its place.
        """
        if not self.file.text.strip():
            return ()
        found = tuple(parse_file(self.file))
        kinds = [parsed.node["kind"] if parsed.kind == "TransactionStmt" else None for parsed in found]
        if self.transactional and len(found) > 1 and kinds[0] in _BEGINS and kinds[-1] == "TRANS_STMT_COMMIT":
            found, kinds = found[1:-1], kinds[1:-1]
        for parsed, kind in zip(found, kinds, strict=True):
            if kind is not None and not (self.transactional and kind in _PARTS):
                raise _controls_transaction(self, parsed)
            if parsed.kind == "DiscardStmt" and parsed.node["target"] == "DISCARD_ALL":
                raise InputError(
                    "discard all would give back the lock that a run of apply holds",
                    location=self.location(parsed),
                    hint="reset all",
                )
            if parsed.kind == "CopyStmt" and "filename" not in parsed.node:
                direction = "from stdin" if parsed.node.get("is_from") else "to stdout"
                raise InputError(
                    f"copy {direction} needs psql; a migration file holds no data",
                    location=self.location(parsed),
                    hint="write the rows as insert statements",
                )
        return found

    @cached_property
    def facts(self) -> tuple[Facts, ...]:
        """What each statement defines and names."""
        return tuple(find_facts(parsed) for parsed in self.statements)

    @property
    def statement_digests(self) -> list[str]:
        """What tells the statements apart later: a digest of each one's text."""
        return [statement_digest(parsed.text) for parsed in self.statements]

    def location(self, statement: Parsed, position: int | None = None) -> Location:
        """The place of a statement, or of a character in it (from 1), without the line's text."""
        offset = statement.start if position is None else statement.start + position - 1
        place = self.file.location(offset)
        return Location(place.file, place.line, place.column if position is not None else None)


def read_script(migration: Migration, project: Project) -> Script:
    """Read one file.

    Raises:
        InputError: It is not valid UTF-8, or cannot be read.
    """
    name = project.relative(migration.path)
    content = migration.path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InputError("the migration is not valid UTF-8", location=Location(name)) from exc
    return Script(
        migration, SourceFile(name, text), content_digest(migration.filename, content), is_transactional(text)
    )


def statement_digest(text: str) -> str:
    """A digest of one statement's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def shortened(text: str, length: int = SHOWN_CHARS) -> str:
    """SQL on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def mode_of(statement: Parsed) -> Mode:
    """How a statement is run in a file that has no transaction of its own."""
    kind, node = statement.kind, statement.node
    if kind in _SESSION or kind == "DiscardStmt":
        return Mode.SESSION
    if kind in _OUTSIDE or is_concurrent(statement) or _ends_transactions(kind, node):
        return Mode.OUTSIDE
    if kind == "VacuumStmt":
        return Mode.OUTSIDE if node.get("is_vacuumcmd") else Mode.INSIDE
    if kind == "ReindexStmt":
        return Mode.OUTSIDE if "name" in node else Mode.INSIDE
    if kind == "ClusterStmt":
        return Mode.INSIDE if "relation" in node else Mode.OUTSIDE
    return Mode.INSIDE


def is_concurrent(statement: Parsed) -> bool:
    """Whether a statement says `concurrently` and so waits without keeping others waiting."""
    kind, node = statement.kind, statement.node
    if kind in ("IndexStmt", "DropStmt"):
        return bool(node.get("concurrent"))
    if kind == "ReindexStmt":
        return any(item["DefElem"]["defname"] == "concurrently" for item in node.get("params", ()))
    return kind == "AlterTableStmt" and detached_partition(node) is not None


def detached_partition(node: Node) -> Node | None:
    """The partition that `alter table … detach partition … concurrently` takes out."""
    for item in node["cmds"]:
        command = item["AlterTableCmd"]
        partition = command.get("def", {}).get("PartitionCmd", {})
        if command["subtype"] == "AT_DetachPartition" and partition.get("concurrent"):
            name: Node = partition["name"]
            return name
    return None


def _ends_transactions(kind: str, node: Node) -> bool:
    """Whether a `do` block commits or rolls back, by its words."""
    if kind != "DoStmt":
        return False
    bodies = (item["DefElem"] for item in node["args"])
    return any(
        _ENDS_TRANSACTION.search(body["arg"]["String"].get("sval", "")) is not None
        for body in bodies
        if body["defname"] == "as"
    )


def _controls_transaction(script: Script, statement: Parsed) -> InputError:
    how = (
        "the file runs in one transaction"
        if script.transactional
        else "each statement is its own transaction"
    )
    return InputError(
        f"{shortened(statement.text)}: a migration holds no transaction control",
        location=script.location(statement),
        hint=f"take it out: {how}",
    )
