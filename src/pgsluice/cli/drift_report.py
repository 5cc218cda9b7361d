"""How drift reads: for a terminal as text, for a machine as JSON."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgsluice.pipeline.live.drift import Drift
    from pgsluice.pipeline.snapshot import Difference

MOST_SHOWN: Final = 200
NAMES_SHOWN: Final = 4
OTHERS_SHOWN: Final = 2
DIFF_LINES: Final = 40
SHORT: Final = 80


def drift_json(found: Drift) -> dict[str, object]:
    """Drift as JSON values; every difference is listed."""
    return {
        "target": found.target,
        "database": found.place,
        "server": found.server,
        "last_migration": found.last,
        "runner": found.runner,
        "drift": bool(found.differences),
        "differences": [difference_json(one) for one in found.differences],
        "ignored": list(found.ignored),
        "not_managed": {one.holder or "no schema": list(one.names) for one in found.outside},
        "notes": list(found.notes),
    }


def difference_json(difference: Difference) -> dict[str, object]:
    """One difference as JSON values; `change` is `missing`, `not expected` or `different`."""
    address = difference.address
    place: dict[str, object] = {"object": str(address), "kind": address.kind, "name": list(address.path)}
    if difference.facet is None:
        return {**place, "change": "missing" if difference.before else "not expected"}
    before, after = difference.shown_values
    return {**place, "change": "different", "facet": difference.facet, "expected": before, "found": after}


def drift_text(found: Drift) -> str:
    """Drift as text: the differences, then what was left out, then notes."""
    lines = list(difference_lines(found.shown))
    if not lines:
        upto = f" up to {found.last}" if found.last else ""
        lines = [f"no drift: {found.place} is what the migrations of {found.target}{upto} make"]
    lines += _left_out("ignored", found.ignored) if found.ignored else []
    for outside in found.outside:
        names = [_without_arguments(name) for name in outside.names[:OTHERS_SHOWN]]
        lines += _left_out(f"not compared, {outside.holder or 'no schema'}", names, of=len(outside.names))
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join((*lines, f"compared on {found.server}"))


def difference_lines(shown: Sequence[tuple[Difference, int]]) -> Iterator[str]:
    """The differences, one object after the other; long values as a short diff."""
    for difference, parts in shown[:MOST_SHOWN]:
        if difference.facet is None:
            what = "missing" if difference.before else "not expected"
            yield f"{difference.address}: {what}" + (f", with {parts} of its parts" if parts else "")
        else:
            yield from _facet_lines(difference)
    if len(shown) > MOST_SHOWN:
        yield f"... {len(shown) - MOST_SHOWN} more differences"


def _facet_lines(difference: Difference) -> Iterator[str]:
    before, after = (_spelled(value) for value in difference.shown_values)
    head = f"{difference.address}: {difference.facet}"
    if len(before) <= SHORT and len(after) <= SHORT and "\n" not in before + after:
        yield f"{head} is {after}, expected {before}"
        return
    yield f"{head} differs"
    lines = list(unified_diff(_lines(before), _lines(after), "expected", "found", n=2, lineterm=""))
    yield from (f"  {line}" for line in lines[:DIFF_LINES])
    if len(lines) > DIFF_LINES:
        yield f"  ... {len(lines) - DIFF_LINES} more lines"


def _spelled(value: Any) -> str:
    if value is None:
        return "the default"
    if isinstance(value, str):
        return value if "\n" in value else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _lines(text: str) -> list[str]:
    """A value in lines; a long list or object one entry a line."""
    if text[:1] in "[{":
        value = json.loads(text)
        entries: Iterable[Any] = value.items() if isinstance(value, dict) else value
        return [json.dumps(entry, ensure_ascii=False) for entry in entries]
    return text.splitlines()


def _left_out(what: str, names: Sequence[str], *, of: int | None = None) -> Iterator[str]:
    """One line on what was left out: how many, and the first names."""
    count = len(names) if of is None else of
    first = names[:NAMES_SHOWN]
    more = count - len(first)
    listed = ", ".join((*first, *((f"{more} more",) if more > 0 else ())))
    yield f"{what}: {count} {'object' if count == 1 else 'objects'} ({listed})"


def _without_arguments(name: str) -> str:
    """A function by its name alone: the arguments of extensions' own can be a line long."""
    head, opening, _ = name.partition("(")
    return f"{head}()" if opening else head
