"""Columns: their definition, what it cannot say, and how they change in place."""

from __future__ import annotations

from dataclasses import replace

from pgsluice.pipeline.generate.counters import identity_options, identity_steps
from pgsluice.pipeline.generate.lineage import joins_with, keepers, leaves_parent, must_be_made_anew
from pgsluice.pipeline.generate.naming import alter_column, ident, literal, options, qualified
from pgsluice.pipeline.generate.not_null import is_plain, name_not_null, written_not_null
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.generate.type_change import change_type, type_dependants
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Backfill, Hazard, Phase, RowCheck, Work


def column_definition(column: Object, default: str | None, *, not_null: str | None) -> str:
    """A column as `create table` and `add column` write it; `not_null` as `written_not_null` gives it."""
    words = [ident(column.path[2]), column.get("type")]
    if column.get("fdw_options"):
        listed = ", ".join(
            f"{ident(key)} {literal(value)}" for key, value in sorted(column.get("fdw_options").items())
        )
        words.append(f"OPTIONS ({listed})")
    if column.get("collation"):
        words.append(f"COLLATE {qualified(column.get('collation'))}")
    if column.get("generated"):
        how, expression = column.get("generated")
        words.append(f"GENERATED ALWAYS AS ({expression}) {how.upper()}")
    elif column.get("sequence"):
        words.append(f"GENERATED {column.get('identity').upper()} AS IDENTITY{identity_options(column)}")
    elif default is not None:
        words.append(f"DEFAULT {default}")
    if not_null is not None:
        words.append(not_null)
    return " ".join(words)


def column_leftovers(column: Object, scene: Scene, *, is_bare: bool = False) -> list[Step]:
    """What `column_definition` cannot say: storage, compression, statistics, options."""
    steps = _tuning(None, column) if column.get("inherited") != "only" else []
    if is_bare and column.get("not_null") and column.get("inherited") is None:
        primary = any(
            one.get("type") == "p" and column.path[2] in one.get("columns")
            for one in scene.parts[column.path[:2]]
        )
        if not primary:
            steps.append(Step(f"{alter_column(column.path)} SET NOT NULL", Phase.EXPAND))
    return steps


def add_column(new: Object, scene: Scene, *, default: str | None) -> list[Step]:
    """`add column`; a `not null` one without a value of its own waits for its backfill."""
    comes_along = new.get("inherited") == "only" and not joins_with(new, scene)
    if comes_along or _is_of_type(new.address, scene):
        return []
    table = qualified(new.path[:2])
    owes = new.get("not_null") and default is None and not new.get("identity") and not new.get("generated")
    not_null = written_not_null(new, scene) if not owes else None
    backfill = Backfill(new.path[0], new.path[1], new.path[2], new.get("type")) if owes else None
    steps = [
        Step(
            f"ALTER TABLE {table} ADD COLUMN {column_definition(new, default, not_null=not_null)}",
            Phase.EXPAND,
            _rewrite(new),
            backfill=backfill,
        )
    ]
    if owes:
        named = scene.not_nulls.get(new.path)
        if named is not None and is_plain(named) and named.get("inherited") is None:
            steps += [replace(step, work=Work.FILL_COLUMN) for step in name_not_null(named)]
        else:
            steps.append(
                Step(
                    f"{alter_column(new.path)} SET NOT NULL", Phase.ENFORCE, _scan(new), work=Work.FILL_COLUMN
                )
            )
    return steps + column_leftovers(new, scene)


def _rewrite(column: Object) -> tuple[Hazard, ...]:
    if column.get("identity") or (column.get("generated") or [""])[0] == "stored":
        return (
            Hazard("rewrites-table", f"{'.'.join(column.path[:2])} is rewritten under an exclusive lock"),
        )
    return ()


def _scan(column: Object) -> tuple[Hazard, ...]:
    return (Hazard("scans-table", f"{'.'.join(column.path[:2])} is scanned under an exclusive lock"),)


def _create(new: Object, scene: Scene) -> list[Step]:
    default = scene.after.objects.get(Address("default", new.path))
    return add_column(new, scene, default=default.get("expression") if default else None)


def _is_of_type(column: Address, scene: Scene) -> bool:
    """Whether the column comes and goes with the composite type of its typed table."""
    tables = [one.objects.get(Address("table", column.path[:2])) for one in (scene.before, scene.after)]
    types = [table.get("of_type") for table in tables if table is not None]
    return len(types) == 2 and types[0] is not None and types[0] == types[1]


def _drop(old: Object, scene: Scene) -> list[Step]:
    comes_along = old.get("inherited") == "only" and not leaves_parent(old, scene)
    if comes_along or _is_of_type(old.address, scene):
        return []
    name = ".".join(old.path)
    loss = None if old.get("generated") else f"column {name} and its values"
    hazards = (Hazard("drops-column", loss),) if loss else ()
    stay, go = keepers(old, scene)
    column = ident(old.path[2])
    only = "ONLY " if stay else ""
    steps = [
        Step(
            f"ALTER TABLE {only}{qualified(old.path[:2])} DROP COLUMN {column}",
            Phase.RETIRE,
            hazards,
            loss=loss,
        )
    ]
    below = [f"ALTER TABLE {qualified(child.path[:2])} DROP COLUMN {column}" for child in go if stay]
    return steps + [Step(sql, Phase.RETIRE, hazards, loss=loss) for sql in below]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if "inherited" in facets and must_be_made_anew(old, new, scene):
        return Alteration((), frozenset({Address("table", old.path[:2])}))
    if new.get("inherited") == "only" and old.get("inherited") == "only" and not scene.settling:
        facets -= {"type", "collation", "not_null", "generated", "identity", "sequence"}
    if _is_of_type(old.address, scene):
        facets -= {"type", "collation"}
    if "generated" in facets and not _can_keep_values(old, new):
        return None
    steps: list[Step] = []
    disturbs: frozenset[Address] = frozenset()
    head = alter_column(new.path)
    if "generated" in facets:
        steps.append(Step(f"{head} DROP EXPRESSION", Phase.EXPAND))
    if old.get("sequence") and not new.get("sequence"):
        steps.append(Step(f"{head} DROP IDENTITY", Phase.PREPARE))
    if "not_null" in facets and not new.get("not_null"):
        steps.append(Step(f"{head} DROP NOT NULL", Phase.PREPARE))
    if facets & {"type", "collation"}:
        steps.append(change_type(old, new, scene))
        disturbs = type_dependants(old.address, scene)
    if "not_null" in facets and new.get("not_null"):
        steps.append(_set_not_null(new, scene))
    if facets & {"identity", "sequence"} and new.get("sequence"):
        steps += identity_steps(old, new)
    return Alteration(tuple(steps + _tuning(old, new)), disturbs)


def _can_keep_values(old: Object, new: Object) -> bool:
    """A stored generated column may become plain; every other change of generation is a new column."""
    return bool(old.get("generated")) and old.get("generated")[0] == "stored" and not new.get("generated")


def _set_not_null(new: Object, scene: Scene) -> Step:
    table, column = qualified(new.path[:2]), ident(new.path[2])
    check = RowCheck(
        rows=f"select * from {table} where {column} is null",
        message=f"column {'.'.join(new.path)} holds nulls and is to become not null",
        hint="fill them in block preflight or expand of the migration's template, before the check runs",
    )
    known = Address("column", new.path) in scene.before.objects
    return Step(
        f"{alter_column(new.path)} SET NOT NULL",
        Phase.ENFORCE,
        _scan(new),
        checks=(check,) if known else (),
        work=Work.FILL_COLUMN,
    )


def _tuning(old: Object | None, new: Object) -> list[Step]:
    head, steps = alter_column(new.path), []

    def differs(facet: str) -> bool:
        return bool((old.get(facet) if old else None) != new.get(facet))

    if differs("storage"):
        steps.append(
            Step(
                f"{head} SET STORAGE {(new.get('storage') or new.get('type_storage')).upper()}", Phase.INSTALL
            )
        )
    if differs("compression"):
        steps.append(Step(f"{head} SET COMPRESSION {new.get('compression') or 'default'}", Phase.INSTALL))
    if differs("statistics"):
        value = new.get("statistics")
        steps.append(Step(f"{head} SET STATISTICS {-1 if value is None else value}", Phase.INSTALL))
    if differs("options"):
        was, now = (old.get("options") if old else None) or {}, new.get("options") or {}
        if was.keys() - now.keys():
            steps.append(
                Step(
                    f"{head} RESET ({', '.join(map(ident, sorted(was.keys() - now.keys())))})", Phase.INSTALL
                )
            )
        if now:
            steps.append(Step(f"{head} SET ({options(now)})", Phase.INSTALL))
    return steps


COLUMN = Kind(_create, _drop, _alter)
