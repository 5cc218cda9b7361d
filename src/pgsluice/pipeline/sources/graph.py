"""What each statement needs before it: from the names that it uses, and from the rules below.

Besides names: extensions come before what might use them, schemas before what is created without a schema
in its name, `alter default privileges` before the objects of other files, `grant ... on all tables in
schema` after them, changes of owner after the queries that run while loading, an index or constraint of a
table `only` after its partitions, a table to be attached after its parent, event triggers last. A
statement that alters an object comes before the object's users in other files, and in its own file
wherever it was written before them; so does what alters that in turn, such as the indexes attached to a
key's. A function called by an index, a generated column or a materialized view is run or inlined while
loading, so what its body names comes first. A file with imperative statements is one node: nothing moves
in it, nothing comes in between.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.sources.catalog import has_trait, is_object
from pgsluice.pipeline.sources.names import Space, Trait
from pgsluice.pipeline.sources.order import FOREIGN_KEY, NEED, WISH, Needs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgsluice.pipeline.sources.catalog import Catalog
    from pgsluice.pipeline.sources.names import Name, Use

_WORD: Final = re.compile(r'"((?:[^"]|"")+)"|[^\W\d][\w$]*')
_CALLED: Final = frozenset((Space.ROUTINE, Space.OPERATOR))
_QUERIED: Final = frozenset((*_CALLED, Space.RELATION))


class Graph:
    """The needs of a schema's statements.

    `nodes` are tuples of statement numbers, `needs` what each node needs, and `key_needs` the statements
    that an inline foreign key needs, by its statement's number and byte.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._entries = catalog.entries
        self.nodes, self._node_of = _group(catalog)
        self.needs: Needs = [{} for _ in self.nodes]
        self.key_needs: dict[tuple[int, int], set[int]] = {}
        self._found: list[dict[Use, tuple[tuple[int, ...], bool]]] = [
            {use: catalog.find(use, by=number) for use in entry.facts.uses}
            for number, entry in enumerate(self._entries)
        ]
        self._alterers = self._find_alterers()
        self._attached = self._find_attached()
        self._calls: dict[int, frozenset[int]] = {}
        for number in range(len(self._entries)):
            self._add_uses(number)
            self._add_keys(number)
            self._add_calls(number)
        self._add_rules()

    def node(self, number: int) -> int:
        """The node that holds a statement."""
        return self._node_of[number]

    def with_keys(self, keys: Sequence[tuple[int, int]], *, ignored: frozenset[tuple[int, int]]) -> Needs:
        """The needs once some foreign keys are statements of their own, numbered after all nodes.

        Args:
            keys: The statement and the byte of each such key.
            ignored: The pairs of nodes that the first order ignored.
        """
        needs = [
            {needed: weight for needed, weight in wanted.items() if (node, needed) not in ignored}
            for node, wanted in enumerate(self.needs)
        ]
        before = -1
        for number, byte in keys:
            needed = (number, *self.key_needs[number, byte])
            needs.append(dict.fromkeys((self.node(other) for other in needed), NEED))
            if number == before:  # automatic names follow the order
                needs[-1][len(needs) - 2] = NEED
            before = number
            for user, entry in enumerate(self._entries):
                names_it = has_trait(entry, Trait.NAMES_CONSTRAINT) and self._uses(user, number)
                if names_it or has_trait(entry, Trait.EVENT_TRIGGER):
                    needs[self.node(user)][len(needs) - 1] = WISH
        return needs

    def _uses(self, user: int, number: int) -> bool:
        return any(number in found for found, _ in self._found[user].values())

    def _find_alterers(self) -> dict[int, list[int]]:
        alterers: dict[int, list[int]] = {}
        for number, entry in enumerate(self._entries):
            for use in entry.facts.uses:
                if use.name in entry.facts.alters:
                    for defined in self._found[number][use][0]:
                        alterers.setdefault(defined, []).append(number)
        return alterers

    def _link(self, number: int, needed: int, weight: int) -> None:
        node, other = self._node_of[number], self._node_of[needed]
        if node != other:
            self.needs[node][other] = max(weight, self.needs[node].get(other, 0))

    def _altering(self, defined: int, *, by: int) -> Iterator[int]:
        """The statements that make an object whole for the statement that uses it.

        A key of a partitioned table is no key before the keys of all partitions are attached to its index.
        """
        for number in self._altering_alone(defined, by=by):
            yield number
            yield from self._altering_alone(number, by=by)

    def _altering_alone(self, defined: int, *, by: int) -> Iterator[int]:
        alterers = self._alterers.get(defined, ())
        user = self._entries[by]
        # a user written above the definition is out of order anyway: no word on what it needs of the object
        is_free = by not in alterers and by < defined
        is_partition = has_trait(user, Trait.PARTITION)
        for number in alterers:
            entry = self._entries[number]
            later = has_trait(entry, Trait.ON_ONLY) or has_trait(entry, Trait.PARTITION)
            if number == by or (is_partition and later):
                continue
            if number < by or is_free or (by not in alterers and entry.file is not user.file):
                yield number

    def _add_uses(self, number: int) -> None:
        for found, is_sure in self._found[number].values():
            for defined in found:
                if defined == number:
                    continue
                self._link(number, defined, NEED if is_sure else WISH)
                for altering in self._altering(defined, by=number):
                    self._link(number, altering, WISH)

    def _add_keys(self, number: int) -> None:
        entry = self._entries[number]
        for byte, use in entry.facts.keys.items():
            found, _ = self._catalog.find(use, by=number)
            needed = {defined for defined in found if defined != number}
            for defined in tuple(needed):
                needed.update(self._altering(defined, by=number))
            self.key_needs[number, byte] = needed
            for other in needed:
                self._link(number, other, NEED if entry.keeps_order else FOREIGN_KEY)

    def _add_calls(self, number: int) -> None:
        """What the functions that this statement runs, and those that they run, name in their bodies."""
        traits = self._entries[number].facts.traits
        if Trait.RUNS_QUERY in traits:
            spaces = _QUERIED
        elif Trait.RUNS_FUNCTIONS in traits:
            spaces = _CALLED
        else:
            return
        waiting = [
            defined
            for use, (found, _) in self._found[number].items()
            if use.name.space in spaces
            for defined in found
        ]
        seen = set(waiting)
        while waiting:
            fresh = self._called_by(waiting.pop()) - seen
            seen |= fresh
            waiting.extend(fresh)
        for defined in seen - {number}:
            self._link(number, defined, WISH)
            for altering in self._altering(defined, by=number):
                self._link(number, altering, WISH)

    def _called_by(self, number: int) -> frozenset[int]:
        if number not in self._calls:
            self._calls[number] = frozenset(self._find_called(number))
        return self._calls[number]

    def _find_called(self, number: int) -> Iterator[int]:
        facts = self._entries[number].facts
        if Trait.IS_STORED in facts.traits:
            return
        for found, _ in self._found[number].values():
            yield from found
        for word in _words(facts.body or ""):
            yield from self._catalog.named(word)

    def _add_rules(self) -> None:
        for earlier, later in self._catalog.repeats:
            self._link(later, earlier, WISH)
        for number, entry in enumerate(self._entries):
            if has_trait(entry, Trait.EXTENSION):
                self._first(number, self._all_but(Trait.EXTENSION, Trait.SCHEMA))
            if has_trait(entry, Trait.SCHEMA):
                self._first(number, self._without_schema(), in_file=False)
            if has_trait(entry, Trait.DEFAULT_PRIVILEGES):
                self._first(number, self._objects(None), keeps_earlier=True)
            if has_trait(entry, Trait.ALL_IN_SCHEMA):
                schemas = {use.name.name for use in entry.facts.uses if use.name.space is Space.SCHEMA}
                self._last(number, self._objects(schemas))
            if has_trait(entry, Trait.OWNER):
                self._last(number, self._running())
            if has_trait(entry, Trait.ON_ONLY):
                self._last(number, self._partitions(number))
            if has_trait(entry, Trait.PARTITION) and entry.facts.alters:
                self._parent_first(number, entry.facts.alters[0])
            if has_trait(entry, Trait.EVENT_TRIGGER):
                self._last(number, self._all_but(Trait.EVENT_TRIGGER))

    def _first(
        self, number: int, users: Iterable[int], *, in_file: bool = True, keeps_earlier: bool = False
    ) -> None:
        """A statement before the users in other files, and before those that follow it in its own."""
        file = self._entries[number].file
        for user in users:
            if self._entries[user].file is not file or (in_file and user > number):
                self._link(user, number, WISH)
            elif keeps_earlier:
                self._link(number, user, WISH)

    def _last(self, number: int, needed: Iterable[int]) -> None:
        """A statement after others in other files, and after those before it in its own."""
        file = self._entries[number].file
        for other in needed:
            if self._entries[other].file is not file or other < number:
                self._link(number, other, WISH)

    def _parent_first(self, number: int, parent: Name) -> None:
        """A table to be attached after its parent in another file: constraints' automatic names need it.

        The parent's own attachment comes first, too: what it inherits then, such as an identity, reaches the
        partitions that it gets later, and not those that it has.
        """
        above, children = self._attachment(number, parent)
        for child in children:
            for other in above:
                if self._entries[child].file is not self._entries[other].file:
                    self._link(child, other, WISH)
        for other in above:
            for attaching in self._attached.get(other, ()):
                self._link(number, attaching, WISH)

    def _attachment(self, number: int, parent: Name) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The statements that define the parent and the child of one that attaches a partition."""
        tables = {
            use.name: found
            for use, (found, _) in self._found[number].items()
            if use.name.space is parent.space
        }
        above = tables.pop(parent, ())
        return above, tuple(child for found in tables.values() for child in found)

    def _find_attached(self) -> dict[int, list[int]]:
        """The statements that attach a table to its parent, by the statement that defines the table."""
        attached: dict[int, list[int]] = {}
        for number, entry in enumerate(self._entries):
            if has_trait(entry, Trait.PARTITION) and entry.facts.alters:
                for child in self._attachment(number, entry.facts.alters[0])[1]:
                    attached.setdefault(child, []).append(number)
        return attached

    def _all_but(self, *traits: Trait) -> Iterator[int]:
        for number, entry in enumerate(self._entries):
            if entry.facts.traits.isdisjoint(traits):
                yield number

    def _running(self) -> Iterator[int]:
        """The statements that run queries, for which an owner's rights may not suffice yet."""
        for number, entry in enumerate(self._entries):
            if has_trait(entry, Trait.RUNS_QUERY) or entry.keeps_order:
                yield number

    def _partitions(self, number: int) -> Iterator[int]:
        """The statements that make partitions of the table that a statement alters `only`."""
        used = {
            defined
            for use, (found, _) in self._found[number].items()
            if use.name.space is Space.RELATION
            for defined in found
        }
        for other, entry in enumerate(self._entries):
            if has_trait(entry, Trait.PARTITION) and any(
                used.intersection(found) for found, _ in self._found[other].values()
            ):
                yield other

    def _without_schema(self) -> Iterator[int]:
        for number, entry in enumerate(self._entries):
            is_bare = any(
                definition.name.schema is None and is_object(definition)
                for definition in entry.facts.definitions
            )
            if is_bare or has_trait(entry, Trait.EXTENSION):
                yield number

    def _objects(self, schemas: set[str] | None) -> Iterator[int]:
        """The statements that create objects in schemas, or anywhere."""
        for number, entry in enumerate(self._entries):
            if any(
                is_object(definition)
                and (schemas is None or definition.name.schema is None or definition.name.schema in schemas)
                for definition in entry.facts.definitions
            ):
                yield number


def _group(catalog: Catalog) -> tuple[list[tuple[int, ...]], list[int]]:
    """Statements as nodes: one each, but all of a file that keeps its own order together."""
    nodes: list[tuple[int, ...]] = []
    node_of: list[int] = []
    for number, entry in enumerate(catalog.entries):
        before = catalog.entries[number - 1] if number else None
        if before is not None and entry.keeps_order and before.file is entry.file:
            nodes[-1] = (*nodes[-1], number)
        else:
            nodes.append((number,))
        node_of.append(len(nodes) - 1)
    return nodes, node_of


def _words(body: str) -> set[str]:
    """The names in a function's text."""
    return {
        match[1].replace('""', '"') if match[1] is not None else match[0].lower()
        for match in _WORD.finditer(body)
    }
