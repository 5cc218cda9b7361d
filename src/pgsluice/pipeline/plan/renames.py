"""Renames that nobody has to tell: those that lose nothing either way, and those that only seem likely."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.naming import automatic, ident, qualified
from pgsluice.pipeline.generate.not_null import is_plain, is_renamable, rename_not_null
from pgsluice.pipeline.plan.hints import rename_sql
from pgsluice.pipeline.plan.occupied import occupied
from pgsluice.pipeline.snapshot import Address, Object, Snapshot
from pgsluice.pipeline.statement import Phase, Statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def equal_but_for_name(before: Snapshot, after: Snapshot) -> tuple[Statement, ...]:
    """Constraints, indexes and owned sequences that only changed their name: renamed, never rebuilt."""
    pairs: list[tuple[Object, Object]] = []
    for kind in ("constraint", "index", "sequence"):
        gone: dict[object, list[Object]] = defaultdict(list)
        for address in sorted(before.objects.keys() - after.objects.keys()):
            if address.kind == kind and (key := _shape(before.objects[address])) is not None:
                gone[key].append(before.objects[address])
        for address in sorted(after.objects.keys() - before.objects.keys()):
            same = gone.get(_shape(after.objects[address])) if address.kind == kind else None
            if same:
                pairs.append((same.pop(0), after.objects[address]))
    statements = tuple(
        _statement(rename_sql(old, new.path[-1]), new) for old, new in _one_after_another(pairs, before)
    )
    return (*statements, *_identity_sequences(before, after), *_not_null_names(before, after))


def _one_after_another(
    pairs: list[tuple[Object, Object]], before: Snapshot
) -> Iterator[tuple[Object, Object]]:
    """The renames in an order in which each new name is free; those whose name stays taken are left out."""
    taken = {name for obj in before.objects.values() for name in occupied(obj)}
    while pairs:
        free = [(old, new) for old, new in pairs if not taken.intersection(_names(new))]
        if not free:
            return
        for old, new in free:
            taken -= set(_names(old))
            taken |= set(_names(new))
        yield from free
        pairs = [pair for pair in pairs if pair not in free]


def _names(obj: Object) -> list[tuple[str, ...]]:
    return [name for name in occupied(obj) if name[0] != "type"]


def _statement(sql: str, new: Object) -> Statement:
    return Statement(sql, f"rename {new.address}", Phase.PREPARE)


def _shape(obj: Object) -> str | None:
    """What must be equal for a rename; None for what may not be renamed so."""
    kind, path = obj.address
    if kind == "constraint":
        of_tree = obj.get("inherited") == "only"
        if obj.get("type") == "n" or (of_tree and obj.get("type") not in ("p", "u", "x")):
            return None
        return (
            f"{path[:2]} {of_tree} {obj.get('definition')} {obj.get('not_valid')} {obj.get('index_options')}"
        )
    if kind == "index":
        text = str(obj.get("definition")).replace(f"INDEX {ident(path[1])} ON ", "INDEX ON ", 1)
        return f"{path[0]} {obj.get('parent') is None} {text} {obj.get('tablespace')} {obj.get('invalid')}"
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
    """PostgreSQL 18 names its not-null constraints: those that stay get the name that they shall have."""
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
    """Columns of the renamed catalog with their old path, by position in a table that kept its shape."""
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
