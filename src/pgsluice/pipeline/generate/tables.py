"""Tables: plain, partitioned, foreign, typed, inheriting; their storage, security and place in a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.columns import column_definition, column_leftovers
from pgsluice.pipeline.generate.lineage import join_parents, lacks_for_joining
from pgsluice.pipeline.generate.naming import ident, identity, literal, options, qualified
from pgsluice.pipeline.generate.not_null import written_not_null
from pgsluice.pipeline.generate.partitions import (
    attach_created,
    attach_partition,
    differs_from_tree,
    stays_in_tree,
    tree_checks,
)
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.statement import Hazard, Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Address, Object

# A change of these cannot be made on the table that is there.
FIXED: Final = frozenset({"form", "partition_key", "server"})


def create_table(
    new: Object,
    scene: Scene,
    *,
    columns: list[Object],
    defaults: dict[str, str],
    constraints: list[Object],
) -> list[Step]:
    """`create table` with its own columns, and the defaults and constraints that may stand inside."""
    foreign = "FOREIGN " if new.get("form") == "foreign" else ""
    head = f"CREATE {_persistence(new)}{foreign}TABLE {qualified(new.path)}"
    attached = new.get("parent") is not None and differs_from_tree(new, columns, scene)
    if attached:
        constraints = constraints + tree_checks(new, scene)
    lines = [f"CONSTRAINT {ident(one.path[2])} {constraint_body(one)}" for one in constraints]
    if new.get("parent") is not None and not attached:
        body = f" PARTITION OF {qualified(new.get('parent'))}"
        body += _block(lines) if lines else ""
        body += f"\n{new.get('bound')}"
    elif new.get("of_type") is not None:
        body = f" OF {new.get('of_type')}" + (_block(lines) if lines else "")
    else:
        own = [column for column in columns if attached or column.get("inherited") != "only"]
        body = _block([_column(column, defaults, attached, scene) for column in own] + lines)
        if new.get("inherits"):
            body += f"\nINHERITS ({', '.join(qualified(parent) for parent in new.get('inherits'))})"
    steps = [Step(head + body + _tail(new), Phase.EXPAND)]
    if attached:
        steps.append(attach_created(new))
    for column in columns:
        steps += column_leftovers(column, scene, is_bare=new.get("of_type") is not None)
    return steps + _switches(None, new)


def _column(column: Object, defaults: dict[str, str], attached: bool, scene: Scene) -> str:
    named = scene.not_nulls.get(column.path)
    not_null: str | None
    if attached and column.get("not_null"):
        not_null = f"CONSTRAINT {ident(named.path[2])} NOT NULL" if named is not None else "NOT NULL"
    else:
        not_null = written_not_null(column, scene)
    return column_definition(column, defaults.get(column.path[2]), not_null=not_null)


def _block(lines: list[str]) -> str:
    return " (\n  " + ",\n  ".join(lines) + "\n)" if lines else " ()"


def _persistence(new: Object) -> str:
    return "UNLOGGED " if new.get("persistence") == "unlogged" else ""


def _tail(new: Object) -> str:
    text = f"\nPARTITION BY {new.get('partition_key')}" if new.get("partition_key") else ""
    if new.get("access_method"):
        text += f"\nUSING {ident(new.get('access_method'))}"
    storage = _storage(new)
    if storage:
        text += f"\nWITH ({options(storage, order=new.get('option_order') or ())})"
    if new.get("tablespace"):
        text += f"\nTABLESPACE {ident(new.get('tablespace'))}"
    if new.get("server"):
        text += f"\nSERVER {ident(new.get('server'))}{foreign_options(new.get('server_options') or {})}"
    return text


def _storage(obj: Object) -> dict[str, str]:
    toast = {f"toast.{key}": value for key, value in (obj.get("toast_options") or {}).items()}
    return {**(obj.get("options") or {}), **toast}


def foreign_options(values: dict[str, str]) -> str:
    """An `options (…)` clause for foreign objects, empty for none."""
    return (
        f" OPTIONS ({', '.join(f'{ident(key)} {literal(value)}' for key, value in sorted(values.items()))})"
        if values
        else ""
    )


def foreign_option_changes(old: dict[str, str], new: dict[str, str]) -> str:
    """An `options (add …, set …, drop …)` clause."""
    words = [
        f"{'SET' if key in old else 'ADD'} {ident(key)} {literal(value)}"
        for key, value in sorted(new.items())
        if old.get(key) != value
    ]
    words += [f"DROP {ident(key)}" for key in sorted(old.keys() - new.keys())]
    return f"OPTIONS ({', '.join(words)})"


def constraint_body(one: Object) -> str:
    """A constraint's definition with the index storage that `pg_get_constraintdef` leaves out."""
    text = str(one.get("definition"))
    extra = f" WITH ({options(one.get('index_options'))})" if one.get("index_options") else ""
    if one.get("index_tablespace"):
        extra += f" USING INDEX TABLESPACE {ident(one.get('index_tablespace'))}"
    for word in (" WHERE ", " DEFERRABLE"):
        if extra and word in text:
            return text.replace(word, extra + word, 1)
    return text + extra


def _create(new: Object, scene: Scene) -> list[Step]:
    columns = [one for one in scene.parts[new.path] if one.kind == "column"]
    return create_table(new, scene, columns=columns, defaults={}, constraints=[])


def _drop(old: Object, scene: Scene) -> list[Step]:
    if old.get("form") == "foreign":
        return [Step(f"DROP {identity(old)}", Phase.RETIRE)]
    loss = f"table {'.'.join(old.path)} and its rows"
    return [Step(f"DROP {identity(old)}", Phase.RETIRE, (Hazard("drops-table", loss),), loss=loss)]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets & FIXED or ("inherits" in facets and lacks_for_joining(new, scene)):
        return None
    steps: list[Step] = []
    table = f"ALTER {identity(new)}"
    if facets & {"parent", "bound"} and new.get("parent") is not None:
        steps.append(attach_partition(old, new, scene))
    if "inherits" in facets:
        steps += join_parents(old, new)
    if "of_type" in facets:
        clause = f"OF {new.get('of_type')}" if new.get("of_type") else "NOT OF"
        steps.append(Step(f"{table} {clause}", Phase.EXPAND))
    if facets & {"options", "toast_options"}:
        steps += _set_storage(table, _storage(old), _storage(new))
    if "server_options" in facets:
        clause = foreign_option_changes(old.get("server_options") or {}, new.get("server_options") or {})
        steps.append(Step(f"{table} {clause}", Phase.INSTALL))
    rewrites = (Hazard("rewrites-table", f"{'.'.join(new.path)} is rewritten under an exclusive lock"),)
    if "persistence" in facets:
        steps.append(
            Step(
                f"{table} SET {new.get('persistence') or 'logged'}".upper().replace(table.upper(), table),
                Phase.ENFORCE,
                rewrites,
            )
        )
    if "tablespace" in facets:
        steps.append(
            Step(
                f"{table} SET TABLESPACE {ident(new.get('tablespace') or 'pg_default')}",
                Phase.ENFORCE,
                rewrites,
            )
        )
    if "access_method" in facets:
        steps.append(
            Step(
                f"{table} SET ACCESS METHOD {ident(new.get('access_method') or 'heap')}",
                Phase.ENFORCE,
                rewrites,
            )
        )
    keys = _keys_into(old, scene) if "bound" in facets and stays_in_tree(old, new) else frozenset()
    return Alteration(tuple(steps + _switches(old, new)), keys)


def _keys_into(partition: Object, scene: Scene) -> frozenset[Address]:
    """Foreign keys to the tree: no partition that they point into can be detached."""
    tree = partition.get("parent")
    return frozenset(
        address
        for address, obj in scene.before.objects.items()
        if address.kind == "constraint" and obj.get("type") == "f" and obj.get("references")[:2] == tree
    )


def _set_storage(table: str, old: dict[str, str], new: dict[str, str]) -> list[Step]:
    gone = sorted(old.keys() - new.keys())
    set_ = {key: value for key, value in new.items() if old.get(key) != value}
    steps = (
        [Step(f"{table} RESET ({', '.join(qualified(key.split('.', 1)) for key in gone)})", Phase.INSTALL)]
        if gone
        else []
    )
    return steps + ([Step(f"{table} SET ({options(set_)})", Phase.INSTALL)] if set_ else [])


def _switches(old: Object | None, new: Object) -> list[Step]:
    """Row security, replica identity and clustering: what a new table has off, an old one as it was."""
    steps: list[Step] = []
    table = f"ALTER TABLE {qualified(new.path)}"

    def differs(facet: str) -> bool:
        return bool((old.get(facet) if old else None) != new.get(facet))

    if differs("row_security"):
        lost = (Hazard("row-security-lost", f"row security of {'.'.join(new.path)} is switched off"),)
        on = new.get("row_security")
        steps.append(
            Step(
                f"{table} {'ENABLE' if on else 'DISABLE'} ROW LEVEL SECURITY",
                Phase.INSTALL,
                () if on else lost,
            )
        )
    if differs("force_row_security"):
        on = new.get("force_row_security")
        steps.append(Step(f"{table} {'FORCE' if on else 'NO FORCE'} ROW LEVEL SECURITY", Phase.INSTALL))
    if differs("replica_identity"):
        value = str(new.get("replica_identity") or "default")
        word = f"USING INDEX {ident(value[6:])}" if value.startswith("index ") else value.upper()
        steps.append(Step(f"{table} REPLICA IDENTITY {word}", Phase.INSTALL))
    if differs("clustered_on"):
        index = new.get("clustered_on")
        steps.append(
            Step(f"{table} {'CLUSTER ON ' + ident(index) if index else 'SET WITHOUT CLUSTER'}", Phase.INSTALL)
        )
    return steps


def carry_rows_aside(old: Object, values: list[str]) -> Step:
    """Keep a table's rows while it is rebuilt; the rows of its children are kept by themselves."""
    only = "" if old.get("form") == "partitioned" else "ONLY "
    listed = ", ".join(values)
    hazard = Hazard("rewrites-table", f"{'.'.join(old.path)} is rebuilt and its rows copied twice")
    return Step(
        f"CREATE TEMPORARY TABLE {_aside(old.address)} ON COMMIT DROP AS\n"
        f"SELECT {listed} FROM {only}{qualified(old.path)}",
        Phase.PREPARE,
        (hazard,),
    )


def bring_rows_back(new: Object, columns: list[str], values: list[str]) -> list[Step]:
    """Put the rows of a rebuilt table back."""
    listed = ", ".join(ident(column) for column in columns)
    aside = _aside(new.address)
    insert = (
        f"INSERT INTO {qualified(new.path)} ({listed})\nOVERRIDING SYSTEM VALUE\n"
        f"SELECT {', '.join(values)} FROM pg_temp.{aside}"
    )
    return [Step(insert, Phase.EXPAND), Step(f"DROP TABLE pg_temp.{aside}", Phase.EXPAND)]


def _aside(address: Address) -> str:
    return ident(f"aside_{'_'.join(address.path)}"[:60])


TABLE = Kind(_create, _drop, _alter)
