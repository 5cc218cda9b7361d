"""What a statement refers to: relations, types, routines, operators, collations, schemas, roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.sources.names import Name, Space, Use, literal_name, qualified, relation
from pgsluice.pipeline.sources.tree import strings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.sources.tree import Node

# Functions whose first argument is a name in a string, and the name space of that name.
_NAME_FUNCTIONS: Final = {
    **dict.fromkeys(("nextval", "currval", "setval"), Space.RELATION),
    **dict.fromkeys(("to_tsvector", "to_tsquery", "ts_headline"), Space.TEXT_SEARCH),
    **dict.fromkeys(("plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery"), Space.TEXT_SEARCH),
    "ts_lexize": Space.TEXT_SEARCH,
}
_REG_TYPES: Final = {
    "regclass": Space.RELATION,
    "regtype": Space.TYPE,
    "regproc": Space.ROUTINE,
    "regprocedure": Space.ROUTINE,
    "regnamespace": Space.SCHEMA,
    "regcollation": Space.COLLATION,
    "regconfig": Space.TEXT_SEARCH,
    "regdictionary": Space.TEXT_SEARCH,
}
# The name space in which a statement about "an object" looks its name up.
_OBJECT_SPACES: Final = {
    "OBJECT_TYPE": Space.TYPE,
    "OBJECT_DOMAIN": Space.TYPE,
    "OBJECT_COLLATION": Space.COLLATION,
    "OBJECT_OPCLASS": Space.OPERATOR_CLASS,
    "OBJECT_OPFAMILY": Space.OPERATOR_CLASS,
    "OBJECT_TSCONFIGURATION": Space.TEXT_SEARCH,
    "OBJECT_TSDICTIONARY": Space.TEXT_SEARCH,
    "OBJECT_TSPARSER": Space.TEXT_SEARCH,
    "OBJECT_TSTEMPLATE": Space.TEXT_SEARCH,
    "OBJECT_STATISTIC_EXT": Space.MEMBER,
    "OBJECT_CONVERSION": Space.MEMBER,
    "OBJECT_EVENT_TRIGGER": Space.MEMBER,
    "OBJECT_SCHEMA": Space.SCHEMA,
    "OBJECT_EXTENSION": Space.EXTENSION,
    "OBJECT_FDW": Space.WRAPPER,
    "OBJECT_FOREIGN_SERVER": Space.SERVER,
    "OBJECT_LANGUAGE": Space.LANGUAGE,
    "OBJECT_ACCESS_METHOD": Space.ACCESS_METHOD,
    "OBJECT_PUBLICATION": Space.PUBLICATION,
}
# Objects whose name is that of their table with one name more behind it.
_IN_TABLE: Final = frozenset(
    ("OBJECT_COLUMN", "OBJECT_TABCONSTRAINT", "OBJECT_TRIGGER", "OBJECT_POLICY", "OBJECT_RULE")
)
_SWITCHES: Final = ("Trig", "TrigAlways", "TrigReplica", "Rule", "RuleAlways", "RuleReplica")
_BY_STRING: Final = {
    "servername": Space.SERVER,
    "server_name": Space.SERVER,
    "fdwname": Space.WRAPPER,
    "local_schema": Space.SCHEMA,
    "extname": Space.EXTENSION,
    "pubname": Space.PUBLICATION,
    "accessMethod": Space.ACCESS_METHOD,
    "amname": Space.ACCESS_METHOD,
    "lang": Space.LANGUAGE,
}
_BY_LIST: Final = {
    "cfgname": Space.TEXT_SEARCH,
    "collation": Space.COLLATION,
    "collname": Space.COLLATION,
    "defnames": Space.MEMBER,
    "dictname": Space.TEXT_SEARCH,
    "func_name": Space.ROUTINE,
    "handler_name": Space.ROUTINE,
    "opclass": Space.OPERATOR_CLASS,
    "opfamilyname": Space.OPERATOR_CLASS,
    "plhandler": Space.ROUTINE,
    "plinline": Space.ROUTINE,
    "plvalidator": Space.ROUTINE,
    "typeName": Space.TYPE,
}
_MIXED: Final = (Space.ROUTINE, Space.TYPE, Space.TEXT_SEARCH, Space.COLLATION)
# Parameters that name nothing, or what may come later: PostgreSQL keeps a place for a peer.
_SKIPPED: Final = frozenset(("as", "commutator", "negator"))


class UseCollector:
    """Walks a statement's tree, without recursion, and keeps what it refers to.

    `keys` holds the foreign keys written inside `create table`, by the constraint's byte in the file.
    """

    __slots__ = ("_ctes", "_splits_keys", "_uses", "keys", "roles")

    def __init__(self, *, splits_keys: bool) -> None:
        self._splits_keys = splits_keys
        self._uses: set[Use] = set()
        self._ctes: set[str] = set()
        self.keys: dict[int, Use] = {}
        self.roles: set[str] = set()

    def walk(self, node: Node, *, skip: frozenset[str] = frozenset()) -> None:
        """Collect from a node and all below it, but for the keys `skip` of the node itself."""
        stack: list[Any] = [{key: value for key, value in node.items() if key not in skip}]
        while stack:
            item = stack.pop()
            if type(item) is dict:
                for key, value in item.items():
                    handle = _HANDLERS.get(key)
                    if handle is not None and handle(self, item, value):
                        continue
                    if type(value) is dict or type(value) is list:
                        stack.append(value)
            else:
                stack += [part for part in item if type(part) is dict or type(part) is list]

    def uses(self) -> set[Use]:
        """What was found; a name that a `with` of the statement has too may be either."""
        if not self._ctes:
            return self._uses
        return {
            use._replace(is_sure=False)
            if use.name.space is Space.RELATION and use.name.schema is None and use.name.name in self._ctes
            else use
            for use in self._uses
        }

    def add(self, name: Name | None, *, arguments: int | None = None, is_sure: bool = True) -> None:
        """Keep one name, unless it is the system's own."""
        if name is not None and name.schema != "pg_catalog":
            self._uses.add(Use(name, arguments, is_sure))

    def on_relation(self, node: Node, _: Any) -> bool:
        self.add(relation(node))
        return False

    def on_key(self, node: Node, value: Any) -> bool:
        if not self._splits_keys:
            return False
        self.keys[node["location"]] = Use(relation(value))
        return True

    def on_type(self, node: Node, value: Any) -> bool:
        if "typemod" not in node:
            return False
        if node.get("pct_type"):
            self.add(qualified(Space.RELATION, value[:-1]))
        else:
            self.add(qualified(Space.TYPE, value))
        return True

    def on_call(self, node: Node, value: Any) -> bool:
        name = qualified(Space.ROUTINE, value)
        arguments = node.get("args", [])
        is_open = "agg_within_group" in node or "func_variadic" in node or "agg_star" in node
        is_call = "funcformat" in node
        self.add(name, arguments=len(arguments) if is_call and not is_open else None)
        if name is not None and name.name in _NAME_FUNCTIONS and arguments:
            self._add_literal(arguments[0], _NAME_FUNCTIONS[name.name])
        return True

    def on_cast(self, _: Node, value: Any) -> bool:
        names = strings(value["typeName"].get("names", []))
        space = _REG_TYPES.get(names[-1]) if names else None
        if space is not None:
            self._add_literal(value.get("arg", {}), space)
        return False

    def on_routine(self, _: Node, value: Any) -> bool:
        name = qualified(Space.ROUTINE, value)
        if name is not None and not (name.name[0].isalpha() or name.name[0] == "_"):
            name = name._replace(space=Space.OPERATOR)
        self.add(name)
        return True

    def on_operator(self, _: Node, value: Any) -> bool:
        self.add(qualified(Space.OPERATOR, value["name"]), is_sure=False)
        return False

    def on_operator_list(self, _: Node, value: Any) -> bool:
        self.add(qualified(Space.OPERATOR, value), is_sure=False)
        return True

    def on_dictionaries(self, _: Node, value: Any) -> bool:
        for item in value:
            self.add(qualified(Space.TEXT_SEARCH, item["List"]["items"]))
        return True

    def on_cte(self, _: Node, value: Any) -> bool:
        self._ctes.add(value)
        return True

    def on_role(self, _: Node, value: Any) -> bool:
        self.roles.add(value)
        return True

    def on_list(self, _: Node, value: Any, *, space: Space) -> bool:
        if type(value) is not list:
            return False
        self.add(qualified(space, value))
        return True

    def on_string(self, _: Node, value: Any, *, space: Space) -> bool:
        # bare, or as `depends on extension` has it
        self.add(Name(space, None, value["sval"] if isinstance(value, dict) else value))
        return True

    def on_object(self, node: Node, value: Any) -> bool:
        """The object of a comment, owner, security label or extension member."""
        kind = node.get("objtype") or node.get("objectType") or ""
        self._add_object(kind, value)
        return "List" in value and "TypeName" not in value["List"]["items"][0]

    def on_objects(self, node: Node, value: Any) -> bool:
        """The objects of a grant."""
        for item in value:
            if node.get("targtype") == "ACL_TARGET_ALL_IN_SCHEMA":
                self.add(Name(Space.SCHEMA, None, item["String"]["sval"]))
            else:
                self._add_object(node.get("objtype", ""), item)
        return False

    def on_command(self, _: Node, value: Any) -> bool:
        """A command of `alter table` that names a trigger, a rule or an index."""
        if "name" in value and value["subtype"].endswith(_SWITCHES):
            self.add(Name(Space.MEMBER, None, value["name"]), is_sure=False)
        elif "name" in value and value["subtype"] == "AT_ClusterOn":
            self.add(Name(Space.RELATION, None, value["name"]), is_sure=False)
        return False

    def on_index(self, node: Node, value: Any) -> bool:
        """The index of a constraint or of a replica identity."""
        if isinstance(value, str) and ("identity_type" in node or "contype" in node):
            self.add(Name(Space.RELATION, None, value), is_sure=False)
        return False

    def on_published(self, _: Node, value: Any) -> bool:
        """A member of a publication: a table, or all tables of a schema."""
        if "name" in value:
            self.add(Name(Space.SCHEMA, None, value["name"]))
        return False

    def on_definition(self, _: Node, value: Any) -> bool:
        """A parameter of `create type`, `operator`, `aggregate`, ...: a name of one kind or another."""
        argument = value.get("arg", {})
        if value["defname"] == "owned_by":
            self.add(qualified(Space.RELATION, argument["List"]["items"][:-1]))
        elif value["defname"] == "language" and "String" in argument:
            self.add(Name(Space.LANGUAGE, None, argument["String"]["sval"]))
            self.add(Name(Space.EXTENSION, None, argument["String"]["sval"]))
        elif value["defname"] == "schema" and "String" in argument:
            self.add(Name(Space.SCHEMA, None, argument["String"]["sval"]))
        elif value["defname"] == "schemas" and "List" in argument:
            for item in argument["List"]["items"]:
                self.add(Name(Space.SCHEMA, None, item["String"]["sval"]))
        elif value["defname"] in _SKIPPED:
            return True
        elif "TypeName" in argument:
            for space in _MIXED:
                self.add(qualified(space, argument["TypeName"]["names"]))
        elif "List" in argument:
            items = [item for item in argument["List"]["items"] if "String" in item]
            self.add(qualified(Space.COLLATION, items))
            self.add(qualified(Space.OPERATOR, items), is_sure=False)
        return False

    def _add_object(self, kind: str, value: Any) -> None:
        if "String" in value:
            space = _OBJECT_SPACES.get(kind)
            if space is not None:
                self.add(Name(space, None, value["String"].get("sval", "")))
        elif "List" in value:
            items = value["List"]["items"]
            if kind in _IN_TABLE:
                table = qualified(Space.RELATION, items[:-1])
                self.add(table)
                if kind != "OBJECT_COLUMN" and table is not None:
                    self.add(Name(Space.MEMBER, table.schema, strings(items)[-1]), is_sure=False)
            elif kind in {"OBJECT_OPCLASS", "OBJECT_OPFAMILY"}:
                self.add(qualified(Space.OPERATOR_CLASS, items[1:]))
            else:
                self.add(qualified(_OBJECT_SPACES.get(kind, Space.RELATION), items))

    def _add_literal(self, node: Any, space: Space) -> None:
        """A name in a string, which the server looks up when it reads the statement."""
        if "TypeCast" in node:
            node = node["TypeCast"].get("arg", {})
        text = node.get("A_Const", {}).get("sval", {}).get("sval")
        if text:
            self.add(literal_name(space, text.partition("(")[0]))


def _on_string(space: Space) -> Callable[[UseCollector, Node, Any], bool]:
    return lambda collector, node, value: collector.on_string(node, value, space=space)


def _on_list(space: Space) -> Callable[[UseCollector, Node, Any], bool]:
    return lambda collector, node, value: collector.on_list(node, value, space=space)


_HANDLERS: Final[dict[str, Callable[[UseCollector, Node, Any], bool]]] = {
    "AlterTableCmd": UseCollector.on_command,
    "A_Expr": UseCollector.on_operator,
    "DefElem": UseCollector.on_definition,
    "PublicationObjSpec": UseCollector.on_published,
    "TypeCast": UseCollector.on_cast,
    "ctename": UseCollector.on_cte,
    "dicts": UseCollector.on_dictionaries,
    "funcname": UseCollector.on_call,
    "indexname": UseCollector.on_index,
    "name": UseCollector.on_index,
    "names": UseCollector.on_type,
    "object": UseCollector.on_object,
    "objects": UseCollector.on_objects,
    "objname": UseCollector.on_routine,
    "operName": UseCollector.on_operator_list,
    "pktable": UseCollector.on_key,
    "relname": UseCollector.on_relation,
    "rolename": UseCollector.on_role,
    **{key: _on_list(space) for key, space in _BY_LIST.items()},
    **{key: _on_string(space) for key, space in _BY_STRING.items()},
}
