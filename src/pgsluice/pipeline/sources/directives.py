"""`-- pgsluice: renamed from ...` hints: what each stands beside, and which object that renames.

A hint stands on the line above a statement or an element of one (a column, a constraint, an attribute, an
enum's label), or at the end of its line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pglast.parser import parse_sql_json

from pgsluice.errors import InputError
from pgsluice.pipeline.digest import Token, TokenKind, tokens
from pgsluice.pipeline.sources.model import Rename, SourceFile
from pgsluice.pipeline.sources.tree import Tree, read_trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgsluice.pipeline.sources.catalog import Entry

_MARK: Final = "pgsluice:"
_RENAMED: Final = re.compile(
    r"""-- pgsluice: renamed\s+from\s+(?P<name>"(?:[^"]|"")+"|'(?:[^']|'')*'|[^\W\d][\w$]*)\Z"""
)
_ELEMENT_LISTS: Final = {"CreateStmt": "tableElts", "CompositeTypeStmt": "coldeflist"}


class _Part(NamedTuple):
    """Something in a statement that can be renamed on its own; `start` counts characters of the file."""

    start: int
    kind: str
    name: str


def find_renames(file: SourceFile, entries: Sequence[Entry]) -> tuple[Rename, ...]:
    """The rename hints of a file.

    Args:
        file: The file.
        entries: Its statements, in order.

    Raises:
        InputError: A directive that is none, or one that stands beside nothing that can be renamed.
    """
    if _MARK not in file.text:
        return ()
    code = list(tokens(file.text))
    return tuple(
        _read(file, entries, code=code, number=number)
        for number, token in enumerate(code)
        if token.kind is TokenKind.DIRECTIVE
    )


def _read(file: SourceFile, entries: Sequence[Entry], *, code: list[Token], number: int) -> Rename:
    token = code[number]
    match = _RENAMED.match(token.text)
    if match is None:
        raise InputError(
            f"unknown directive: {token.text}",
            location=file.location(token.start),
            hint="-- pgsluice: renamed from old_name, or -- pgsluice: allow rule-of-lint",
        )
    before = next((item for item in reversed(code[:number]) if item.kind is TokenKind.OTHER), None)
    is_behind = before is not None and "\n" not in file.text[before.start : token.start]
    rename = _attach(file, entries, token, old=_unquote(match["name"]), is_behind=is_behind)
    if rename is None:
        raise InputError(
            "the rename hint stands beside nothing that has a name",
            location=file.location(token.start),
            hint="put it on the line above the renamed object, or at the end of the renamed column's line",
        )
    return rename


def _attach(
    file: SourceFile, entries: Sequence[Entry], token: Token, *, old: str, is_behind: bool
) -> Rename | None:
    around = next((entry for entry in entries if entry.start < token.start < entry.end), None)
    location = file.location(token.start)
    if around is not None:
        parts = list(_parts(around))
        if is_behind:
            beside = [part for part in parts if part.start < token.start][-1:]
        else:
            beside = [part for part in parts if part.start > token.start][:1]
        owner = around.facts.definitions[:1]
        for part, definition in zip(beside, owner, strict=False):
            name = definition.name
            return Rename(part.kind, name.schema, name.name, old, part.name, location)
        return None
    if is_behind:
        entry = next((entry for entry in reversed(entries) if entry.end <= token.start), None)
    else:
        entry = next((entry for entry in entries if entry.start > token.start), None)
    if entry is None or not entry.facts.definitions:
        return None
    definition = entry.facts.definitions[0]
    name = definition.name
    return Rename(definition.word, name.schema, definition.table, old, name.name, location)


def _parts(entry: Entry) -> Iterator[_Part]:
    tree = next(read_trees(parse_sql_json(entry.text)))
    data = entry.text.encode()
    if tree.kind == "CreateEnumStmt":
        yield from _labels(entry, tree)
    for element in tree.node.get(_ELEMENT_LISTS.get(tree.kind, ""), ()):
        if "ColumnDef" in element:
            node = element["ColumnDef"]
            kind, name = "column" if tree.kind == "CreateStmt" else "attribute", node["colname"]
        elif "conname" in element.get("Constraint", {}):
            node = element["Constraint"]
            kind, name = "constraint", node["conname"]
        else:
            continue
        yield _Part(entry.start + len(data[: node["location"]].decode()), kind, name)


def _labels(entry: Entry, tree: Tree) -> Iterator[_Part]:
    """An enum's labels: the parser does not say where they are, but they are the only strings."""
    code = (token for token in tokens(entry.text) if token.kind is TokenKind.OTHER)
    found = [token for token in code if token.text.endswith("'")]
    for token, value in zip(found, tree.node.get("vals", ()), strict=False):
        yield _Part(entry.start + token.start, "label", value["String"].get("sval", ""))


def _unquote(text: str) -> str:
    if text[0] in "\"'":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text.lower()
