"""Which object each statement of a dump belongs to: a table's indexes, triggers and grants to the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgsluice.pipeline.sources.definitions import find_definitions, implied_names
from pgsluice.pipeline.sources.names import Space
from pgsluice.pipeline.sources.tree import strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.sources.tree import Node

# The folder of each kind of object, by the word that `find_definitions` has for it.
FOLDERS: Final = {
    "aggregate": "functions",
    "collation": "collations",
    "conversion": "conversions",
    "domain": "types",
    "event trigger": "event_triggers",
    "foreign data wrapper": "foreign_data_wrappers",
    "foreign table": "tables",
    "function": "functions",
    "materialized view": "views",
    "operator class": "operator_classes",
    "operator family": "operator_classes",
    "procedure": "functions",
    "publication": "publications",
    "sequence": "sequences",
    "server": "servers",
    "table": "tables",
    "text search configuration": "text_search",
    "text search dictionary": "text_search",
    "text search parser": "text_search",
    "text search template": "text_search",
    "type": "types",
    "view": "views",
}
# Kinds without a file an object: the file that holds all of a schema's.
SHARED: Final = {"cast": "casts", "operator": "operators", "schema": "schema"}
# Where a statement about an object looks for the object's home.
_BY_RELATION: Final = frozenset(
    ("OBJECT_FOREIGN_TABLE", "OBJECT_INDEX", "OBJECT_MATVIEW", "OBJECT_SEQUENCE", "OBJECT_TABLE")
)
_OF_RELATION: Final = frozenset(
    ("OBJECT_COLUMN", "OBJECT_POLICY", "OBJECT_RULE", "OBJECT_TABCONSTRAINT", "OBJECT_TRIGGER")
)
_BY_FOLDER: Final = {
    "OBJECT_AGGREGATE": "functions",
    "OBJECT_COLLATION": "collations",
    "OBJECT_CONVERSION": "conversions",
    "OBJECT_FUNCTION": "functions",
    "OBJECT_OPCLASS": "operator_classes",
    "OBJECT_OPFAMILY": "operator_classes",
    "OBJECT_PROCEDURE": "functions",
    "OBJECT_ROUTINE": "functions",
    "OBJECT_TSCONFIGURATION": "text_search",
    "OBJECT_TSDICTIONARY": "text_search",
    "OBJECT_TSPARSER": "text_search",
    "OBJECT_TSTEMPLATE": "text_search",
    "OBJECT_EVENT_TRIGGER": "event_triggers",
    "OBJECT_FDW": "foreign_data_wrappers",
    "OBJECT_FOREIGN_SERVER": "servers",
    "OBJECT_PUBLICATION": "publications",
}
_BARE: Final = {
    "AlterEventTrigStmt": ("event_triggers", "trigname"),
    "AlterFdwStmt": ("foreign_data_wrappers", "fdwname"),
    "AlterForeignServerStmt": ("servers", "servername"),
    "AlterPublicationStmt": ("publications", "pubname"),
    "CreateUserMappingStmt": ("servers", "servername"),
}
_LISTED: Final = {
    "AlterDomainStmt": ("types", "typeName"),
    "AlterEnumStmt": ("types", "typeName"),
    "AlterOpFamilyStmt": ("operator_classes", "opfamilyname"),
    "AlterTSConfigurationStmt": ("text_search", "cfgname"),
    "AlterTSDictionaryStmt": ("text_search", "dictname"),
}
# What has a relation as its holder: the key of the relation, and of the part's own name.
_ON_RELATION: Final = {
    "CreatePolicyStmt": ("table", "policy_name"),
    "CreateTrigStmt": ("relation", "trigname"),
    "IndexStmt": ("relation", "idxname"),
    "RuleStmt": ("relation", "rulename"),
}


class Home(NamedTuple):
    """An object with a file: `folder` is its kind's, empty for a file that a whole schema shares.

    `schema` is empty for what belongs to no schema.
    """

    folder: str
    schema: str
    name: str


class Subject(NamedTuple):
    """What a statement is about.

    `part` is the name of what it creates or describes inside of its home: an index, a constraint, a trigger.
    """

    home: Home
    creates: bool = False
    part: str | None = None


# What is said of objects that no schema file makes: members of extensions, what a required script brings.
REQUIRED: Final = Home("", "", "required")
DEFAULT_PRIVILEGES: Final = "default_privileges"


@dataclass(slots=True)
class Homes:
    """The homes of relations, types, indexes and the like, by schema and name."""

    relations: dict[tuple[str, str], Home] = field(default_factory=dict)
    types: dict[tuple[str, str], Home] = field(default_factory=dict)
    members: dict[tuple[str, str], Home] = field(default_factory=dict)

    def of(self, parsed: Parsed) -> Subject:
        """What a statement is about; what is said of objects that are not in the dump shares a file."""
        kind, node = parsed.kind, parsed.node
        if kind in _ON_RELATION:
            key, part = _ON_RELATION[kind]
            return Subject(self._relation(node[key]), part=node.get(part))
        if kind in ("AlterTableStmt", "AlterSeqStmt", "CreateStatsStmt", "AlterStatsStmt"):
            return self._altered(kind, node)
        if kind in _BARE:
            folder, key = _BARE[kind]
            return Subject(Home(folder, "", node[key]))
        if kind in _LISTED:
            folder, key = _LISTED[kind]
            return Subject(_named(folder, strings(node[key])))
        if kind == "GrantStmt":
            return Subject(self._object(node["objtype"], node["objects"][0]))
        if kind in ("CommentStmt", "AlterOwnerStmt", "AlterObjectDependsStmt", "SecLabelStmt"):
            return self._described(node)
        if kind == "AlterDefaultPrivilegesStmt":
            return Subject(Home("", _schema_of(node), DEFAULT_PRIVILEGES))
        return self._created(kind, node)

    def _created(self, kind: str, node: Node) -> Subject:
        definitions = find_definitions(kind, node)
        if not definitions:
            return Subject(REQUIRED)
        first = definitions[0]
        schema, name = first.name.schema or "", first.name.name
        if first.name.space is Space.SCHEMA:
            return Subject(Home("", name, "schema"), creates=True)
        if first.word in SHARED:
            return Subject(Home("", schema, f"{SHARED[first.word]}"), creates=True, part=name)
        if first.name.space is Space.RELATION:
            return Subject(self.relations.get((schema, name), Home("tables", schema, name)), creates=True)
        return Subject(Home(FOLDERS.get(first.word, "others"), schema, name), creates=True)

    def _altered(self, kind: str, node: Node) -> Subject:
        if kind == "CreateStatsStmt":
            holder = self._relation(node["relations"][0]["RangeVar"])
            return Subject(holder, part=strings(node["defnames"])[-1])
        if kind == "AlterStatsStmt":
            schema, name = _split(strings(node["defnames"]))
            return Subject(self.members.get((schema, name), REQUIRED), part=name)
        if kind == "AlterSeqStmt":
            return Subject(self._relation(node["sequence"]), part=node["sequence"]["relname"])
        command = node["cmds"][0]["AlterTableCmd"]
        if command["subtype"] == "AT_AttachPartition":
            child = command["def"]["PartitionCmd"]["name"]
            part = child["relname"] if node.get("objtype") == "OBJECT_INDEX" else None
            return Subject(self._relation(child), part=part)
        home = self._relation(node["relation"])
        if node["relation"]["relname"] != home.name:
            return Subject(home, part=node["relation"]["relname"])
        constraint = command.get("def", {}).get("Constraint", {}) if "def" in command else {}
        is_constraint = command["subtype"] == "AT_AddConstraint"
        return Subject(home, part=constraint.get("conname") if is_constraint else None)

    def _described(self, node: Node) -> Subject:
        kind = node.get("objtype") or node.get("objectType") or ""
        if "relation" in node:
            items = node.get("object", {}).get("List", {}).get("items", [])
            part = strings(items)[-1] if items else node["relation"]["relname"]
            home = self._relation(node["relation"])
            return Subject(home, part=None if part == home.name and not items else part)
        part = None
        if (kind in _OF_RELATION and kind != "OBJECT_COLUMN") or kind == "OBJECT_INDEX":
            part = strings(node["object"]["List"]["items"])[-1]
        return Subject(self._object(kind, node["object"]), part=part)

    def _object(self, kind: str, value: Any) -> Home:
        """The home of an object as comments, grants and owners name it."""
        if "RangeVar" in value:
            return self._relation(value["RangeVar"], default=REQUIRED)
        if kind == "OBJECT_SCHEMA":
            return Home("", value["String"]["sval"], "schema")
        if "String" in value:
            folder = _BY_FOLDER.get(kind)
            return REQUIRED if folder is None else Home(folder, "", value["String"]["sval"])
        names = _names(kind, value)
        if kind in ("OBJECT_TYPE", "OBJECT_DOMAIN", "OBJECT_DOMCONSTRAINT"):
            return self.types.get(_split(names), _named("types", names))
        if kind == "OBJECT_CAST":
            return Home("", "", "casts")
        if kind == "OBJECT_OPERATOR":
            return Home("", _split(names)[0], "operators")
        if kind in _BY_RELATION or kind == "OBJECT_VIEW":
            return self.relations.get(_split(names), REQUIRED)
        if kind in _OF_RELATION:
            holder = _split(names[:-1])
            return self.relations.get(holder) or self.types.get(holder) or REQUIRED
        if kind == "OBJECT_STATISTIC_EXT":
            return self.members.get(_split(names), REQUIRED)
        folder = _BY_FOLDER.get(kind)
        return REQUIRED if folder is None else _named(folder, names)

    def _relation(self, node: Node, *, default: Home | None = None) -> Home:
        key = (node.get("schemaname", ""), node["relname"])
        return self.relations.get(key) or default or Home("tables", *key)


def find_homes(statements: Iterable[Parsed]) -> Homes:
    """The homes of all relations, types, indexes and statistics of a dump."""
    homes = Homes()
    owned: dict[tuple[str, str], tuple[str, str]] = {}
    implied: dict[tuple[str, str], tuple[str, str]] = {}
    for parsed in statements:
        kind, node = parsed.kind, parsed.node
        for definition in find_definitions(kind, node):
            key = (definition.name.schema or "", definition.name.name)
            if definition.name.space is Space.RELATION and kind != "IndexStmt":
                homes.relations[key] = Home(FOLDERS[definition.word], *key)
            elif definition.name.space is Space.TYPE:
                homes.types.setdefault(key, Home(FOLDERS.get(definition.word, "types"), *key))
        if kind == "AlterSeqStmt" and (owner := _owner_of(node)):
            owned[_key(node["sequence"])] = owner
        elif kind == "IndexStmt":
            implied[node["relation"].get("schemaname", ""), node["idxname"]] = _key(node["relation"])
        elif kind == "CreateStatsStmt":
            implied[_split(strings(node["defnames"]))] = _key(node["relations"][0]["RangeVar"])
        elif kind == "AlterTableStmt":
            for name in implied_names(kind, node):
                if name.space is Space.RELATION:
                    implied[name.schema or "", name.name] = _key(node["relation"])
    for key, table in {**implied, **owned}.items():
        if (home := homes.relations.get(table)) is not None:
            homes.relations[key] = home
            homes.members[key] = home
    return homes


def _owner_of(node: Node) -> tuple[str, str] | None:
    for option in node.get("options", ()):
        if option["DefElem"]["defname"] == "owned_by":
            names = strings(option["DefElem"]["arg"]["List"]["items"])
            return _split(names[:-1]) if len(names) > 1 else None
    return None


def _names(kind: str, value: Any) -> list[str]:
    if "ObjectWithArgs" in value:
        return strings(value["ObjectWithArgs"]["objname"])
    if "TypeName" in value:
        return strings(value["TypeName"]["names"])
    items = value.get("List", {}).get("items", [])
    if kind == "OBJECT_DOMCONSTRAINT":
        return strings(items[0]["TypeName"]["names"])
    names = strings(items)
    return names[1:] if kind in ("OBJECT_OPCLASS", "OBJECT_OPFAMILY") else names


def _schema_of(node: Node) -> str:
    """The schema of default privileges, empty for those of the whole database."""
    for option in node.get("options", ()):
        if option["DefElem"]["defname"] == "schemas":
            return strings(option["DefElem"]["arg"]["List"]["items"])[0]
    return ""


def _named(folder: str, names: Sequence[str]) -> Home:
    return Home(folder, *_split(names))


def _key(node: Node) -> tuple[str, str]:
    return node.get("schemaname", ""), node["relname"]


def _split(names: Sequence[str]) -> tuple[str, str]:
    return (names[-2] if len(names) > 1 else "", names[-1])
