"""Counters: the options of sequences, alone or behind an identity column, and where they go on counting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.generate.naming import alter_column, automatic, ident, literal, qualified
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object

BOUNDS: Final = {
    "smallint": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}


def identity_options(column: Object) -> str:
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


def identity_steps(old: Object, new: Object) -> list[Step]:
    head, spec = alter_column(new.path), new.get("sequence")
    if old.get("sequence") is None:
        kind = new.get("identity").upper()
        steps = [Step(f"{head} ADD GENERATED {kind} AS IDENTITY{identity_options(new)}", Phase.ENFORCE)]
        return [*steps, *_after_existing(new)]
    words: list[str] = []
    if old.get("identity") != new.get("identity"):
        words.append(f"SET GENERATED {new.get('identity').upper()}")
    words += [f"SET {word}" for word in sequence_changes(old.get("sequence"), spec)]
    name = qualified((spec["schema"], spec["name"]))
    sql = restart_if_unused(f"{head} {' '.join(words)}", old=old.get("sequence"), new=spec, name=name)
    return [Step(sql, Phase.EXPAND)] if words else []


def restart_if_unused(sql: str, *, old: dict[str, Any], new: dict[str, Any], name: str) -> str:
    """The same change, where it must also move a counter that nobody has used yet inside its new bounds."""
    low, high = new["minimum"], new["maximum"]
    if low <= old["start"] <= high:
        return sql
    restart = f"{sql} RESTART WITH {new['start']}"
    return (
        "DO $pgsluice$\nBEGIN\n"
        f"  IF (SELECT NOT is_called AND last_value NOT BETWEEN {low} AND {high} FROM {name}) THEN\n"
        f"    EXECUTE {literal(restart)};\n"
        f"  ELSE\n    EXECUTE {literal(sql)};\n  END IF;\nEND\n$pgsluice$"
    )


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
