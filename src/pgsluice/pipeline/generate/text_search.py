"""Text search dictionaries and configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.naming import ident, identity, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP {identity(old)}", Phase.RETIRE)]


def _create_dictionary(new: Object, scene: Scene) -> list[Step]:
    words = f"template = {new.get('template')}" + (f", {new.get('init')}" if new.get("init") else "")
    return [Step(f"CREATE TEXT SEARCH DICTIONARY {qualified(new.path)} ({words})", Phase.EXPAND)]


def _alter_dictionary(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"init"} and new.get("init"):
        was = {pair.split(" = ")[0] for pair in (old.get("init") or "").split(", ") if pair}
        now = {pair.split(" = ")[0] for pair in new.get("init").split(", ")}
        if was <= now:
            return Alteration(
                (
                    Step(
                        f"ALTER TEXT SEARCH DICTIONARY {qualified(new.path)} ({new.get('init')})",
                        Phase.EXPAND,
                    ),
                )
            )
    return None if facets else Alteration()


def _create_configuration(new: Object, scene: Scene) -> list[Step]:
    steps = [
        Step(
            f"CREATE TEXT SEARCH CONFIGURATION {qualified(new.path)} (parser = {new.get('parser')})",
            Phase.EXPAND,
        )
    ]
    return steps + _mappings({}, new)


def _mappings(was: dict[str, list[str]], new: Object) -> list[Step]:
    now = new.get("mappings") or {}
    head, steps = f"ALTER TEXT SEARCH CONFIGURATION {qualified(new.path)}", []
    for token in sorted(was.keys() | now.keys()):
        if was.get(token) == now.get(token):
            continue
        if token not in now:
            steps.append(Step(f"{head} DROP MAPPING FOR {ident(token)}", Phase.EXPAND))
        else:
            verb = "ALTER" if token in was else "ADD"
            steps.append(
                Step(f"{head} {verb} MAPPING FOR {ident(token)} WITH {', '.join(now[token])}", Phase.EXPAND)
            )
    return steps


def _alter_configuration(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets <= {"mappings"}:
        return Alteration(tuple(_mappings(old.get("mappings") or {}, new)))
    return None


DICTIONARY = Kind(_create_dictionary, _drop, _alter_dictionary)
CONFIGURATION = Kind(_create_configuration, _drop, _alter_configuration)
