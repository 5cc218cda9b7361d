"""Sequences and the column that owns one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.counters import restart_if_unused, sequence_changes, sequence_words
from pgsluice.pipeline.generate.naming import ident, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object


def _create(new: Object, scene: Scene) -> list[Step]:
    words = sequence_words(dict(new.facets))
    if new.get("type") != "bigint":
        words.insert(0, f"AS {new.get('type')}")
    kind = "UNLOGGED SEQUENCE" if new.get("persistence") else "SEQUENCE"
    return [Step(" ".join([f"CREATE {kind} {qualified(new.path)}", *words]), Phase.EXPAND)]


def own_sequence(sequence: Object) -> Step:
    """Tie a sequence to its column, or to none."""
    owner = qualified(sequence.get("owned_by")) if sequence.get("owned_by") else "NONE"
    return Step(f"ALTER SEQUENCE {qualified(sequence.path)} OWNED BY {owner}", Phase.EXPAND)


def give_sequence(sequence: Object, to: str | None) -> Step:
    """Let a sequence, which is tied to no column, change hands; None for whoever runs the migration."""
    target = ident(to) if to is not None else "CURRENT_USER"
    return Step(f"ALTER SEQUENCE {qualified(sequence.path)} OWNER TO {target}", Phase.EXPAND)


def disown_sequence(sequence: Object) -> Step:
    """Untie a sequence, so that it outlives its table."""
    return Step(f"ALTER SEQUENCE {qualified(sequence.path)} OWNED BY NONE", Phase.PREPARE)


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP SEQUENCE {qualified(old.path)}", Phase.RETIRE)]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration:
    words = sequence_changes(dict(old.facets), dict(new.facets))
    facets = changed(old, new)
    if "type" in facets:
        words.insert(0, f"AS {new.get('type')}")
    name = qualified(new.path)
    sql = f"ALTER SEQUENCE {name} {' '.join(words)}"
    sql = restart_if_unused(sql, old=dict(old.facets), new=dict(new.facets), name=name)
    steps = [Step(sql, Phase.EXPAND)] if words else []
    if "persistence" in facets:
        word = "UNLOGGED" if new.get("persistence") else "LOGGED"
        steps.append(Step(f"ALTER SEQUENCE {name} SET {word}", Phase.EXPAND))
    return Alteration(tuple(steps))


SEQUENCE = Kind(_create, _drop, _alter)
