"""Reading the parser's JSON: walking it, names, options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.script import Node

OFF: Final = frozenset({"false", "off", "no", "0"})

# A schema, None where the text names none, and a name.
Name = tuple[str | None, str]


def walk(value: Any) -> Iterator[tuple[str, Node]]:  # Any: JSON
    """Every node below and with a value: its kind and its content, in the order of the text."""
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(reversed(one))
        elif isinstance(one, dict):
            for key, content in one.items():
                if isinstance(content, dict) and key[:1].isupper():
                    yield key, content
            stack.extend(reversed(list(one.values())))


def relations(node: Node) -> Iterator[Node]:
    """Every relation that a statement names: `RangeVar` contents, also where the kind is left out."""
    stack: list[Any] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(reversed(one))
        elif isinstance(one, dict):
            if "relname" in one and "relpersistence" in one:
                yield one
            stack.extend(reversed(list(one.values())))


def relation_name(relation: Node) -> Name:
    """Schema and name of a relation's node."""
    return relation.get("schemaname"), relation["relname"]


def words(items: list[Node] | None) -> tuple[str, ...]:
    """The values of String nodes."""
    return tuple(item["String"].get("sval", "") for item in items or () if "String" in item)


def split_words(parts: tuple[str, ...]) -> Name:
    """A name from its parts."""
    return (parts[-2] if len(parts) > 1 else None, parts[-1])


def shown(name: Name) -> str:
    """A name as messages show it."""
    return ".".join(part for part in name if part is not None)


def dropped(node: Node) -> Iterator[tuple[str, ...]]:
    """The names that a `drop` takes, each as its parts."""
    for item in node.get("objects", ()):
        if "List" in item:
            yield words(item["List"].get("items"))
        elif "String" in item:
            yield (item["String"].get("sval", ""),)
        elif "ObjectWithArgs" in item:
            yield words(item["ObjectWithArgs"].get("objname"))
        elif "TypeName" in item:
            yield words(item["TypeName"].get("names"))


def option(options: list[Node] | None, name: str) -> bool | None:
    """A true-or-false option in parentheses; None when it is not among them."""
    for item in options or ():
        element = item.get("DefElem", {})
        if element.get("defname") == name:
            value = element.get("arg")
            return True if value is None else _word(value).lower() not in OFF
    return None


def has_option(options: list[Node] | None, name: str) -> bool:
    """Whether an option of that name is there at all, whatever its value."""
    return any(item.get("DefElem", {}).get("defname") == name for item in options or ())


def commands(node: Node) -> Iterator[Node]:
    """The parts of an `alter table`."""
    for item in node.get("cmds", ()):
        if "AlterTableCmd" in item:
            yield item["AlterTableCmd"]


def _word(value: Node) -> str:
    if "String" in value:
        return str(value["String"].get("sval", ""))
    if "TypeName" in value:
        return words(value["TypeName"].get("names"))[-1]
    if "Integer" in value:
        return str(value["Integer"].get("ival", 0))
    if "Boolean" in value:
        return "true" if value["Boolean"].get("boolval") else "false"
    return ""
