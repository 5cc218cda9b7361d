"""Columns and their defaults."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from pgsluice.pipeline.generate.lineage import joins_with, keepers, must_be_made_anew
from pgsluice.pipeline.generate.naming import automatic, ident, literal, options, qualified
from pgsluice.pipeline.generate.not_null import is_plain, name_not_null, written_not_null
from pgsluice.pipeline.generate.spelling import keep_array_casts
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Backfill, Hazard, Phase, RowCheck, Work

# What must be gone while a column's type changes; PostgreSQL itself brings indexes and constraints along.
TYPE_DISTURBS: Final = frozenset(
    {"view", "materialized view", "rule", "policy", "trigger", "function", "column", "default", "publication"}
)

INTEGERS: Final = ("smallint", "integer", "bigint")
BOUNDS: Final = {
    "smallint": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
# Families inside which an assignment cast exists, so that no `using` is needed.
FAMILIES: Final = (
    ("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    ("text", "character varying", "character", "name"),
    ("date", "timestamp without time zone", "timestamp with time zone"),
    ("time without time zone", "time with time zone", "interval"),
)
# From the left to the right no value is lost.
WIDENS: Final = frozenset(
    {("smallint", "integer"), ("smallint", "bigint"), ("integer", "bigint"), ("smallint", "numeric"), ("integer", "numeric"),
     ("bigint", "numeric"), ("real", "double precision"), ("smallint", "double precision"), ("integer", "double precision"),
     ("character varying", "text"), ("name", "text"), ("date", "timestamp without time zone"), ("json", "jsonb"),
     ("date", "timestamp with time zone"), ("timestamp without time zone", "timestamp with time zone"),
     ("timestamp with time zone", "timestamp without time zone"), ("integer", "boolean"), ("bit", "bit varying")}
)  # fmt: skip


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
        words.append(f"GENERATED {column.get('identity').upper()} AS IDENTITY{_sequence_options(column)}")
    elif default is not None:
        words.append(f"DEFAULT {default}")
    if not_null is not None:
        words.append(not_null)
    return " ".join(words)


def _sequence_options(column: Object) -> str:
    spec = column.get("sequence")
    words = sequence_words(spec)
    schema, table, name = column.path
    if spec["schema"] != schema or spec["name"] != automatic(table, name, "seq"):
        words.insert(0, f"SEQUENCE NAME {qualified((spec['schema'], spec['name']))}")
    return f" ({' '.join(words)})" if words else ""


def sequence_words(spec: dict[str, Any]) -> list[str]:
    """The options of a sequence that are not at their default, in the order of `create sequence`."""
    up = spec["increment"] > 0
    lowest, highest = BOUNDS[spec["type"]]
    minimum, maximum = (1, highest) if up else (lowest, -1)
    words = []
    if spec["start"] != (spec["minimum"] if up else spec["maximum"]):
        words.append(f"START WITH {spec['start']}")
    if spec["increment"] != 1:
        words.append(f"INCREMENT BY {spec['increment']}")
    if spec["minimum"] != minimum:
        words.append(f"MINVALUE {spec['minimum']}")
    if spec["maximum"] != maximum:
        words.append(f"MAXVALUE {spec['maximum']}")
    if spec["cache"] != 1:
        words.append(f"CACHE {spec['cache']}")
    if spec["cycle"]:
        words.append("CYCLE")
    return words


def column_leftovers(column: Object, scene: Scene, *, is_bare: bool = False) -> list[Step]:
    """What `column_definition` cannot say: storage, compression, statistics, options."""
    steps = _tuning(None, column) if column.get("inherited") != "only" else []
    if is_bare and column.get("not_null") and column.get("inherited") is None:
        primary = any(
            one.get("type") == "p" and column.path[2] in one.get("columns")
            for one in scene.parts[column.path[:2]]
        )
        if not primary:
            steps.append(Step(f"{_head(column)} SET NOT NULL", Phase.EXPAND))
    return steps


def _head(column: Object) -> str:
    return f"ALTER TABLE {qualified(column.path[:2])} ALTER COLUMN {ident(column.path[2])}"


def add_column(new: Object, scene: Scene, *, default: str | None) -> list[Step]:
    """`add column`; a `not null` one without a value of its own waits for its backfill."""
    comes_along = new.get("inherited") == "only" and not joins_with(new, scene)
    if comes_along or _is_of_type(new.address, scene):
        return []
    table = qualified(new.path[:2])
    owes = new.get("not_null") and default is None and not new.get("identity") and not new.get("generated")
    not_null = written_not_null(new, scene) if not owes else None
    backfill = Backfill(*new.path, new.get("type")) if owes else None
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
            steps.append(Step(f"{_head(new)} SET NOT NULL", Phase.ENFORCE, _scan(new), work=Work.FILL_COLUMN))
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
    if old.get("inherited") == "only" or _is_of_type(old.address, scene):
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
    head = _head(new)
    if "generated" in facets:
        steps.append(Step(f"{head} DROP EXPRESSION", Phase.EXPAND))
    if old.get("sequence") and not new.get("sequence"):
        steps.append(Step(f"{head} DROP IDENTITY", Phase.PREPARE))
    if "not_null" in facets and not new.get("not_null"):
        steps.append(Step(f"{head} DROP NOT NULL", Phase.PREPARE))
    if facets & {"type", "collation"}:
        steps.append(_change_type(old, new))
        disturbs = type_dependants(old.address, scene)
    if "not_null" in facets and new.get("not_null"):
        steps.append(_set_not_null(new, scene))
    if facets & {"identity", "sequence"} and new.get("sequence"):
        steps += _identity(old, new)
    return Alteration(tuple(steps + _tuning(old, new)), disturbs)


def type_dependants(column: Address, scene: Scene) -> frozenset[Address]:
    """What must be torn down while the type of `column` changes."""
    found = {
        user
        for user in scene.users_of(column, TYPE_DISTURBS)
        if user.kind != "column" or scene.before.objects[user].get("generated")
    }
    for user in scene.users_of(column, {"constraint", "index"}):
        obj = scene.before.objects[user]
        # PostgreSQL itself makes the others anew, from what it prints: not all of it reads back as it was
        if obj.get("type") == "f" or keep_array_casts(str(obj.get("definition"))) != obj.get("definition"):
            found.add(user)
    return frozenset(found)


def _can_keep_values(old: Object, new: Object) -> bool:
    """A stored generated column may become plain; every other change of generation is a new column."""
    return bool(old.get("generated")) and old.get("generated")[0] == "stored" and not new.get("generated")


def _change_type(old: Object, new: Object) -> Step:
    was, now = old.get("type"), new.get("type")
    sql = f"{_head(new)} TYPE {now}"
    if new.get("collation"):
        sql += f" COLLATE {qualified(new.get('collation'))}"
    if was != now and not _assigns(was, now):
        sql += f" USING {_through_text(old, new)}::{now}"
    hazards = [Hazard("rewrites-table", f"{'.'.join(new.path[:2])} may be rewritten under an exclusive lock")]
    loss = None
    if was != now and _narrows(was, now):
        loss = f"values of {'.'.join(new.path)} that do not fit {now} (was {was})"
        hazards.append(Hazard("narrows-type", loss))
    return Step(sql, Phase.EXPAND, tuple(hazards), loss=loss)


def _through_text(old: Object, new: Object) -> str:
    """Between two types of the schema's own no cast exists; their text forms often agree."""
    own = [{one.kind for one in obj.needs} & {"enum", "composite", "range", "domain"} for obj in (old, new)]
    return (
        f"{ident(new.path[2])}::text" if all(own) and own != [{"domain"}, {"domain"}] else ident(new.path[2])
    )


def _bare(type_name: str) -> tuple[str, tuple[int, ...]]:
    """A type without its modifiers, and those: `numeric(10,2)` gives numeric and (10, 2)."""
    match = re.search(r"\(([\d, ]+)\)", type_name)
    numbers = tuple(int(part) for part in match[1].split(",")) if match else ()
    return re.sub(r"\([\d, ]+\)", "", type_name), numbers


def _assigns(was: str, now: str) -> bool:
    old, new = _bare(was)[0], _bare(now)[0]
    return old == new or any(old in family and new in family for family in FAMILIES)


def _narrows(was: str, now: str) -> bool:
    (old, limits), (new, new_limits) = _bare(was), _bare(now)
    if old == new:
        if not new_limits:
            return False
        if not limits:
            return True
        if old == "numeric":
            whole, scale = limits[0] - (limits[1:] or (0,))[0], (limits[1:] or (0,))[0]
            new_whole, new_scale = new_limits[0] - (new_limits[1:] or (0,))[0], (new_limits[1:] or (0,))[0]
            return new_whole < whole or new_scale < scale
        return new_limits[0] < limits[0]
    if new == "text" and not new_limits:
        return False
    return bool(new_limits) or (old, new) not in WIDENS


def _set_not_null(new: Object, scene: Scene) -> Step:
    table, column = qualified(new.path[:2]), ident(new.path[2])
    check = RowCheck(
        rows=f"select * from {table} where {column} is null",
        message=f"column {'.'.join(new.path)} holds nulls and is to become not null",
        hint="fill them in block preflight or expand of the migration's template, before the check runs",
    )
    known = Address("column", new.path) in scene.before.objects
    return Step(
        f"{_head(new)} SET NOT NULL",
        Phase.ENFORCE,
        _scan(new),
        checks=(check,) if known else (),
        work=Work.FILL_COLUMN,
    )


def _identity(old: Object, new: Object) -> list[Step]:
    head, spec = _head(new), new.get("sequence")
    if old.get("sequence") is None:
        kind = new.get("identity").upper()
        steps = [Step(f"{head} ADD GENERATED {kind} AS IDENTITY{_sequence_options(new)}", Phase.ENFORCE)]
        return [*steps, *_after_existing(new)]
    words: list[str] = []
    if old.get("identity") != new.get("identity"):
        words.append(f"SET GENERATED {new.get('identity').upper()}")
    words += [f"SET {word}" for word in sequence_changes(old.get("sequence"), spec)]
    return [Step(f"{head} {' '.join(words)}", Phase.EXPAND)] if words else []


def _after_existing(new: Object) -> list[Step]:
    """A new counter starts behind the ids that are already there."""
    table, column, spec = qualified(new.path[:2]), ident(new.path[2]), new.get("sequence")
    function, beyond = ("max", ">=") if spec["increment"] > 0 else ("min", "<=")
    sequence = literal(qualified((spec["schema"], spec["name"])))
    sql = (
        f"SELECT pg_catalog.setval({sequence}, pg_catalog.{function}({column}))\nFROM {table}\n"
        f"HAVING pg_catalog.{function}({column}) {beyond} {spec['start']}"
    )
    return [Step(sql, Phase.ENFORCE)]


def counters_after_rows(table: Object, scene: Scene) -> list[Step]:
    """Identity counters of a refilled table, set behind the ids that came back."""
    return [
        Step(step.sql, Phase.EXPAND)
        for column in scene.parts[table.path]
        if column.get("sequence")
        for step in _after_existing(column)
    ]


def sequence_changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The option words that lead from one sequence to another."""
    words = []
    if old["increment"] != new["increment"]:
        words.append(f"INCREMENT BY {new['increment']}")
    if old["minimum"] != new["minimum"]:
        words.append(f"MINVALUE {new['minimum']}")
    if old["maximum"] != new["maximum"]:
        words.append(f"MAXVALUE {new['maximum']}")
    if old["start"] != new["start"]:
        words.append(f"START WITH {new['start']}")
    if old["cache"] != new["cache"]:
        words.append(f"CACHE {new['cache']}")
    if old["cycle"] != new["cycle"]:
        words.append("CYCLE" if new["cycle"] else "NO CYCLE")
    return words


def _tuning(old: Object | None, new: Object) -> list[Step]:
    head, steps = _head(new), []

    def differs(facet: str) -> bool:
        return (old.get(facet) if old else None) != new.get(facet)

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


def _create_default(new: Object, scene: Scene) -> list[Step]:
    if (
        scene.after.objects[Address("column", new.path)].get("inherited") == "only"
        and not scene.settling
        and _follows_parent(new, scene)
    ):
        return []
    return [Step(f"{_head(new)} SET DEFAULT {new.get('expression')}", Phase.EXPAND)]


def _follows_parent(new: Object, scene: Scene) -> bool:
    table = scene.after.objects[Address("table", new.path[:2])]
    parents = [table.get("parent")] if table.get("parent") else table.get("inherits") or []
    above = [scene.after.objects.get(Address("default", (*parent, new.path[2]))) for parent in parents]
    return any(one is not None and one.get("expression") == new.get("expression") for one in above)


def _drop_default(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"{_head(old)} DROP DEFAULT", Phase.EXPAND)]


def _alter_default(old: Object, new: Object, scene: Scene) -> Alteration | None:
    if any(one.kind == "function" and one not in scene.after.objects for one in old.needs):
        return None  # its routine goes before another of that name comes
    return Alteration(tuple(_create_default(new, scene)))


COLUMN = Kind(_create, _drop, _alter)
DEFAULT = Kind(_create_default, _drop_default, _alter_default)
