"""A migration's file as `apply` runs it: its statements, and what each of them needs."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.history import is_transactional
from pgsluice.pipeline.live.ledger import content_digest
from pgsluice.pipeline.sources.facts import find_facts
from pgsluice.pipeline.sources.parse import parse_file, read_file

if TYPE_CHECKING:
    from pgsluice.config import Project
    from pgsluice.pipeline.history import Migration
    from pgsluice.pipeline.sources.model import SourceFile
    from pgsluice.pipeline.sources.names import Facts
    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.sources.tree import Node

SHOWN_CHARS: Final = 100
DIGEST_CHARS: Final = 16

_MAKES_RELATIONS: Final = frozenset(
    {"CreateSeqStmt", "CreateStmt", "CreateTableAsStmt", "SelectStmt", "ViewStmt"}
)
_BEGINS: Final = frozenset({"TRANS_STMT_BEGIN", "TRANS_STMT_START"})
_PARTS: Final = frozenset({"TRANS_STMT_SAVEPOINT", "TRANS_STMT_RELEASE", "TRANS_STMT_ROLLBACK_TO"})
_MODES: Final = frozenset({"transaction_deferrable", "transaction_isolation", "transaction_read_only"})
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
        found = self._parsed[1:-1] if self._is_wrapped else self._parsed
        kinds = [_transaction_kind(parsed) for parsed in found]
        for parsed, kind in zip(found, kinds, strict=True):
            if kind is not None and not (self.transactional and kind in _PARTS):
                raise _controls_transaction(self, parsed)
            if parsed.kind == "DiscardStmt" and parsed.node["target"] == "DISCARD_ALL":
                raise InputError(
                    "discard all would give back the lock that a run of apply holds",
                    location=self.location(parsed),
                    hint="reset all",
                )
        return found

    @property
    def begin(self) -> str:
        """What opens the file's transaction: its own `begin`, with what that says of the transaction."""
        return self._parsed[0].text if self._is_wrapped else "begin"

    @cached_property
    def modes(self) -> int:
        """How many statements in front set the transaction's modes, which must come before all others."""
        setters = itertools.takewhile(_sets_transaction, self.statements)
        return sum(1 for _ in setters) if self.transactional else 0

    @cached_property
    def _parsed(self) -> tuple[Parsed, ...]:
        return tuple(parse_file(self.file)) if self.file.text.strip() else ()

    @cached_property
    def _is_wrapped(self) -> bool:
        """Whether a transactional file says `begin` first and `commit` last."""
        found = self._parsed
        return (
            self.transactional
            and len(found) > 1
            and _transaction_kind(found[0]) in _BEGINS
            and _transaction_kind(found[-1]) == "TRANS_STMT_COMMIT"
        )

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
        InputError: Its name or content is no text, or it holds what psql alone understands.
    """
    name = project.relative(migration.path)
    try:
        migration.filename.encode()
    except UnicodeEncodeError as exc:
        raise InputError(f"the file's name is not valid UTF-8: {migration.filename!r}") from exc
    file = read_file(migration.path, name, kind="migration")
    digest = content_digest(migration.filename, migration.path.read_bytes())
    return Script(migration, file, digest, is_transactional(file.text))


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
    if kind in _SESSION or kind == "DiscardStmt" or only_sets(statement):
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


def _transaction_kind(statement: Parsed) -> str | None:
    return str(statement.node["kind"]) if statement.kind == "TransactionStmt" else None


def _sets_transaction(statement: Parsed) -> bool:
    name = statement.node.get("name") if statement.kind == "VariableSetStmt" else None
    return name == "TRANSACTION" or name in _MODES


def only_sets(statement: Parsed) -> bool:
    """Whether a `select` does nothing but call `set_config`, as what `pg_dump` writes does."""
    node = statement.node
    if (
        statement.kind != "SelectStmt"
        or not node.get("targetList")
        or "fromClause" in node
        or "intoClause" in node
    ):
        return False
    values = (item["ResTarget"]["val"] for item in node["targetList"])
    return all(_function(value) == "set_config" for value in values)


def resets_all(statement: Parsed) -> bool:
    """Whether a statement takes back every setting of the session, so also those that are not its own."""
    return statement.kind == "VariableSetStmt" and statement.node["kind"] == "VAR_RESET_ALL"


def makes_temporary(statement: Parsed) -> str | None:
    """The name of the temporary relation that a statement makes, which ends with the session."""
    if statement.kind not in _MAKES_RELATIONS:
        return None
    node = statement.node
    into = node.get("into") or node.get("intoClause") or {}
    for place in (node.get("relation"), node.get("view"), node.get("sequence"), into.get("rel")):
        if isinstance(place, dict) and _is_temporary(place):
            return str(place["relname"])
    return None


def _is_temporary(relation: Node) -> bool:
    return relation.get("relpersistence") == "t" or relation.get("schemaname") == "pg_temp"


def _function(value: Node) -> str | None:
    """The name of the function that an expression calls."""
    names = value.get("FuncCall", {}).get("funcname", ())
    return str(names[-1]["String"]["sval"]) if names else None


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
