"""Which statement defines a name: the files' own catalog, looked up as the server would, as far as files say.

A file need not say in which schema an object is, so a look-up has two answers: what is found, and whether
it is sure to be what is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.sources.names import Definition, Name, Space, Trait

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pgsluice.pipeline.sources.model import SourceFile
    from pgsluice.pipeline.sources.names import Facts, Use

# Objects of which a second `if not exists` in another file is usual.
_SHARED: Final = frozenset((Space.SCHEMA, Space.EXTENSION))
_SHOWN_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement of a file with what ordering knows about it.

    `start` and `end` count characters of the file, `line` from 1; `keeps_order` is that of the file.
    """

    file: SourceFile
    start: int
    end: int
    line: int
    kind: str
    facts: Facts
    keeps_order: bool = False

    @property
    def text(self) -> str:
        """The statement as written."""
        return self.file.text[self.start : self.end]

    @property
    def location(self) -> Location:
        """Its file and line."""
        return Location(self.file.name, line=self.line)

    def __str__(self) -> str:
        if self.facts.definitions:
            return str(self.facts.definitions[0])
        words = " ".join(self.text.split())
        return words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS]} ..."


class Defined(NamedTuple):
    """A name that a statement defines; `definition` is None where it only comes along."""

    entry: int
    schema: str | None
    definition: Definition | None


class Catalog:
    """The names that a schema's statements define.

    Args:
        entries: The statements, in file order.
        known: Qualified names and schemas that others define: a name in there is not looked for here.

    Raises:
        InputError: Two statements define the same object.
    """

    def __init__(self, entries: Sequence[Entry], known: Collection[str] = ()) -> None:
        self.entries = entries
        self._known = frozenset(known)
        self._by_name: dict[tuple[Space, str], list[Defined]] = {}
        self.repeats: list[tuple[int, int]] = []
        first: dict[tuple[Name, str, str | None], int] = {}
        for number, entry in enumerate(entries):
            for definition in entry.facts.definitions:
                name = definition.name
                self._by_name.setdefault((name.space, name.name), []).append(
                    Defined(number, name.schema, definition)
                )
                # a class and its family may have one name
                apart = definition.word if name.space is Space.OPERATOR_CLASS else definition.table
                key = (name, definition.signature, apart)
                earlier = first.setdefault(key, number)
                if earlier != number:
                    self._check_repeat(definition, earlier, number)
        for number, entry in enumerate(entries):
            for name in entry.facts.implied:
                found = self._by_name.setdefault((name.space, name.name), [])
                if all(item.definition is None for item in found):
                    found.append(Defined(number, name.schema, None))

    def find(self, use: Use, *, by: int) -> tuple[tuple[int, ...], bool]:
        """The statements that define what a statement uses, and whether it is sure to use each."""
        name = use.name
        found = self._by_name.get((name.space, name.name), [])
        if not found:
            return (), False
        exact = [item for item in found if item.schema == name.schema]
        is_sure = use.is_sure and bool(exact)
        if not exact and name.schema is not None:
            if str(name) in self._known or name.schema in self._known:
                return (), False
            exact = [item for item in found if item.schema is None]
        chosen = exact or ([] if name.schema is not None else found)
        if use.arguments is not None:
            chosen = [item for item in chosen if _takes(item.definition, use.arguments)] or chosen
        numbers = tuple(dict.fromkeys(item.entry for item in chosen))
        if len(numbers) > 1 and name.space in _SHARED:
            numbers = (self._nearest(numbers, by),)
        return numbers, is_sure and len(numbers) == 1

    def named(self, word: str) -> tuple[int, ...]:
        """The statements that define a relation, routine or type of a name, whatever its schema."""
        spaces = (Space.ROUTINE, Space.RELATION, Space.TYPE)
        return tuple(item.entry for space in spaces for item in self._by_name.get((space, word), ()))

    def definitions(self) -> list[tuple[Definition, Entry]]:
        """Each object defined, with its statement."""
        return [(definition, entry) for entry in self.entries for definition in entry.facts.definitions]

    def _nearest(self, numbers: tuple[int, ...], by: int) -> int:
        file = self.entries[by].file
        own = [number for number in numbers if number <= by and self.entries[number].file is file]
        return own[0] if own else numbers[0]

    def _check_repeat(self, definition: Definition, earlier: int, later: int) -> None:
        first, second = self.entries[earlier], self.entries[later]
        is_same_file = first.file is second.file
        self.repeats.append((earlier, later))
        if definition.may_exist and (is_same_file or definition.name.space in _SHARED):
            return
        if is_same_file and second.keeps_order:
            return  # it may drop the first in between: the server knows
        raise duplicate_error(definition, second.location, first=first)


def duplicate_error(definition: Definition, location: Location, *, first: Entry) -> InputError:
    """The error for an object that is there already, naming both places."""
    return InputError(
        f"{definition} is defined twice",
        location=location,
        details=(f"first defined at {first.location}: {first}",),
        hint="delete one of the two",
    )


def is_object(definition: Definition) -> bool:
    """Whether a definition is of something that default privileges and grants on a schema reach."""
    return definition.name.space in {Space.RELATION, Space.TYPE, Space.ROUTINE}


def has_trait(entry: Entry, trait: Trait) -> bool:
    """Whether a statement has a trait."""
    return trait in entry.facts.traits


def _takes(definition: Definition | None, count: int) -> bool:
    if definition is None or definition.arguments is None:
        return True
    least, most = definition.arguments
    return least <= count <= most
