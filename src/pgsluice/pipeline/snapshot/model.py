"""What a snapshot is made of: addresses, objects with facets, and who needs whom."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgsluice.pipeline.secret_options import is_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

HIDDEN: Final = "***"
# The facets with options of foreign data, which may be secret.
OPTIONS: Final = frozenset(("fdw_options", "options", "server_options"))
# A facet's value as JSON gives it: text, number, boolean, list or object.
Value = Any


class Address(NamedTuple):
    """The name of one object: its kind and the path of raw names that leads to it."""

    kind: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        if self.kind in ("function", "aggregate"):
            return f"{self.kind} {self.path[0]}.{self.path[1]}({self.path[2]})"
        if self.kind == "cast":
            return f"cast ({self.path[0]} as {self.path[1]})"
        return f"{self.kind} {'.'.join(part for part in self.path if part)}"


@dataclass(frozen=True, slots=True)
class Object:
    """One catalog object.

    `facets` are compared; a facet at its default is left out. `context` helps to write SQL and is not
    compared. `needs` are the objects that must exist for it; `hints` are names that its body mentions.
    """

    address: Address
    facets: Mapping[str, Value]
    context: Mapping[str, Value] = field(default_factory=dict)
    needs: frozenset[Address] = frozenset()
    hints: frozenset[Address] = frozenset()

    @property
    def kind(self) -> str:
        return self.address.kind

    @property
    def path(self) -> tuple[str, ...]:
        return self.address.path

    def get(self, facet: str) -> Value:
        """The facet's or the context's value, None where it is at its default."""
        return self.facets[facet] if facet in self.facets else self.context.get(facet)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The managed part of one database.

    `version_num` is the server's (`150018`); `implied_grants` maps a kind's letter of `acldefault` to what
    PostgreSQL grants by itself; `runner` is the role that runs the migrations, `@runner` in facets.
    `printed` is what the server printed of each object that was read, ignored ones included.
    """

    version_num: int
    objects: Mapping[Address, Object]
    implied_grants: Mapping[str, tuple[Value, ...]]
    ignored: tuple[str, ...] = ()
    runner: str = ""
    printed: Mapping[Address, str] = field(default_factory=dict, repr=False, compare=False)

    def digest(self) -> str:
        """A fingerprint of everything compared, the same in any order of reading."""
        lines = sorted(
            json.dumps([*address, obj.facets], sort_keys=True) for address, obj in self.objects.items()
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Difference:
    """One facet that differs; a whole object that is missing has facet None."""

    address: Address
    facet: str | None
    before: Value
    after: Value

    def __str__(self) -> str:
        if self.facet is None:
            return f"{self.address}: {'missing' if self.before else 'not expected'}"
        before, after = self.shown_values
        return f"{self.address}: {self.facet} is {_shown(after)}, expected {_shown(before)}"

    @property
    def shown_values(self) -> tuple[Value, Value]:
        """Both values as they may be shown: options of user mappings are hidden and all secret ones."""
        if self.facet not in OPTIONS:
            return self.before, self.after
        everything = self.address.kind == "user mapping"
        return _hidden(self.before, everything=everything), _hidden(self.after, everything=everything)


def _hidden(options: Value, *, everything: bool) -> Value:
    if not isinstance(options, dict):
        return options
    return {
        name: HIDDEN if everything or is_secret(name, str(value)) else value
        for name, value in options.items()
    }


def _shown(value: Value) -> str:
    text = "the default" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:297] + "..."


def compare(expected: Snapshot, actual: Snapshot) -> tuple[Difference, ...]:
    """Every facet of every object in which `actual` differs from `expected`, in address order."""
    found: list[Difference] = []
    for address in sorted(_differing(expected.objects, actual.objects)):
        want, have = expected.objects.get(address), actual.objects.get(address)
        if want is None or have is None:
            found.append(Difference(address, None, want is not None, have is not None))
            continue
        found.extend(
            Difference(address, facet, want.facets.get(facet), have.facets.get(facet))
            for facet in sorted(want.facets.keys() | have.facets.keys())
            if want.facets.get(facet) != have.facets.get(facet)
        )
    return tuple(found)


def _differing(expected: Mapping[Address, Object], actual: Mapping[Address, Object]) -> set[Address]:
    """The addresses on one side alone, and those whose facets differ."""
    return (expected.keys() ^ actual.keys()) | {
        address
        for address in expected.keys() & actual.keys()
        if expected[address] is not actual[address] and expected[address].facets != actual[address].facets
    }
