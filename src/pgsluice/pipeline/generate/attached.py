"""Triggers, rules, policies and extended statistics: what hangs on a relation; and event triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.lineage import brought_by
from pgsluice.pipeline.generate.naming import ident, literal, qualified, role
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object


def _create_trigger(new: Object, scene: Scene) -> list[Step]:
    if new.get("inherited") == "only":
        return _enabled(new, "TRIGGER") if scene.settling and new.get("enabled") else []
    return [
        Step(str(new.get("definition")), Phase.INSTALL),
        *(_enabled(new, "TRIGGER") if new.get("enabled") else []),
    ]


def _enabled(new: Object, word: str) -> list[Step]:
    state = (new.get("enabled") or "enable").upper()
    only = "ONLY " if new.get("table_kind") == "p" else ""
    return [
        Step(
            f"ALTER TABLE {only}{qualified(new.path[:2])} {state} {word} {ident(new.path[2])}", Phase.INSTALL
        )
    ]


def _drop_trigger(old: Object, scene: Scene) -> list[Step]:
    if old.get("inherited") == "only":
        return []
    return [Step(f"DROP TRIGGER {ident(old.path[2])} ON {qualified(old.path[:2])}", Phase.RETIRE)]


def _alter_trigger(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"enabled"}:
        return Alteration(tuple(_enabled(new, "TRIGGER")))
    if new.get("inherited") == "only" and old.get("inherited") != "only":
        above = brought_by(new, scene.after)
        return Alteration() if above in scene.before.objects else None
    return Alteration() if new.get("inherited") == "only" or not facets else None


def _create_rule(new: Object, scene: Scene) -> list[Step]:
    sql = str(new.get("definition")).rstrip().removesuffix(";")
    return [Step(sql, Phase.INSTALL), *(_enabled(new, "RULE") if new.get("enabled") else [])]


def _drop_rule(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP RULE {ident(old.path[2])} ON {qualified(old.path[:2])}", Phase.RETIRE)]


def _alter_rule(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"enabled"}:
        return Alteration(tuple(_enabled(new, "RULE")))
    return None if facets else Alteration()


def _create_policy(new: Object, scene: Scene) -> list[Step]:
    lines = [f"CREATE POLICY {ident(new.path[2])} ON {qualified(new.path[:2])}"]
    if new.get("restrictive"):
        lines.append("AS RESTRICTIVE")
    lines.append(f"FOR {new.get('command')}")
    lines.append(f"TO {', '.join(sorted(role(name) for name in new.get('roles')))}")
    if new.get("using") is not None:
        lines.append(f"USING ({new.get('using')})")
    if new.get("check") is not None:
        lines.append(f"WITH CHECK ({new.get('check')})")
    return [Step("\n  ".join(lines), Phase.INSTALL)]


def _drop_policy(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP POLICY {ident(old.path[2])} ON {qualified(old.path[:2])}", Phase.RETIRE)]


def _alter_policy(old: Object, new: Object, scene: Scene) -> Alteration | None:
    return None if changed(old, new) else Alteration()


def _create_statistics(new: Object, scene: Scene) -> list[Step]:
    return [
        Step(str(new.get("definition")), Phase.INSTALL),
        *(_target(new) if new.get("target") is not None else []),
    ]


def _target(new: Object) -> list[Step]:
    value = new.get("target")
    return [
        Step(
            f"ALTER STATISTICS {qualified(new.path)} SET STATISTICS {-1 if value is None else value}",
            Phase.INSTALL,
        )
    ]


def _drop_statistics(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP STATISTICS {qualified(old.path)}", Phase.RETIRE)]


def _alter_statistics(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"target"}:
        return Alteration(tuple(_target(new)))
    return None if facets else Alteration()


def _create_event_trigger(new: Object, scene: Scene) -> list[Step]:
    tags = (
        f"\n  WHEN TAG IN ({', '.join(literal(tag) for tag in new.get('tags'))})" if new.get("tags") else ""
    )
    sql = (
        f"CREATE EVENT TRIGGER {ident(new.path[0])} ON {new.get('event')}{tags}\n"
        f"  EXECUTE FUNCTION {new.get('function')}()"
    )
    return [Step(sql, Phase.RETIRE), *(_event_enabled(new) if new.get("enabled") else [])]


def _event_enabled(new: Object) -> list[Step]:
    return [
        Step(
            f"ALTER EVENT TRIGGER {ident(new.path[0])} {(new.get('enabled') or 'enable').upper()}",
            Phase.RETIRE,
        )
    ]


def _drop_event_trigger(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP EVENT TRIGGER {ident(old.path[0])}", Phase.PREPARE)]


def _alter_event_trigger(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"enabled"}:
        return Alteration(tuple(_event_enabled(new)))
    return None if facets else Alteration()


TRIGGER = Kind(_create_trigger, _drop_trigger, _alter_trigger)
RULE = Kind(_create_rule, _drop_rule, _alter_rule)
POLICY = Kind(_create_policy, _drop_policy, _alter_policy)
STATISTICS = Kind(_create_statistics, _drop_statistics, _alter_statistics)
EVENT_TRIGGER = Kind(_create_event_trigger, _drop_event_trigger, _alter_event_trigger)
