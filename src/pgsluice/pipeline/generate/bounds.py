"""Partition bounds as text: whether two of one tree can have a row in common."""

from __future__ import annotations

import re
from typing import Final

RANGE: Final = re.compile(r"FOR VALUES FROM \(([^,]*)\) TO \(([^,]*)\)")
LIST: Final = re.compile(r"FOR VALUES IN \((.*)\)")
ISO: Final = re.compile(r"'[-0-9: +.]*'")
LOWEST, HIGHEST = "MINVALUE", "MAXVALUE"


def may_overlap(one: str, other: str) -> bool:
    """False only where the texts show that no row fits both: lists without a common value, ranges apart."""
    lists = LIST.fullmatch(one), LIST.fullmatch(other)
    if lists[0] and lists[1]:
        return not _members(lists[0][1]).isdisjoint(_members(lists[1][1]))
    ranges = RANGE.fullmatch(one), RANGE.fullmatch(other)
    if ranges[0] and ranges[1]:
        (low, high), (other_low, other_high) = ranges[0].groups(), ranges[1].groups()
        return not (_reaches(other_low, high) or _reaches(low, other_high))
    return True


def _members(text: str) -> set[str]:
    return set(re.findall(r"'(?:[^']|'')*'|[^,\s][^,]*", text))


def _reaches(low: str, high: str) -> bool:
    """Whether the range that starts at `low` surely starts at or behind `high`."""
    if low == HIGHEST or high == LOWEST:
        return True
    if low == LOWEST or high == HIGHEST:
        return False
    if low == high:
        return True
    if ISO.fullmatch(low) and ISO.fullmatch(high):
        return _is_later(low.strip("'"), high.strip("'"))
    return False


def _is_later(low: str, high: str) -> bool:
    try:
        return float(low) >= float(high)
    except ValueError:
        same_form = re.sub(r"\d", "0", low) == re.sub(r"\d", "0", high)
        return same_form and low[:1].isdigit() and low >= high
