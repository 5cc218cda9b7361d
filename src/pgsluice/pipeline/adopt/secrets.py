"""What must not be written into a file: options of foreign data that hold a password, a key or a token.

A user mapping can stay out. A server or a table cannot: others need it, so there the database must be mended.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import RefusedError
from pgsluice.pipeline.secret_options import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.sources.tree import Node

EVERYBODY: Final = "PUBLIC"
SPECIAL: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of the live database that no schema file has."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Mapping:
    """A user mapping by its snapshot's name, `server.role`."""

    server: str
    role: str

    @property
    def pattern(self) -> str:
        """A pattern of `ignore` that means this mapping alone."""
        return _pattern(f"{self.server}.{self.role}")

    @property
    def left_out(self) -> LeftOut:
        """What a user is told."""
        return LeftOut(f"user mapping for {self.role} on server {self.server}", "its options hold a secret")


def secret_mappings(statements: Iterable[Parsed]) -> Iterator[Mapping]:
    """The user mappings of a dump that no file may hold."""
    for parsed in statements:
        is_mapping = parsed.kind == "CreateUserMappingStmt"
        if is_mapping and any(_secret_options(parsed.node.get("options", ()))):
            yield _mapping(parsed)


def refuse_secrets(statements: Sequence[Parsed], ignore: Sequence[str]) -> None:
    """Refuse a dump in which a wrapper, a server or a foreign table holds a secret, unless it is ignored.

    Raises:
        RefusedError: It names the options, without their values.
    """
    found = [
        (holder, option)
        for parsed in statements
        for holder, option in _holders(parsed)
        if not any(fnmatchcase(holder.name, pattern) for pattern in ignore)
    ]
    if not found:
        return
    holder, option = found[0]
    left_out = dict.fromkeys(name for one, _ in found for name in _with_users(one, statements))
    raise RefusedError(
        f"{holder} holds a secret in its option {option}, and files are no place for that",
        details=tuple(f"so does option {name} of {one}" for one, name in found[1:]),
        hint="put it into a user mapping, which stays out of files; or leave out what has it: "
        + " ".join(f"--ignore {shlex.quote(_pattern(name))}" for name in left_out),
    )


@dataclass(frozen=True, slots=True)
class _Holder:
    """What has an option: `name` is the one by which `ignore` knows it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def _holders(parsed: Parsed) -> Iterator[tuple[_Holder, str]]:
    """What a statement of a dump makes, with each secret option."""
    node = parsed.node
    if parsed.kind == "CreateFdwStmt":
        holder = _Holder("foreign data wrapper", node["fdwname"])
        options = node.get("options", ())
    elif parsed.kind == "CreateForeignServerStmt":
        holder = _Holder("server", node["servername"])
        options = node.get("options", ())
    elif parsed.kind == "CreateForeignTableStmt":
        holder = _table(node["base"]["relation"])
        columns = [one.get("ColumnDef", {}) for one in node["base"].get("tableElts", ())]
        options = (
            *node.get("options", ()),
            *(one for column in columns for one in column.get("fdwoptions", ())),
        )
    elif parsed.kind == "AlterTableStmt":
        holder = _table(node["relation"])
        commands = [one["AlterTableCmd"] for one in node["cmds"]]
        changes = [one for one in commands if one["subtype"] == "AT_AlterColumnGenericOptions"]
        options = [option for one in changes for option in one["def"]["List"]["items"]]
    else:
        return
    yield from ((holder, name) for name in _secret_options(options))


def _with_users(holder: _Holder, statements: Sequence[Parsed]) -> Iterator[str]:
    """What goes when a holder stays out: of a server its mappings and tables, of a wrapper its servers."""
    yield holder.name
    for parsed in statements:
        node = parsed.node
        if holder.kind == "foreign data wrapper" and node.get("fdwname") == holder.name:
            if parsed.kind == "CreateForeignServerStmt":
                yield from _with_users(_Holder("server", node["servername"]), statements)
        elif holder.kind == "server" and node.get("servername") == holder.name:
            if parsed.kind == "CreateUserMappingStmt":
                yield mapping_name(parsed)
            elif parsed.kind == "CreateForeignTableStmt":
                yield _table(node["base"]["relation"]).name


def _table(node: Node) -> _Holder:
    return _Holder("foreign table", f"{node['schemaname']}.{node['relname']}")


def _secret_options(options: Iterable[Any]) -> Iterator[str]:
    """The names of those options that hold secrets."""
    for option in options:
        element = option["DefElem"]
        value = element.get("arg", {}).get("String", {}).get("sval", "")
        if is_secret(element["defname"], value):
            yield str(element["defname"])


def mapping_name(parsed: Parsed) -> str:
    """The name by which `ignore` knows the mapping that a statement creates."""
    mapping = _mapping(parsed)
    return f"{mapping.server}.{mapping.role}"


def _pattern(name: str) -> str:
    """A pattern that means this name alone."""
    return SPECIAL.sub(lambda match: f"[{match[0]}]", name)


def _mapping(parsed: Parsed) -> Mapping:
    return Mapping(parsed.node["servername"], parsed.node["user"].get("rolename", EVERYBODY))
