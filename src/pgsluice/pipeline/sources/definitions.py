"""What a statement defines: its objects, and the names that PostgreSQL makes up along with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.sources.names import Definition, Name, Space, qualified, relation
from pgsluice.pipeline.sources.tree import strings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.sources.tree import Node

_SERIAL: Final = frozenset(("serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"))
_INDEXED: Final = {"CONSTR_PRIMARY": "pkey", "CONSTR_UNIQUE": "key", "CONSTR_EXCLUSION": "excl"}
_NAME_BYTES: Final = 63
_DEFINED: Final = {
    "OBJECT_TYPE": (Space.TYPE, "type"),
    "OBJECT_COLLATION": (Space.COLLATION, "collation"),
    "OBJECT_TSCONFIGURATION": (Space.TEXT_SEARCH, "text search configuration"),
    "OBJECT_TSDICTIONARY": (Space.TEXT_SEARCH, "text search dictionary"),
    "OBJECT_TSPARSER": (Space.TEXT_SEARCH, "text search parser"),
    "OBJECT_TSTEMPLATE": (Space.TEXT_SEARCH, "text search template"),
}
# Statements that name what they define with a bare string: its key, name space and word.
_BARE: Final = {
    "CreateExtensionStmt": ("extname", Space.EXTENSION, "extension"),
    "CreateFdwStmt": ("fdwname", Space.WRAPPER, "foreign data wrapper"),
    "CreateForeignServerStmt": ("servername", Space.SERVER, "server"),
    "CreatePLangStmt": ("plname", Space.LANGUAGE, "language"),
    "CreateAmStmt": ("amname", Space.ACCESS_METHOD, "access method"),
    "CreatePublicationStmt": ("pubname", Space.PUBLICATION, "publication"),
    "CreateSubscriptionStmt": ("subname", Space.MEMBER, "subscription"),
    "CreateEventTrigStmt": ("trigname", Space.MEMBER, "event trigger"),
}
# Statements that name what they define with a list of strings.
_LISTED: Final = {
    "CreateEnumStmt": ("typeName", Space.TYPE, "type"),
    "CreateDomainStmt": ("domainname", Space.TYPE, "domain"),
    "CreateConversionStmt": ("conversion_name", Space.MEMBER, "conversion"),
}
# Statements that define what lives in a table: the key of its name, of the table, and the word.
_IN_TABLE: Final = {
    "CreateTrigStmt": ("trigname", "relation", "trigger"),
    "CreatePolicyStmt": ("policy_name", "table", "policy"),
    "RuleStmt": ("rulename", "relation", "rule"),
}


def find_definitions(kind: str, node: Node) -> tuple[Definition, ...]:
    """The objects that a statement creates; the first is the one that it is about."""
    may_exist = bool(node.get("replace") or node.get("if_not_exists"))
    if kind in _BARE:
        key, space, word = _BARE[kind]
        return (Definition(Name(space, None, node[key]), word, may_exist=may_exist),)
    if kind in _IN_TABLE:
        key, table_key, word = _IN_TABLE[kind]
        table = node[table_key]
        name = Name(Space.MEMBER, table.get("schemaname"), node[key])
        return (Definition(name, word, may_exist=may_exist, table=table["relname"]),)
    if kind in _LISTED:
        key, space, word = _LISTED[kind]
        return _named(space, node[key], word=word)
    finder = _FINDERS.get(kind)
    return () if finder is None else tuple(finder(node))


def implied_names(kind: str, node: Node) -> tuple[Name, ...]:
    """Names that come along: sequences of columns, indexes of keys, constraints; and a range's own."""
    if kind == "CreateRangeStmt":
        return tuple(_range_names(node))
    if kind == "CreateForeignTableStmt":
        node = node["base"]
    elif kind not in {"CreateStmt", "AlterTableStmt"}:
        return ()
    schema, table = node["relation"].get("schemaname"), node["relation"]["relname"]
    names = [name for element in node.get("tableElts", ()) for name in _implied_by(table, element)]
    for item in node.get("cmds", ()):
        command = item["AlterTableCmd"]
        names += _implied_by(table, command.get("def", {}))
        if command["subtype"] == "AT_AddIdentity":
            names.append(_identity_sequence(table, command))
    constraints = [
        item["AlterTableCmd"].get("def", {}).get("Constraint", {}).get("conname")
        for item in node.get("cmds", ())
    ]
    return (
        *(Name(Space.RELATION, schema, name) for name in names),
        *(Name(Space.MEMBER, schema, name) for name in constraints if name is not None),
    )


def automatic_name(table: str, columns: str, *, suffix: str) -> str:
    """The name that PostgreSQL gives to an object made for a column: `table_columns_suffix`, cut to fit."""
    first, second = table.encode(), columns.encode()
    room = _NAME_BYTES - len(suffix) - 1 - (1 if second else 0)
    sizes = [len(first), len(second)]
    while sum(sizes) > room:
        sizes[0 if sizes[0] > sizes[1] else 1] -= 1
    cut = (first[: sizes[0]], second[: sizes[1]])
    return "_".join([*(part.decode(errors="ignore") for part in cut if part), suffix])


def _named(space: Space, items: list[Node], *, word: str) -> tuple[Definition, ...]:
    name = qualified(space, items)
    return () if name is None else (Definition(name, word),)


def _relation(node: Node, *, word: str, may_exist: bool = False) -> Iterator[Definition]:
    """A relation that is a type as well."""
    name = relation(node)
    yield Definition(name, word, may_exist=may_exist)
    yield Definition(Name(Space.TYPE, name.schema, name.name), word, may_exist=may_exist)


def _table(node: Node) -> Iterator[Definition]:
    yield from _relation(node["relation"], word="table", may_exist=bool(node.get("if_not_exists")))


def _foreign_table(node: Node) -> Iterator[Definition]:
    base = node["base"]
    yield from _relation(base["relation"], word="foreign table", may_exist=bool(base.get("if_not_exists")))


def _view(node: Node) -> Iterator[Definition]:
    yield from _relation(node["view"], word="view", may_exist=bool(node.get("replace")))


def _table_as(node: Node) -> Iterator[Definition]:
    word = "materialized view" if node.get("objtype") == "OBJECT_MATVIEW" else "table"
    yield from _relation(node["into"]["rel"], word=word, may_exist=bool(node.get("if_not_exists")))


def _select_into(node: Node) -> Iterator[Definition]:
    if "intoClause" in node:
        yield from _relation(node["intoClause"]["rel"], word="table")


def _sequence(node: Node) -> Iterator[Definition]:
    yield Definition(relation(node["sequence"]), "sequence", may_exist=bool(node.get("if_not_exists")))


def _index(node: Node) -> Iterator[Definition]:
    if "idxname" in node:
        name = Name(Space.RELATION, node["relation"].get("schemaname"), node["idxname"])
        yield Definition(name, "index", may_exist=bool(node.get("if_not_exists")))


def _composite(node: Node) -> Iterator[Definition]:
    yield from _relation(node["typevar"], word="type")


def _range(node: Node) -> Iterator[Definition]:
    yield from _named(Space.TYPE, node["typeName"], word="type")


def _range_names(node: Node) -> Iterator[Name]:
    """A range's constructors, and its multirange with those of its own."""
    name = qualified(Space.TYPE, node["typeName"])
    if name is None:
        return
    multirange = None
    for parameter in node.get("params", ()):
        element = parameter["DefElem"]
        if element["defname"] == "multirange_type_name":
            multirange = qualified(Space.TYPE, element["arg"]["TypeName"]["names"])
    if multirange is None:
        before, found, after = name.name.partition("range")
        own = f"{before}multirange{after}" if found else f"{name.name}_multirange"
        multirange = Name(Space.TYPE, name.schema, own)
    yield multirange
    yield name._replace(space=Space.ROUTINE)
    yield multirange._replace(space=Space.ROUTINE)


def _function(node: Node) -> Iterator[Definition]:
    name = qualified(Space.ROUTINE, node["funcname"])
    if name is None:
        return
    parameters = [item["FunctionParameter"] for item in node.get("parameters", ())]
    inputs = [item for item in parameters if item.get("mode") not in {"FUNC_PARAM_OUT", "FUNC_PARAM_TABLE"}]
    word = "procedure" if node.get("is_procedure") else "function"
    needed = sum(1 for item in inputs if "defexpr" not in item)
    most: float = len(parameters) if word == "procedure" else len(inputs)
    if any(item.get("mode") == "FUNC_PARAM_VARIADIC" for item in inputs):
        needed, most = max(needed - 1, 0), float("inf")
    signature = _signature([item["argType"] for item in inputs])
    yield Definition(name, word, signature, (needed, most), bool(node.get("replace")))


def _signature(types: list[Node]) -> str:
    return f"({', '.join(_type_text(item) for item in types)})"


def _type_text(node: Node) -> str:
    parts = strings(node["names"])
    if parts[0] == "pg_catalog":
        parts = parts[1:]
    return ".".join(parts) + "[]" * len(node.get("arrayBounds", ()))


def _define(node: Node) -> Iterator[Definition]:
    kind, may_exist = node["kind"], bool(node.get("replace") or node.get("if_not_exists"))
    if kind == "OBJECT_AGGREGATE":
        yield from _aggregate(node, may_exist=may_exist)
    elif kind == "OBJECT_OPERATOR":
        name = qualified(Space.OPERATOR, node["defnames"])
        sides = {
            item["DefElem"]["defname"]: _type_text(item["DefElem"]["arg"]["TypeName"])
            for item in node["definition"]
            if item["DefElem"]["defname"] in {"leftarg", "rightarg"}
            and "TypeName" in item["DefElem"].get("arg", {})
        }
        if name is not None:
            signature = f"({sides.get('leftarg', 'none')}, {sides.get('rightarg', 'none')})"
            yield Definition(name, "operator", signature)
    elif kind in _DEFINED:
        space, word = _DEFINED[kind]
        name = qualified(space, node["defnames"])
        # a type that is named alone is a shell, to be filled by a second definition
        is_shell = kind == "OBJECT_TYPE" and not node.get("definition")
        if name is not None:
            yield Definition(name, word, " (shell)" if is_shell else "", may_exist=may_exist)


def _aggregate(node: Node, *, may_exist: bool) -> Iterator[Definition]:
    name = qualified(Space.ROUTINE, node["defnames"])
    if name is None:
        return
    arguments: list[Any] = node.get("args", [])
    items = arguments[0].get("List", {}).get("items", []) if arguments else []
    types = [item["FunctionParameter"]["argType"] for item in items]
    yield Definition(name, "aggregate", _signature(types), None, may_exist)


def _operator_class(node: Node) -> Iterator[Definition]:
    key = "opclassname" if "opclassname" in node else "opfamilyname"
    word = "operator class" if key == "opclassname" else "operator family"
    name = qualified(Space.OPERATOR_CLASS, node[key])
    if name is not None:
        yield Definition(name, word, f" using {node['amname']}")


def _statistics(node: Node) -> Iterator[Definition]:
    if "defnames" in node:
        yield from _named(Space.MEMBER, node["defnames"], word="statistics")


def _cast(node: Node) -> Iterator[Definition]:
    text = f"({_type_text(node['sourcetype'])} as {_type_text(node['targettype'])})"
    yield Definition(Name(Space.MEMBER, None, text), "cast")


def _schema(node: Node) -> Iterator[Definition]:
    name = node.get("schemaname") or node.get("authrole", {}).get("rolename")
    if name is None:
        return
    may_exist = bool(node.get("if_not_exists"))
    yield Definition(Name(Space.SCHEMA, None, name), "schema", may_exist=may_exist)
    for element in node.get("schemaElts", ()):
        ((kind, inner),) = element.items()
        for definition in find_definitions(kind, inner):
            own = definition.name
            yield definition._replace(name=own if own.schema is not None else own._replace(schema=name))


def _implied_by(table: str, element: Node) -> Iterator[str]:
    if "Constraint" in element:
        yield from _index_name(table, element["Constraint"])
    elif "ColumnDef" in element:
        column = element["ColumnDef"]
        constraints = [item["Constraint"] for item in column.get("constraints", ()) if "Constraint" in item]
        is_identity = any(item["contype"] == "CONSTR_IDENTITY" for item in constraints)
        type_name = strings(column.get("typeName", {}).get("names", []))
        if is_identity or (type_name and type_name[-1] in _SERIAL):
            yield automatic_name(table, column["colname"], suffix="seq")
        for constraint in constraints:
            yield from _index_name(table, constraint, column=column["colname"])


def _identity_sequence(table: str, command: Node) -> str:
    """The sequence that `alter column add generated as identity` makes; pg_dump gives its name."""
    for option in command["def"]["Constraint"].get("options", ()):
        if option["DefElem"]["defname"] == "sequence_name":
            return strings(option["DefElem"]["arg"]["List"]["items"])[-1]
    return automatic_name(table, command["name"], suffix="seq")


def _index_name(table: str, constraint: Node, *, column: str | None = None) -> Iterator[str]:
    suffix = _INDEXED.get(constraint["contype"])
    if suffix is None or "indexname" in constraint:
        return
    if "conname" in constraint:
        yield constraint["conname"]
    elif suffix == "pkey":
        yield automatic_name(table, "", suffix=suffix)
    else:
        columns = [column] if column is not None else strings(constraint.get("keys", []))
        yield automatic_name(table, "_".join(columns), suffix=suffix)


_FINDERS: Final[dict[str, Callable[[Node], Iterator[Definition]]]] = {
    "CompositeTypeStmt": _composite,
    "CreateCastStmt": _cast,
    "CreateForeignTableStmt": _foreign_table,
    "CreateFunctionStmt": _function,
    "CreateOpClassStmt": _operator_class,
    "CreateOpFamilyStmt": _operator_class,
    "CreateRangeStmt": _range,
    "CreateSchemaStmt": _schema,
    "CreateSeqStmt": _sequence,
    "CreateStatsStmt": _statistics,
    "CreateStmt": _table,
    "CreateTableAsStmt": _table_as,
    "DefineStmt": _define,
    "IndexStmt": _index,
    "SelectStmt": _select_into,
    "ViewStmt": _view,
}
