"""Renames that the schema files tell: from a hint to the statement that carries it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.generate.naming import ident, identity, literal, qualified
from pgsluice.pipeline.snapshot import Address, Object, Snapshot
from pgsluice.pipeline.statement import Phase, Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KINDS_OF_WORD: Final[Mapping[str, tuple[str, ...]]] = {
    "schema": ("schema",),
    "table": ("table",),
    "foreign table": ("table",),
    "view": ("view",),
    "materialized view": ("materialized view",),
    "sequence": ("sequence",),
    "type": ("enum", "composite", "range"),
    "domain": ("domain",),
    "function": ("function",),
    "procedure": ("function",),
    "aggregate": ("aggregate",),
    "index": ("index",),
    "column": ("column",),
    "attribute": ("composite",),
    "label": ("enum",),
    "constraint": ("constraint", "domain constraint"),
    "trigger": ("trigger",),
    "policy": ("policy",),
    "rule": ("rule",),
}
# Outer objects first: a column's hint names its table by the new name.
ORDER: Final = tuple(KINDS_OF_WORD)
ROUTINES: Final = frozenset({"function", "aggregate"})


class Hint(Protocol):
    """A `-- pgsluice: renamed from` directive as the sources give it."""

    @property
    def kind(self) -> str: ...
    @property
    def schema(self) -> str | None: ...
    @property
    def table(self) -> str | None: ...
    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...
    @property
    def location(self) -> Location: ...


def hinted_renames(hints: Iterable[Hint], before: Snapshot, after: Snapshot) -> tuple[Statement, ...]:
    """The statements that bring *from* to the names of the hints; a hint already carried out gives none.

    A name that another hint frees may be taken. A relation, type or routine that keeps its name in another
    schema is moved there, where the hint's old name is that of its former schema.

    Raises:
        InputError: A hint whose object the schema does not have, whose old name the table never had, or of
            a kind that has no name to change.
    """
    known = list(hints)
    for hint in known:
        if hint.kind not in KINDS_OF_WORD:
            raise InputError(
                f"{hint.kind} {hint.new} cannot be renamed by a hint",
                location=hint.location,
                hint="take the hint out: the object is dropped and made anew",
            )
    pending = sorted(known, key=lambda hint: ORDER.index(hint.kind))
    state = _Renaming(before, after)
    statements: list[Statement] = []
    while pending:
        waiting: list[Hint] = []
        for hint in pending:
            made = list(state.carry_out(hint))
            statements += made
            if not made:
                waiting.append(hint)
        if len(waiting) == len(pending):
            break
        pending = waiting
    for hint in pending:
        state.refuse_unknown_column(hint)
    return tuple(statements)


class _Renaming:
    """Both catalogs, and under which new names the renamed schemas and tables of *before* are found."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self.before = before
        self.after = after
        self.former: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.freed: set[Address] = set()

    def carry_out(self, hint: Hint) -> Iterator[Statement]:
        """The statements for one hint: none when its old name is gone or its new one taken."""
        for new in _targets(hint, self.after):
            if hint.kind == "label":
                yield from self._label(hint, new)
            elif hint.kind == "attribute":
                yield from self._attribute(hint, new)
            else:
                yield from self._object(hint, new)

    def refuse_unknown_column(self, hint: Hint) -> None:
        """Refuse a hint whose table was there before, with neither the old name nor the new one.

        Raises:
            InputError: It names the columns that are there.
        """
        for new in _targets(hint, self.after) if hint.kind == "column" else ():
            home = self._origin(new.path[:2])
            names = [path[2] for kind, path in self.before.objects if kind == "column" and path[:2] == home]
            if names and hint.old not in names and hint.new not in names:
                raise InputError(
                    f"the hint renames {hint.old} to {hint.new}, but {'.'.join(home)} "
                    f"has no column {hint.old}",
                    location=hint.location,
                    hint=f"its columns are {', '.join(sorted(names))}",
                )

    def _object(self, hint: Hint, new: Object) -> Iterator[Statement]:
        at = 0 if hint.kind == "schema" else 2 if hint.table is not None else 1
        home = self._origin(new.path[:at])
        taken = Address(new.kind, (*home, hint.new, *new.path[at + 1 :]))
        if taken in self.before.objects and taken not in self.freed:
            return
        was = self._known(Address(new.kind, (*home, hint.old, *new.path[at + 1 :])), at)
        if was is not None:
            now = Object(
                Address(new.kind, (*new.path[:at], hint.old, *new.path[at + 1 :])), was.facets, was.context
            )
            yield self._done(was, new, rename_sql(now, hint.new))
        elif at == 1 and hint.new == new.path[1]:
            schema = self._origin((hint.old,))
            moved = self._known(Address(new.kind, (*schema, *new.path[1:])), at)
            if moved is not None:
                now = Object(Address(new.kind, (hint.old, *new.path[1:])), moved.facets, moved.context)
                yield self._done(moved, new, f"ALTER {identity(now)} SET SCHEMA {ident(new.path[0])}")

    def _known(self, address: Address, at: int) -> Object | None:
        """The object of *before*; a routine also by its name alone, as its types may have new names."""
        found = self.before.objects.get(address)
        if found is None and address.kind in ROUTINES and at == 1:
            same = [
                obj
                for one, obj in self.before.objects.items()
                if one.kind == address.kind and one.path[:2] == address.path[:2]
            ]
            found = same[0] if len(same) == 1 else None
        return None if found is None or found.address in self.freed else found

    def _done(self, old: Object, new: Object, sql: str) -> Statement:
        self.freed.add(old.address)
        if new.kind in ("schema", "table", "enum", "composite", "range", "domain"):
            self.former[new.path] = old.path
        return _statement(sql, new)

    def _origin(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The name in *before* of a schema or table that is known by its new name."""
        if path in self.former or not path:
            return self.former.get(path, path)
        return (*self._origin(path[:-1]), path[-1])

    def _label(self, hint: Hint, new: Object) -> Iterator[Statement]:
        old = self.before.objects.get(Address("enum", self._origin(new.path)))
        if old is not None and self._gives_way(hint, old.get("labels"), old):
            yield _statement(
                f"ALTER TYPE {qualified(new.path)} RENAME VALUE {literal(hint.old)} TO {literal(hint.new)}",
                new,
            )

    def _attribute(self, hint: Hint, new: Object) -> Iterator[Statement]:
        old = self.before.objects.get(Address("composite", self._origin(new.path)))
        names = [one[0] for one in old.get("attributes") or []] if old is not None else []
        if old is not None and self._gives_way(hint, names, old):
            clause = f"RENAME ATTRIBUTE {ident(hint.old)} TO {ident(hint.new)} CASCADE"
            yield _statement(f"ALTER TYPE {qualified(new.path)} {clause}", new)

    def _gives_way(self, hint: Hint, names: list[str], holder: Object) -> bool:
        """Whether the old name is there and the new one not, which then is so no longer."""
        old, new = (Address("label", (*holder.path, name)) for name in (hint.old, hint.new))
        if hint.old not in names or old in self.freed or (hint.new in names and new not in self.freed):
            return False
        self.freed.add(old)
        return True


def _targets(hint: Hint, after: Snapshot) -> list[Object]:
    kinds = KINDS_OF_WORD[hint.kind]
    found = []
    for address, obj in after.objects.items():
        if address.kind not in kinds:
            continue
        if hint.kind in ("label", "attribute"):
            names = obj.get("labels") or [one[0] for one in obj.get("attributes") or []]
            fits = hint.new in names and hint.table in (None, address.path[1])
        elif hint.table is not None:
            fits = address.path[1:3] == (hint.table, hint.new)
        else:
            fits = address.path[0 if hint.kind == "schema" else 1] == hint.new
        if fits and (hint.schema is None or address.path[0] == hint.schema):
            found.append(obj)
    if not found:
        raise InputError(
            f"the hint renames {hint.old} to {hint.kind} {hint.new}, which the schema does not have",
            location=hint.location,
            hint="put the hint directly above the object's own statement, or beside the column",
        )
    return found


def _statement(sql: str, new: Object) -> Statement:
    return Statement(sql, f"rename {new.address}", Phase.PREPARE)


def rename_sql(old: Object, name: str) -> str:
    """The statement that renames an object, which stands under its old name."""
    kind, path = old.address
    if kind == "column":
        return f"ALTER TABLE {qualified(path[:2])} RENAME COLUMN {ident(path[2])} TO {ident(name)}"
    if kind == "constraint":
        return f"ALTER TABLE {qualified(path[:2])} RENAME CONSTRAINT {ident(path[2])} TO {ident(name)}"
    if kind == "domain constraint":
        return f"ALTER DOMAIN {qualified(path[:2])} RENAME CONSTRAINT {ident(path[2])} TO {ident(name)}"
    return f"ALTER {identity(old)} RENAME TO {ident(name)}"
