"""What must not be written into a file: user mappings whose options hold a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pgsluice.pipeline.sources.parse import Parsed

OPTIONS: Final = frozenset({"password", "passfile", "sslkey", "sslpassword"})
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
        return SPECIAL.sub(lambda match: f"[{match[0]}]", f"{self.server}.{self.role}")

    @property
    def left_out(self) -> LeftOut:
        """What a user is told."""
        return LeftOut(f"user mapping for {self.role} on server {self.server}", "its options hold a secret")


def secret_mappings(statements: Iterable[Parsed]) -> Iterator[Mapping]:
    """The user mappings of a dump that no file may hold."""
    for parsed in statements:
        if parsed.kind == "CreateUserMappingStmt":
            names = {option["DefElem"]["defname"] for option in parsed.node.get("options", ())}
            if names & OPTIONS:
                yield _mapping(parsed)


def mapping_name(parsed: Parsed) -> str:
    """The name by which `ignore` knows the mapping that a statement creates."""
    mapping = _mapping(parsed)
    return f"{mapping.server}.{mapping.role}"


def _mapping(parsed: Parsed) -> Mapping:
    return Mapping(parsed.node["servername"], parsed.node["user"].get("rolename", EVERYBODY))
