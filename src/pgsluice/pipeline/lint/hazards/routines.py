"""Functions and procedures as statements leave them: whose rights they have, and whose search_path.

A function is known by its name and the types of its inputs, for each overload has rights of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.nodes import Name, shown, split_words, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.script import Node, ScriptStatement

PATH: Final = "search_path"
CALLERS_OWN: Final = "$user"
KINDS: Final = frozenset({"OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE"})
OUTPUTS: Final = frozenset({"FUNC_PARAM_OUT", "FUNC_PARAM_TABLE"})

Types = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """Which function: `types` are those of its inputs, None where the text names none."""

    name: Name
    types: Types | None

    def __str__(self) -> str:
        return shown(self.name) if self.types is None else f"{shown(self.name)}({', '.join(self.types)})"


@dataclass(frozen=True, slots=True)
class Routine:
    """What is known of a function; None is unknown: the text that made it is not at hand."""

    is_definer: bool | None = None
    is_pinned: bool | None = None


class Routines:
    """The functions that statements make, alter, rename and drop; `last` made or altered each."""

    def __init__(self) -> None:
        self.known: dict[Key, Routine] = {}
        self.last: dict[Key, ScriptStatement] = {}

    def follow(self, statement: ScriptStatement) -> None:
        """Apply a statement."""
        kind, node = statement.kind, statement.node
        if kind == "CreateFunctionStmt":
            self.last[self._create(node)] = statement
        elif kind == "AlterFunctionStmt":
            key = self.find(node["func"])
            self.known[key] = _with(self.known.get(key, Routine()), node.get("actions", ()))
            self.last[key] = statement
        elif kind == "DropStmt" and node.get("removeType") in KINDS:
            for item in node.get("objects", ()):
                self.known.pop(self.find(item["ObjectWithArgs"]), None)
        elif kind == "RenameStmt" and node.get("renameType") == "OBJECT_SCHEMA":
            self._rename_schema(node["subname"], node["newname"])
        elif "ObjectWithArgs" in node.get("object", {}):
            self._move(node)

    def find(self, node: Node) -> Key:
        """The function that an `ObjectWithArgs` speaks of, as it is known if it is."""
        types = None if node.get("args_unspecified") else _types(node.get("objargs"))
        return self._same(Key(split_words(words(node.get("objname"))), types))

    def definers(self) -> Iterator[Key]:
        """The functions with their owner's rights."""
        return (key for key, routine in self.known.items() if routine.is_definer)

    def called(self, key: Key) -> str:
        """A function as messages name it: with its types where the name alone does not tell."""
        alike = [one for one in self.known if one.name == key.name]
        return str(key) if len(alike) > 1 else shown(key.name)

    def _create(self, node: Node) -> Key:
        inputs = [
            item["FunctionParameter"]["argType"]
            for item in node.get("parameters", ())
            if item["FunctionParameter"]["mode"] not in OUTPUTS
        ]
        key = self._same(Key(split_words(words(node["funcname"])), tuple(map(_type, inputs))))
        # the names of a body that SQL's own syntax gives (`begin atomic`) are bound when it is created
        self.known[key] = _with(Routine(False, "sql_body" in node), node.get("options", ()))
        return key

    def _same(self, key: Key) -> Key:
        """The known function that a text means, which may leave out its schema and a lone one's types."""
        if key in self.known:
            return key
        alike = [
            one
            for one in self.known
            if one.name[1] == key.name[1]
            and (one.name[0] == key.name[0] or None in (one.name[0], key.name[0]))
            and (one.types == key.types or None in (one.types, key.types))
        ]
        return alike[0] if len(alike) == 1 else key

    def _move(self, node: Node) -> None:
        """Another name or another schema."""
        old = self.find(node["object"]["ObjectWithArgs"])
        if "newname" in node or "newschema" in node:
            self._rename(old, (node.get("newschema", old.name[0]), node.get("newname", old.name[1])))

    def _rename_schema(self, old: str, new: str) -> None:
        for key in [one for one in self.known if one.name[0] == old]:
            self._rename(key, (new, key.name[1]))

    def _rename(self, old: Key, name: Name) -> None:
        new = Key(name, old.types)
        if old in self.known:
            self.known[new] = self.known.pop(old)
        if old in self.last:
            self.last[new] = self.last.pop(old)


def pins(setting: Node) -> bool:
    """Whether a `set search_path` holds no schema of the caller's."""
    if setting["kind"] == "VAR_SET_CURRENT":
        return True
    if setting["kind"] != "VAR_SET_VALUE":
        return False
    values = [item.get("A_Const", {}).get("sval", {}).get("sval", "") for item in setting.get("args", ())]
    return not any(CALLERS_OWN in value for value in values)


def _with(routine: Routine, options: list[Node]) -> Routine:
    for item in options:
        element = item.get("DefElem", {})
        if element.get("defname") == "security":
            routine = replace(routine, is_definer=bool(element["arg"]["Boolean"].get("boolval")))
        elif element.get("defname") == "set":
            setting = element["arg"]["VariableSetStmt"]
            if setting["kind"] == "VAR_RESET_ALL" or setting.get("name") == PATH:
                routine = replace(routine, is_pinned=pins(setting))
    return routine


def _types(items: list[Node] | None) -> Types:
    return tuple(_type(item.get("TypeName", {})) for item in items or ())


def _type(named: Node) -> str:
    """A type without its schema, which texts may leave out, and without its length."""
    name = (words(named.get("names")) or ("",))[-1]
    return f"{name}{'%type' if named.get('pct_type') else ''}{'[]' if named.get('arrayBounds') else ''}"
