"""Values to try for a column: from what its type takes, and from the constants in its checks and bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONSTANTS: Final = re.compile(r"'((?:[^']|'')*)'|(?<![\w.$'])(-?\d+(?:\.\d+)?)(?![\w.'])")
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
LONGEST_TEXT: Final = 256
MOST_LABELS: Final = 8

BY_TYPE: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("true", "false"),
    "int2": ("1", "0", "2", "10", "100", "-1"),
    "int4": ("1", "0", "2", "10", "100", "1000", "-1"),
    "int8": ("1", "0", "2", "10", "100", "1000", "-1"),
    "float4": ("1", "0", "0.5", "10", "-1"),
    "float8": ("1", "0", "0.5", "10", "-1"),
    "numeric": ("1", "0", "0.5", "10", "100", "-1"),
    "money": ("1", "0"),
    "oid": ("1",),
    "char": ("x",),
    "name": ("x",),
    "uuid": ("00000000-0000-4000-8000-000000000001",),
    "json": ("{}", "[]", '"x"', "1"),
    "jsonb": ("{}", "[]", '"x"', "1"),
    "jsonpath": ("$",),
    "bytea": ("\\x01", "\\x"),
    "date": ("2000-01-01", "2100-01-01"),
    "timestamp": ("2000-01-01 00:00:00", "2100-01-01 00:00:00"),
    "timestamptz": ("2000-01-01 00:00:00+00", "2100-01-01 00:00:00+00"),
    "time": ("12:00:00",),
    "timetz": ("12:00:00+00",),
    "interval": ("1 day", "0", "1 second"),
    "inet": ("127.0.0.1",),
    "cidr": ("127.0.0.0/8",),
    "macaddr": ("08:00:2b:01:02:03",),
    "macaddr8": ("08:00:2b:01:02:03:04:05",),
    "varbit": ("1", "0"),
    "tsvector": ("x",),
    "tsquery": ("x",),
    "xml": ("<x/>",),
    "point": ("(0,0)",),
    "line": ("{1,0,0}",),
    "lseg": ("[(0,0),(1,1)]",),
    "box": ("(1,1),(0,0)",),
    "path": ("[(0,0),(1,1)]",),
    "polygon": ("((0,0),(1,1),(1,0))",),
    "circle": ("<(0,0),1>",),
    "pg_lsn": ("0/1",),
    "regclass": ("pg_catalog.pg_class",),
    "regtype": ("pg_catalog.int4",),
    "regproc": ("pg_catalog.now",),
    "regprocedure": ("pg_catalog.now()",),
    "regnamespace": ("pg_catalog",),
}
TEXTS: Final = (
    "x",
    "X",
    "1",
    "xx",
    "xxx",
    "xxxxxxxx",
    "",
    "x@example.com",
    "https://example.com",
    "en",
    "EUR",
    "+15550100",
    "2000-01-01",
    "00000000-0000-4000-8000-000000000001",
    "x" * 32,
    "x" * 64,
)
UNKNOWN: Final = ("1", "x", "{}", "()", "0,0", "x=>1", "<x/>")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type below its domains: `kind` and `category` are `typtype` and `typcategory`.

    `length` is the type modifier, `size` the number of a composite's attributes.
    """

    base: str
    kind: str
    category: str
    length: int
    size: int
    labels: tuple[str, ...]


def samples_for(column: ColumnType, definitions: Sequence[str]) -> tuple[str, ...]:
    """Texts to cast to the type, the likeliest first; `definitions` are checks and bounds to learn from."""
    constants = [constant for definition in definitions for constant in _constants(definition)]
    return tuple(dict.fromkeys((*_learned(column, constants), *_usual(column))))


def _usual(column: ColumnType) -> tuple[str, ...]:
    if column.kind == "e":
        return column.labels[:MOST_LABELS]
    if column.kind == "r":
        return ("empty",)
    if column.kind == "m":
        return ("{}",)
    if column.kind == "c":
        return (f"({',' * (column.size - 1)})",)
    if column.category == "A":
        elements = (*column.labels[:1], *BY_TYPE.get(column.base.removeprefix("_"), ("1", "x"))[:1])
        return (*(f'{{"{_escaped(element)}"}}' for element in elements[:1]), "{}")
    if column.base == "bit":
        return ("0" * max(column.length, 1),)
    if column.category == "S":
        return BY_TYPE.get(column.base, TEXTS)
    return BY_TYPE.get(column.base, UNKNOWN)


def _learned(column: ColumnType, constants: Sequence[str]) -> Iterator[str]:
    """Constants of the checks in the shape that the type needs."""
    for constant in constants:
        if NUMBER.fullmatch(constant) and column.category == "N":
            step = int(float(constant))
            yield from (constant, str(step + 1), str(step - 1))
        elif NUMBER.fullmatch(constant) and column.category == "S":
            count = int(float(constant))
            yield from ("x" * length for length in (count, count + 1) if 0 < length <= LONGEST_TEXT)
            yield constant
        elif column.category == "A":
            yield f'{{"{_escaped(constant)}"}}'
        else:
            yield from dict.fromkeys((constant, constant.strip("%^$")))


def _constants(definition: str) -> Iterator[str]:
    for text, number in CONSTANTS.findall(definition):
        yield number or text.replace("''", "'")


def _escaped(element: str) -> str:
    return element.replace("\\", "\\\\").replace('"', '\\"')
