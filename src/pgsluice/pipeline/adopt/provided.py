"""What `requires` brings already, so that no schema file defines it a second time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.sources.definitions import find_definitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pgsluice.pipeline.adopt.homes import Subject
    from pgsluice.pipeline.snapshot import Address
    from pgsluice.pipeline.sources.parse import Parsed

# Statements that say the same again when the object is there, and may say more.
REPEATABLE: Final = frozenset(
    {"AlterDefaultPrivilegesStmt", "AlterOwnerStmt", "CommentStmt", "GrantStmt", "SecLabelStmt"}
)
WITHOUT_SCHEMA: Final = frozenset(
    {
        "access method",
        "event trigger",
        "extension",
        "foreign data wrapper",
        "language",
        "publication",
        "schema",
        "server",
    }
)
ROUTINES: Final = frozenset({"aggregate", "function"})
IN_RELATION: Final = frozenset({"constraint", "policy", "rule", "trigger"})


@dataclass(slots=True)
class Provided:
    """Names of what the bootstrap of a target holds: objects, and parts of relations."""

    objects: set[tuple[str, str]] = field(default_factory=set)
    parts: set[tuple[str, str]] = field(default_factory=set)
    routines: set[tuple[str, str, int]] = field(default_factory=set)
    transforms: set[str] = field(default_factory=set)

    def has(self, parsed: Parsed, subject: Subject) -> bool:
        """Whether a statement of a dump makes what is there already."""
        home = subject.home
        key = (home.schema, home.name)
        if parsed.kind in REPEATABLE:
            return False
        if parsed.kind == "CreateSchemaStmt":
            return ("", str(parsed.node["schemaname"])) in self.objects
        if parsed.kind == "CreateTransformStmt":
            return parsed.node["lang"] in self.transforms
        if parsed.kind == "CreateAmStmt":
            return ("", parsed.node["amname"]) in self.objects
        if parsed.kind == "CreatePLangStmt":
            return ("", parsed.node["plname"]) in self.objects
        if home.folder == "functions":
            return (*key, _arguments(parsed)) in self.routines
        if subject.part is not None and key in self.objects:
            return (home.schema, subject.part) in self.parts
        return bool(home.folder) and key in self.objects


def provided_by(addresses: Iterable[Address]) -> Provided:
    """The names of a snapshot's objects."""
    provided = Provided()
    for kind, path in addresses:
        if kind in ROUTINES:
            arguments = path[2]
            provided.routines.add((path[0], path[1], _count(arguments)))
        elif kind in IN_RELATION:
            provided.parts.add((path[0], path[-1]))
        elif kind == "transform":
            provided.transforms.add(path[-1])
        elif kind in WITHOUT_SCHEMA:
            provided.objects.add(("", path[0]))
        elif len(path) >= 2:
            (provided.parts if kind == "index" else provided.objects).add((path[0], path[1]))
    return provided


def _arguments(parsed: Parsed) -> int:
    """How many arguments a routine takes, results not counted."""
    if parsed.kind == "CreateFunctionStmt":
        parameters = [item["FunctionParameter"] for item in parsed.node.get("parameters", ())]
        outside = {"FUNC_PARAM_OUT", "FUNC_PARAM_TABLE"}
        return sum(1 for one in parameters if one.get("mode") not in outside)
    definitions = find_definitions(parsed.kind, parsed.node)
    return _count(definitions[0].signature.strip("()")) if definitions else -1


def _count(arguments: str) -> int:
    """The number of types in a list; commas inside of parentheses or quotes are part of a type."""
    if not arguments:
        return 0
    depth, count, quoted = 0, 1, False
    for char in arguments:
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "(") - (char == ")")
            count += char == "," and depth == 0
    return count
