"""Read a snapshot: one set-based query a kind, values printed by the server itself."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg.types.string import TextLoader

from pgsluice.pipeline.snapshot.mentions import mentioned
from pgsluice.pipeline.snapshot.model import Address, Object, Snapshot, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import psycopg

QUERIES: Final = (
    "schemas", "types", "domain_constraints", "relations", "columns", "defaults", "constraints", "indexes",
    "sequences", "functions", "triggers", "rules", "policies", "statistics", "collations", "operators",
    "operator_families", "operator_classes", "casts", "text_search", "conversions", "default_privileges",
    "database_wide", "extension_grants",
)  # fmt: skip

# Children of a relation: their path starts with the relation's.
OF_RELATION: Final = frozenset(
    {"column", "default", "constraint", "trigger", "rule", "policy", "domain constraint"}
)
# What they hang on, and so go out with.
HOLDERS: Final = frozenset({"table", "view", "materialized view", "domain"})

GRANT_LETTERS: Final = {
    "schema": "n", "table": "r", "view": "r", "materialized view": "r", "sequence": "s", "function": "f",
    "aggregate": "f", "enum": "T", "composite": "T", "domain": "T", "range": "T", "base type": "T",
    "foreign data wrapper": "F", "server": "S", "language": "l",
}  # fmt: skip

PRINT_SETTINGS: Final = """
set local search_path = '';
set local datestyle = 'ISO, YMD';
set local intervalstyle = 'postgres';
set local timezone = 'UTC';
set local extra_float_digits = 1;
set local bytea_output = 'hex';
set local quote_all_identifiers = off
"""

USER_SCHEMAS: Final = """
select n.nspname::text
from pg_namespace as n
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and n.nspname <> 'pgsluice'
order by n.nspname collate "C"
"""

CURRENT_ROLE: Final = "select current_user::text"

IMPLIED_GRANTS: Final = """
select letter, jsonb_agg(jsonb_build_array(
  case a.grantee when 0 then null else '@owner' end, a.privilege_type, a.is_grantable))
from unnest(array['n', 'r', 's', 'f', 'T', 'F', 'S', 'l']) as letter,
  aclexplode(acldefault(letter::"char", 10)) as a
group by letter
"""


EXTENSION_MEMBERS: Final = """
select d.classid::bigint, d.objid::bigint from pg_depend as d where d.deptype = 'e' and d.objid >= 16384
"""

# classid, objid, subid of the catalog
_Id = tuple[int, int, int]


class _Row(NamedTuple):
    """One object as the server prints it; `facets` is JSON."""

    classid: int
    objid: int
    subid: int
    kind: str
    path: list[str]
    facets: str


def read_snapshot(
    conn: psycopg.Connection[Any],
    *,
    manages: Sequence[str],
    ignore: Sequence[str] = (),
    like: Snapshot | None = None,
    runner: str | None = None,
) -> Snapshot:
    """Read every object of the managed schemas.

    Args:
        conn: Any connection; the read is one transaction, or part of the one that is open.
        manages: PostgreSQL schemas, or `["*"]` for all but the system's.
        ignore: Patterns such as `app.scratch_*` over `schema.name`: those objects stay out, with all
            that hangs on them, and are listed in `Snapshot.ignored`.
        like: What is likely to come out, read with the same `manages` and `ignore`: where nothing differs
            from it, which is found without decoding, its dependencies stand for the ones of this database.
        runner: The role that runs the migrations, `@runner` in facets; the connection's own when it is None.
    """
    with conn.transaction():
        conn.execute(PRINT_SETTINGS)
        whole = "*" in manages
        existing = [name for (name,) in conn.execute(USER_SCHEMAS).fetchall()]
        schemas = existing if whole else [name for name in existing if name in manages]
        implied = {letter: _canonical(grants) for letter, grants in conn.execute(IMPLIED_GRANTS).fetchall()}
        members = set(conn.execute(EXTENSION_MEMBERS).fetchall())
        if runner is None:
            [runner] = conn.execute(CURRENT_ROLE).fetchone() or [""]
        rows = _read_rows(conn, {"schemas": schemas, "whole": whole, "runner": runner})
        printed = {
            Address(row.kind, tuple(row.path)): "" if row[:2] in members else row.facets for row in rows
        }
        if like is not None and like.implied_grants == implied and len(printed) == len(rows):
            alike = _as_expected(like, printed)
            if alike is not None:
                return alike
        edges = conn.execute(_text("dependencies")).fetchall()
        version_num = conn.info.server_version
    found = _assemble(_decoded(rows), edges, ignore=ignore, implied=implied, version_num=version_num)
    return replace(found, printed=printed, runner=runner)


def _read_rows(conn: psycopg.Connection[Any], parameters: Mapping[str, Any]) -> list[_Row]:
    rows: list[_Row] = []
    with conn.cursor() as cursor:
        cursor.adapters.register_loader("jsonb", TextLoader)
        for query in QUERIES:
            rows.extend(map(_Row._make, cursor.execute(_text(query), parameters).fetchall()))
    return rows


def _decoded(rows: Sequence[_Row]) -> list[tuple[int, int, int, str, list[str], dict[str, Value]]]:
    """The rows with their facets as values; one JSON text is decoded much faster than many."""
    facets = json.loads(f"[{','.join(row.facets for row in rows)}]")
    return [(*row[:5], values) for row, values in zip(rows, facets, strict=True)]


def _as_expected(like: Snapshot, printed: Mapping[Address, str]) -> Snapshot | None:
    """The snapshot of which `printed` is what the server prints, None if a facet is not as in `like`."""
    if printed.keys() != like.printed.keys():
        return None
    changed: dict[Address, Object] = {}
    for address, text in printed.items():
        if text == like.printed[address]:
            continue
        expected = like.objects.get(address)
        if expected is None or not text:
            return None
        actual = _object(address, json.loads(text), expected.needs, like.implied_grants)
        if actual.facets != expected.facets:
            return None
        changed[address] = replace(expected, context=actual.context)
    return replace(like, objects={**like.objects, **changed}, printed=printed)


def _text(query: str) -> bytes:
    return (resources.files(__package__) / "queries" / f"{query}.sql").read_bytes()


def _assemble(
    rows: Iterable[tuple[Any, ...]],
    edges: Sequence[tuple[int, int, int, int, int, int, str]],
    *,
    ignore: Sequence[str],
    implied: Mapping[str, tuple[Value, ...]],
    version_num: int,
) -> Snapshot:
    members = {(classid, objid) for classid, objid, _, _, _, _, kind in edges if kind == "e"}
    kept: dict[Address, tuple[_Id, dict[str, Value]]] = {}
    left_out: set[tuple[str, ...]] = set()
    ignored: list[str] = []
    children: list[tuple[Address, _Id, dict[str, Value]]] = []
    for classid, objid, subid, kind, path, facets in rows:
        address = Address(kind, tuple(path))
        name = ".".join(address.path[:2]) if ignore else ""
        if (classid, objid) in members:
            if kind in HOLDERS:
                left_out.add(address.path[:2])
        elif _relation_of(address, facets) is not None:
            children.append((address, (classid, objid, subid), facets))
        elif any(fnmatchcase(name, pattern) for pattern in ignore):
            if kind in HOLDERS:
                left_out.add(address.path[:2])
            ignored.append(str(address))
        else:
            kept[address] = ((classid, objid, subid), facets)
    for address, ident, facets in children:
        name = ".".join(address.path)
        if _relation_of(address, facets) in left_out:
            continue
        if address.kind == "constraint" and facets["type"] == "n" and _is_automatic_not_null(address, facets):
            continue
        if any(fnmatchcase(name, pattern) for pattern in ignore):
            ignored.append(str(address))
            continue
        kept[address] = (ident, facets)
    needs = _needs({ident: address for address, (ident, _) in kept.items()}, edges)
    objects = {
        address: _object(address, facets, needs.get(address, ()), implied)
        for address, (_, facets) in kept.items()
    }
    return Snapshot(
        version_num=version_num,
        objects={address: objects[address] for address in sorted(objects)} | mentioned(objects),
        implied_grants=implied,
        ignored=tuple(sorted(ignored)),
    )


def _relation_of(address: Address, facets: Mapping[str, Value]) -> tuple[str, ...] | None:
    """The relation on which an object hangs, None for one that stands alone."""
    if address.kind in OF_RELATION:
        return address.path[:2]
    if address.kind == "index":
        return tuple(facets["#table"])
    if address.kind == "sequence" and facets["owned_by"]:
        return tuple(facets["owned_by"][:2])
    return None


def _is_automatic_not_null(address: Address, facets: Mapping[str, Value]) -> bool:
    """Whether PostgreSQL 18 chose the name: table_column_not_null, cut to 63 bytes, perhaps numbered."""
    if facets["not_valid"] or "NO INHERIT" in facets["definition"] or facets["comment"] is not None:
        return False
    _, table, name = address.path
    stem, label, digits = name.rpartition("_not_null")
    if not label or (digits and not digits.isdigit()):
        return False
    column = facets["columns"][0]
    if stem == f"{table}_{column}":
        return True
    head, _, tail = stem.partition("_")
    longest = len(f"{table}_{column}_not_null".encode()) > 63
    return longest and table.startswith(head) and bool(tail)


def _needs(
    addresses: Mapping[_Id, Address], edges: Sequence[tuple[int, int, int, int, int, int, str]]
) -> dict[Address, set[Address]]:
    """Dependencies between addresses; what the catalog hides inside an object counts as that object."""
    owner: dict[tuple[int, int], _Id] = {}
    for classid, objid, subid, refclass, refobj, refsub, kind in edges:
        leads = kind in "ie" or (kind == "a" and (classid, objid) not in owner)
        if leads and subid == 0 and (kind == "e" or (classid, objid, 0) not in addresses):
            owner[classid, objid] = (refclass, refobj, refsub)

    def resolve(ident: _Id) -> Address | None:
        for _ in range(8):
            found = addresses.get(ident) or addresses.get((*ident[:2], 0))
            if found is not None:
                return found
            above = owner.get(ident[:2])
            if above is None:
                return None
            ident = above
        return None

    cache: dict[_Id, Address | None] = {}
    needs: dict[Address, set[Address]] = {}
    for classid, objid, subid, refclass, refobj, refsub, _ in edges:
        ident, ref = (classid, objid, subid), (refclass, refobj, refsub)
        for one in (ident, ref):
            if one not in cache:
                cache[one] = resolve(one)
        user, used = cache[ident], cache[ref]
        if user is not None and used is not None and user != used:
            needs.setdefault(user, set()).add(used)
    return needs


def _object(
    address: Address,
    raw: Mapping[str, Value],
    needs: Iterable[Address],
    implied: Mapping[str, tuple[Value, ...]],
) -> Object:
    facets: dict[str, Value] = {}
    context: dict[str, Value] = {}
    for key, value in raw.items():
        if value is None:
            continue
        if key.startswith("#"):
            context[key[1:]] = value
        elif key == "sequence":
            facets[key] = {**value, "grants": _explicit(value["grants"], implied.get("s", ()))}
        elif key in ("grants", "privileges"):
            grants = list(_canonical(value))
            if grants != list(implied.get(GRANT_LETTERS.get(address.kind, ""), ())):
                facets[key] = grants
        else:
            facets[key] = value
    needed = {*needs, *_containers(address)}
    if address.kind == "sequence" and "owned_by" in facets:
        needed -= {
            Address("table", tuple(facets["owned_by"][:2])),
            Address("column", tuple(facets["owned_by"])),
        }
    return Object(address, facets, context, frozenset(needed))


def _explicit(grants: Iterable[list[Value]] | None, implied: Sequence[Value]) -> list[Value] | None:
    """Grants in their one order, None where they are the kind's own."""
    listed = None if grants is None else list(_canonical(grants))
    return None if listed == list(implied) else listed


def _containers(address: Address) -> list[Address]:
    """Objects that hold this one, in addition to what `pg_depend` tells."""
    if address.kind == "default":
        return [Address("column", address.path)]
    if address.kind == "column":
        return [Address("table", address.path[:2])]
    if address.kind == "extension member":
        return [Address("extension", address.path[:1])]
    if address.kind == "default privileges" and address.path[0]:
        return [Address("schema", address.path[:1])]
    return []


def _canonical(grants: Iterable[list[Value]]) -> tuple[Value, ...]:
    return tuple(sorted((list(grant) for grant in grants), key=lambda grant: (grant[0] or "", *grant[1:])))
