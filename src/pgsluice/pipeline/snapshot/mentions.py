"""Names that string bodies mention: `pg_depend` does not know them, creation order must."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgsluice.pipeline.snapshot.model import Address, Object

WORD: Final = re.compile(r'"(?:[^"]|"")+"|[^\W\d][\w$]*')
MENTIONABLE: Final = frozenset(
    {
        "function",
        "aggregate",
        "table",
        "view",
        "materialized view",
        "sequence",
        "enum",
        "composite",
        "domain",
        "range",
    }
)


def mentioned(objects: Mapping[Address, Object]) -> dict[Address, Object]:
    """The functions with a string body, each with `hints`: every object whose name stands in the body.

    A hint only orders creation and may be wrong; one that closes a cycle is given up.
    """
    by_name: dict[str, list[Address]] = defaultdict(list)
    for address in objects:
        if address.kind in MENTIONABLE:
            by_name[address.path[1]].append(address)
    found: dict[Address, Object] = {}
    for address, obj in objects.items():
        body = obj.context.get("body")
        if body:
            words = {_folded(word) for word in WORD.findall(body)}
            hints = {target for word in words & by_name.keys() for target in by_name[word]} - {address}
            found[address] = replace(obj, hints=frozenset(hints))
    return found


def _folded(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()
