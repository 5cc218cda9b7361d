"""Renames: those that hints tell, those that lose nothing either way, and those that only seem likely."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Protocol

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.generate.naming import automatic, ident, identity, literal, qualified
from pgsluice.pipeline.generate.not_null import is_plain, is_renamable, rename_not_null
from pgsluice.pipeline.snapshot import Address, Object, Snapshot
from pgsluice.pipeline.statement import Phase, Statement

KINDS_OF_WORD: Final[Mapping[str, tuple[str, ...]]] = {
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
    "schema": ("schema",),
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

    Raises:
        InputError: A hint whose object the schema does not have, or of a kind that has no name to change.
    """
    ranked = sorted(hints, key=lambda hint: ORDER.index(hint.kind) if hint.kind in ORDER else len(ORDER))
    tables: dict[tuple[str, ...], tuple[str, ...]] = {}
    schemas: dict[str, str] = {}
    statements: list[Statement] = []
    for hint in ranked:
        if hint.kind not in KINDS_OF_WORD:
            raise InputError(f"a {hint.kind} cannot be renamed by a hint", location=hint.location)
        if hint.kind == "schema":
            if hint.new not in {path[0] for kind, path in before.objects if kind == "schema"}:
                schemas[hint.new] = hint.old
        statements += _hinted(hint, before, after, tables, schemas)
    return tuple(statements)


def _hinted(
    hint: Hint,
    before: Snapshot,
    after: Snapshot,
    tables: dict[tuple[str, ...], tuple[str, ...]],
    schemas: Mapping[str, str],
) -> Iterator[Statement]:
    for new in _targets(hint, after):
        if hint.kind == "label":
            yield from _label(hint, new, before, schemas)
            continue
        if hint.kind == "attribute":
            yield _statement(
                f"ALTER TYPE {qualified(new.path)} RENAME ATTRIBUTE {ident(hint.old)} TO {ident(hint.new)} CASCADE",
                new,
            )
            continue
        at = 0 if hint.kind == "schema" else 2 if hint.table is not None else 1
        old_path = (*new.path[:at], hint.old, *new.path[at + 1 :])
        home = tables.get(old_path[:2], old_path[:2]) if at == 2 else old_path[:2]
        was = (schemas.get(home[0], home[0]), *home[1:], *old_path[2:]) if hint.kind != "schema" else old_path
        old = before.objects.get(Address(new.kind, was))
        if old is None or new.address in before.objects:
            continue
        if new.kind == "table":
            tables[new.path] = old_path
        moved = Object(
            Address(new.kind, old_path if at != 2 else (*new.path[:2], hint.old)), old.facets, old.context
        )
        yield _statement(_rename_sql(moved, hint.new), new)


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


def _label(hint: Hint, new: Object, before: Snapshot, schemas: Mapping[str, str]) -> Iterator[Statement]:
    home = (schemas.get(new.path[0], new.path[0]), new.path[1])
    old = before.objects.get(Address("enum", home))
    if old is not None and hint.old in old.get("labels") and hint.new not in old.get("labels"):
        yield _statement(
            f"ALTER TYPE {qualified(new.path)} RENAME VALUE {literal(hint.old)} TO {literal(hint.new)}", new
        )


def _statement(sql: str, new: Object) -> Statement:
    return Statement(sql, f"rename {new.address}", Phase.PREPARE)


def _rename_sql(old: Object, name: str) -> str:
    kind, path = old.address
    if kind == "column":
        return f"ALTER TABLE {qualified(path[:2])} RENAME COLUMN {ident(path[2])} TO {ident(name)}"
    if kind == "constraint":
        return f"ALTER TABLE {qualified(path[:2])} RENAME CONSTRAINT {ident(path[2])} TO {ident(name)}"
    if kind == "domain constraint":
        return f"ALTER DOMAIN {qualified(path[:2])} RENAME CONSTRAINT {ident(path[2])} TO {ident(name)}"
    return f"ALTER {identity(old)} RENAME TO {ident(name)}"


def equal_but_for_name(before: Snapshot, after: Snapshot) -> tuple[Statement, ...]:
    """Constraints, indexes and owned sequences that only changed their name: renamed, never rebuilt."""
    statements: list[Statement] = []
    only_before = sorted(before.objects.keys() - after.objects.keys())
    only_after = sorted(after.objects.keys() - before.objects.keys())
    for kind in ("constraint", "index", "sequence"):
        gone: dict[object, list[Object]] = defaultdict(list)
        for address in only_before:
            if address.kind == kind and (key := _shape(before.objects[address])) is not None:
                gone[key].append(before.objects[address])
        for address in only_after:
            if address.kind != kind:
                continue
            same = gone.get(_shape(after.objects[address]))
            if same:
                statements.append(
                    _statement(_rename_sql(same.pop(0), address.path[-1]), after.objects[address])
                )
    return (*statements, *_identity_sequences(before, after), *_not_null_names(before, after))


def _shape(obj: Object) -> str | None:
    """What must be equal for a rename; None for what may not be renamed so."""
    kind, path = obj.address
    if kind == "constraint":
        if obj.get("inherited") == "only" or obj.get("type") == "n":
            return None
        return f"{path[:2]} {obj.get('definition')} {obj.get('not_valid')} {obj.get('index_options')}"
    if kind == "index":
        if obj.get("parent") is not None:
            return None
        text = str(obj.get("definition")).replace(f"INDEX {ident(path[1])} ON ", "INDEX ON ", 1)
        return f"{path[0]} {text} {obj.get('tablespace')} {obj.get('invalid')}"
    return f"{path[0]} {obj.get('owned_by')}" if obj.get("owned_by") else None


def _identity_sequences(before: Snapshot, after: Snapshot) -> Iterator[Statement]:
    """Sequences behind identity columns follow the name of table and column."""
    for address, new in after.objects.items():
        old = before.objects.get(address)
        if address.kind != "column" or old is None or not new.get("identity") or not old.get("identity"):
            continue
        was, now = old.get("sequence"), new.get("sequence")
        if was and now and was["schema"] == now["schema"] and was["name"] != now["name"]:
            name = qualified((was["schema"], was["name"]))
            yield _statement(f"ALTER SEQUENCE {name} RENAME TO {ident(now['name'])}", new)


def _not_null_names(before: Snapshot, after: Snapshot) -> Iterator[Statement]:
    """PostgreSQL 18 names its not-null constraints: bring those that stay to the name that they shall have."""
    was, now = _not_null_by_column(before), _not_null_by_column(after)
    for schema, table, column in sorted(was.keys() | now.keys()):
        address = Address("column", (schema, table, column))
        columns = before.objects.get(address), after.objects.get(address)
        if not all(one is not None and one.get("not_null") for one in columns):
            continue
        old, new = was.get(address.path), now.get(address.path)
        name = new.path[2] if new is not None else automatic(table, column, "not_null")
        same = old is None or (old.path[2] != name and is_renamable(old) and not old.get("comment"))
        if same and (new is None or is_plain(new)):
            yield _statement(rename_not_null((schema, table), column, name), new or after.objects[address])


def _not_null_by_column(snapshot: Snapshot) -> dict[tuple[str, ...], Object]:
    return {
        (*address.path[:2], obj.get("columns")[0]): obj
        for address, obj in snapshot.objects.items()
        if address.kind == "constraint" and obj.get("type") == "n"
    }


def not_null_follow_ups(
    hints: Collection[Statement], before: Snapshot, after: Snapshot, renamed: Snapshot
) -> tuple[Statement, ...]:
    """On servers before 18, what 18 would need after a table or column was renamed."""
    if not hints or before.version_num >= 180000:
        return ()
    statements: list[Statement] = []
    gone = _renamed_columns(before, renamed)
    for schema, table, column in sorted(gone):
        new = after.objects.get(Address("column", (schema, table, column)))
        if new is not None and new.get("not_null"):
            new_name = automatic(table, column, "not_null")
            statements.append(_statement(rename_not_null((schema, table), column, new_name), new))
    return tuple(statements)


def _renamed_columns(before: Snapshot, renamed: Snapshot) -> dict[tuple[str, str, str], tuple[str, str, str]]:
    """Columns of the renamed catalog with their old path, found by position in a table that kept its shape."""
    found: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    was, now = _by_table(before), _by_table(renamed)
    fresh = {table: columns for table, columns in now.items() if was.get(table) != columns}
    old = {table: columns for table, columns in was.items() if now.get(table) != columns}
    for table, columns in fresh.items():
        source = (
            table
            if table in old
            else next(
                (one for one, names in old.items() if one not in now and names.keys() == columns.keys()), None
            )
        )
        if source is None:
            continue
        for position, name in columns.items():
            if position in old[source]:
                found[table[0], table[1], name] = (source[0], source[1], old[source][position])
    return found


def _by_table(snapshot: Snapshot) -> dict[tuple[str, ...], dict[int, str]]:
    tables: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for address, obj in snapshot.objects.items():
        if address.kind == "column":
            tables[address.path[:2]][int(obj.get("position"))] = address.path[2]
    return tables


def suspected_renames(before: Snapshot, after: Snapshot) -> dict[Address, tuple[str, str]]:
    """Destroyed data holders beside a new one of the same shape: likely a rename, and then a loss.

    Returns:
        For each destroyed column, table or enum: the new name and the hint that would keep the data. An
        enum stands for its labels.
    """
    found: dict[Address, tuple[str, str]] = {}
    gone = before.objects.keys() - after.objects.keys()
    fresh = after.objects.keys() - before.objects.keys()
    was, now = _shapes(before, gone), _shapes(after, fresh)
    for address in sorted(gone):
        if address.kind == "table":
            twin = next(
                (
                    one
                    for one in sorted(fresh)
                    if one.kind == "table"
                    and now[one]
                    and now[one] == was[address]
                    and before.objects[address].get("bound") == after.objects[one].get("bound")
                ),
                None,
            )
            if twin is not None:
                found[address] = (
                    str(twin),
                    _directive(address.path[1] if address.path[1] != twin.path[1] else address.path[0]),
                )
        elif address.kind == "column" and Address("table", address.path[:2]) in after.objects:
            twin = next((one for one in sorted(fresh) if _same_column(address, one, before, after)), None)
            if twin is not None:
                found[address] = (str(twin), _directive(address.path[2]))
    for address in sorted(before.objects.keys() & after.objects.keys()):
        labels = before.objects[address].get("labels") if address.kind == "enum" else None
        if labels:
            pairs = _replaced_labels(labels, after.objects[address].get("labels"))
            if pairs:
                found[address] = (
                    ", ".join(new for _, new in pairs),
                    " and ".join(_directive(old) for old, _ in pairs),
                )
    return found


def _directive(old: str) -> str:
    return f"-- pgsluice: renamed from {ident(old)}"


def _replaced_labels(was: list[str], now: list[str]) -> list[tuple[str, str]]:
    """Labels that gave way to a new one at the same place."""
    if len(was) != len(now):
        return []
    return [
        (old, new)
        for old, new in zip(was, now, strict=True)
        if old != new and new not in was and old not in now
    ]


def _shapes(snapshot: Snapshot, tables: Collection[Address]) -> dict[Address, frozenset[tuple[str, str]]]:
    columns: dict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    for address, obj in snapshot.objects.items():
        if address.kind == "column":
            columns[address.path[:2]].add((address.path[2], obj.get("type")))
    return {table: frozenset(columns[table.path]) for table in tables if table.kind == "table"}


def _same_column(old: Address, new: Address, before: Snapshot, after: Snapshot) -> bool:
    if new.kind != "column" or new.path[:2] != old.path[:2]:
        return False
    was, now = before.objects[old], after.objects[new]
    facets = ("type", "collation", "not_null", "generated", "identity")
    return not was.get("generated") and all(was.get(facet) == now.get(facet) for facet in facets)
