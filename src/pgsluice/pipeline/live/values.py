"""Views over nothing but `values`, which PostgreSQL prints as a query that it reads as another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.digest import TokenKind, tokens
from pgsluice.pipeline.quoting import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.digest import Token
    from pgsluice.pipeline.sources.tree import Node

ALIAS: Final = "*VALUES*"
TAKEN_UP: Final = frozenset({"fromClause", "limitOption", "op", "targetList"})
KINDS: Final = frozenset({"CreateTableAsStmt", "ViewStmt"})


def as_values(text: str, kind: str, *, node: Node) -> str:
    """`create view v (a, b) as values (…)` for what is printed as a query of its columns; else the text.

    Args:
        text: A statement of a dump.
        kind: That of its parse tree.
        node: The tree.
    """
    names = _columns(kind, node)
    if names is None:
        return text
    code = [token for token in tokens(text) if token.kind is TokenKind.OTHER]
    words = [token.text.lower() for token in code]
    start = next(place for place, word in enumerate(words) if word == "values")
    end = _closing(words, start - 1)
    name_end = _after_name(code, words)
    columns = ", ".join(map(quote_identifier, names))
    as_word = code[words.index("as")]
    head = f"{text[:name_end]} ({columns}){text[name_end : as_word.start]}"
    rest = text[code[end + 1].start + len(code[end + 1].text) :]
    return f"{head}{as_word.text}\n {text[code[start].start : code[end].start].rstrip()}{rest}"


def _columns(kind: str, node: Node) -> Sequence[str] | None:
    """The names of a view that selects each column of one `values` in order; None for any other statement."""
    if kind not in KINDS:
        return None
    query: dict[str, Any] = node["query"].get("SelectStmt", {})
    if not query.keys() <= TAKEN_UP or len(query.get("fromClause", ())) != 1:
        return None
    source = query["fromClause"][0].get("RangeSubselect", {})
    alias = source.get("alias", {})
    values = source.get("subquery", {}).get("SelectStmt", {}).get("valuesLists")
    if alias.get("aliasname") != ALIAS or "colnames" in alias or not values:
        return None
    targets = [item["ResTarget"] for item in query["targetList"]]
    if len(targets) != len(values[0]["List"]["items"]):
        return None
    for number, target in enumerate(targets, start=1):
        fields = target["val"].get("ColumnRef", {}).get("fields", [])
        if not fields or fields[-1].get("String", {}).get("sval") != f"column{number}":
            return None
    return [target.get("name", f"column{number}") for number, target in enumerate(targets, start=1)]


def _after_name(code: Sequence[Token], words: Sequence[str]) -> int:
    """Where the view's name ends: `create [materialized] view schema.name`."""
    last = words.index("view") + 1
    while words[last + 1] == ".":
        last += 2
    return code[last].start + len(code[last].text)


def _closing(words: Sequence[str], opening: int) -> int:
    """The parenthesis that closes the one at a place."""
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if depth == 0:
            return place
    raise ValueError("a statement that parses has as many ) as (")
