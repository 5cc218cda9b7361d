"""What ordering needs to know about each statement, drawn from its tree so that the tree can go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.sources.definitions import find_definitions, implied_names
from pgsluice.pipeline.sources.kinds import IMPERATIVE
from pgsluice.pipeline.sources.names import Facts, Name, Space, Trait, Use, qualified, relation
from pgsluice.pipeline.sources.superusers import owning_superuser
from pgsluice.pipeline.sources.tree import strings
from pgsluice.pipeline.sources.uses import UseCollector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.sources.tree import Node

_SKIPPED: Final = {"CreateFunctionStmt": frozenset(("funcname",))}
_STORED: Final = frozenset(
    (
        "CompositeTypeStmt",
        "CreateEnumStmt",
        "CreateExtensionStmt",
        "CreateForeignTableStmt",
        "CreateSchemaStmt",
        "CreateSeqStmt",
        "CreateStmt",
    )
)
_RUNS_FUNCTIONS: Final = frozenset(("AlterDomainStmt", "AlterTableStmt", "IndexStmt"))
_BY_KIND: Final = {
    "CreateExtensionStmt": Trait.EXTENSION,
    "CreateSchemaStmt": Trait.SCHEMA,
    "CreateEventTrigStmt": Trait.EVENT_TRIGGER,
    "AlterDefaultPrivilegesStmt": Trait.DEFAULT_PRIVILEGES,
}
# What `alter table` does that the table's users may need; the rest (owner, row security, ...) they do not.
_CHANGES: Final = frozenset(
    (
        "AT_AddColumn",
        "AT_AddConstraint",
        "AT_AddIdentity",
        "AT_AddInherit",
        "AT_AddOf",
        "AT_AlterColumnType",
        "AT_AttachPartition",
        "AT_ColumnDefault",
        "AT_DropColumn",
        "AT_DropConstraint",
        "AT_SetNotNull",
    )
)
_NAMING: Final = frozenset(("AT_AlterConstraint", "AT_DropConstraint", "AT_ValidateConstraint"))


def find_facts(parsed: Parsed) -> Facts:
    """What one statement defines, uses and alters, and what else decides its place."""
    kind, node = parsed.kind, parsed.node
    collector = UseCollector(splits_keys=kind == "CreateStmt")
    collector.walk(node, skip=_SKIPPED.get(kind, frozenset()))
    definitions = find_definitions(kind, node)
    uses = collector.uses()
    uses.update(
        Use(Name(Space.SCHEMA, None, definition.name.schema))
        for definition in definitions
        if definition.name.schema is not None
    )
    if kind == "AlterPolicyStmt":
        name = Name(Space.MEMBER, node["table"].get("schemaname"), node["policy_name"])
        uses.add(Use(name, is_sure=False))
    elif kind == "AlterEventTrigStmt":
        uses.add(Use(Name(Space.MEMBER, None, node["trigname"])))
    implied = implied_names(kind, node)
    if kind == "CreateExtensionStmt":  # many are named after the type that they bring
        implied = (*implied, Name(Space.TYPE, None, node["extname"]))
    return Facts(
        definitions=definitions,
        implied=implied,
        uses=uses,
        alters=tuple(_altered(kind, node)),
        keys={byte - parsed.byte_start: use for byte, use in collector.keys.items()},
        roles=collector.roles,
        superuser=owning_superuser(kind, node),
        traits=set(_traits(kind, node)),
        body=_body(node) if kind == "CreateFunctionStmt" else None,
    )


def _traits(kind: str, node: Node) -> Iterator[Trait]:
    if kind in IMPERATIVE:
        yield Trait.IMPERATIVE
    if kind in _STORED:
        yield Trait.IS_STORED
    if kind in _BY_KIND:
        yield _BY_KIND[kind]
    if kind == "GrantStmt" and node.get("targtype") == "ACL_TARGET_ALL_IN_SCHEMA":
        yield Trait.ALL_IN_SCHEMA
    if kind in _RUNS_FUNCTIONS or (kind == "CreateStmt" and _computes(node)):
        yield Trait.RUNS_FUNCTIONS
    if kind == "CreateTableAsStmt":
        yield Trait.RUNS_QUERY
    if kind == "AlterOwnerStmt":
        yield Trait.OWNER
    if kind == "CommentStmt" and node.get("objtype") == "OBJECT_TABCONSTRAINT":
        yield Trait.NAMES_CONSTRAINT
    if "partbound" in node:
        yield Trait.PARTITION
    if kind == "IndexStmt" and not node["relation"].get("inh"):
        yield Trait.ON_ONLY
    if kind == "AlterTableStmt":
        yield from _command_traits(node)


def _command_traits(node: Node) -> Iterator[Trait]:
    subtypes = {item["AlterTableCmd"]["subtype"] for item in node["cmds"]}
    if "AT_ChangeOwner" in subtypes:
        yield Trait.OWNER
    if not subtypes.isdisjoint(_NAMING):
        yield Trait.NAMES_CONSTRAINT
    if "AT_AttachPartition" in subtypes and node.get("objtype") == "OBJECT_TABLE":
        yield Trait.PARTITION
    if "AT_AddConstraint" in subtypes and not node["relation"].get("inh"):
        yield Trait.ON_ONLY


def _computes(table: Node) -> bool:
    """Whether creating a table plans expressions: partition bounds and keys, generated columns."""
    if "partbound" in table or "partspec" in table:
        return True
    return any(
        item.get("Constraint", {}).get("contype") == "CONSTR_GENERATED"
        for element in table.get("tableElts", ())
        for item in element.get("ColumnDef", {}).get("constraints", ())
    )


def _altered(kind: str, node: Node) -> Iterator[Name]:
    """The objects that are less than whole before this statement, for those who use them."""
    if kind == "AlterTableStmt":
        if any(_changes(item["AlterTableCmd"]) for item in node["cmds"]):
            yield relation(node["relation"])
    elif kind == "IndexStmt":
        if node.get("unique"):
            yield relation(node["relation"])
    elif kind in {"AlterDomainStmt", "AlterEnumStmt", "AlterTypeStmt"}:
        yield from _listed(Space.TYPE, node["typeName"])
    elif kind == "CreateCastStmt":
        yield from _listed(Space.TYPE, node["sourcetype"]["names"])
        yield from _listed(Space.TYPE, node["targettype"]["names"])
    elif kind == "CreateOpClassStmt":
        yield from _listed(Space.TYPE, node["datatype"]["names"])
    elif kind == "AlterOpFamilyStmt":
        yield from _listed(Space.OPERATOR_CLASS, node["opfamilyname"])
    elif kind == "AlterFunctionStmt":
        yield from _listed(Space.ROUTINE, node["func"]["objname"])
    elif kind == "AlterTSConfigurationStmt":
        yield from _listed(Space.TEXT_SEARCH, node["cfgname"])


def _changes(command: Node) -> bool:
    definition = command.get("def", {}).get("Constraint", {})
    return command["subtype"] in _CHANGES and definition.get("contype") != "CONSTR_FOREIGN"


def _listed(space: Space, items: list[Node]) -> Iterator[Name]:
    name = qualified(space, items)
    if name is not None and name.schema != "pg_catalog":
        yield name


def _body(function: Node) -> str | None:
    """The text of a function in SQL or a procedural language; None for one in C, or with a parsed body."""
    for option in function.get("options", ()):
        element = option["DefElem"]
        if element["defname"] == "as":
            texts = strings(element["arg"]["List"]["items"])
            return texts[0] if len(texts) == 1 else None
    return None
