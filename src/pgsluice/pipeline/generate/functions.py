"""Functions, procedures and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import identity, literal, qualified, signature
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step
from pgsluice.pipeline.statement import Hazard, Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object

STORED_USES: Final = frozenset({"index", "constraint", "column"})


def _create(new: Object, scene: Scene) -> list[Step]:
    return [Step(str(new.get("definition")).rstrip(), Phase.INSTALL, _unpinned(new))]


def _unpinned(new: Object) -> tuple[Hazard, ...]:
    head = str(new.get("definition")).split("\nAS ", 1)[0]
    if "SECURITY DEFINER" in head and "SET search_path" not in head:
        return (
            Hazard(
                "security-definer-path",
                f"{new.address} runs with its owner's rights on the caller's search_path",
            ),
        )
    return ()


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP {identity(old)}", Phase.RETIRE)]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    if old.get("definition") == new.get("definition"):
        return Alteration()
    if not _replaceable(old, new):
        return None
    stored = sorted(str(user) for user in scene.users_of(old.address, STORED_USES))
    hazards = _unpinned(new)
    if stored:
        hazards += (
            Hazard("stale-stored-values", f"{', '.join(stored)} keep values that the old body computed"),
        )
    return Alteration((Step(str(new.get("definition")).rstrip(), Phase.INSTALL, hazards),))


def _replaceable(old: Object, new: Object) -> bool:
    """Whether `create or replace` is allowed: same form, result, names and modes, no default taken away."""
    if old.get("form") != new.get("form") or old.get("result") != new.get("result"):
        return False
    if old.get("form") == "procedure" and old.get("types") != new.get("types"):
        return False
    if (old.get("modes") or []) != (new.get("modes") or []) or old.get("defaults") > new.get("defaults"):
        return False
    was, now = old.get("names") or [], new.get("names") or []
    now = [*now, *[""] * (len(was) - len(now))]
    return all(name in ("", other) for name, other in zip(was, now, strict=False))


def _create_aggregate(new: Object, scene: Scene) -> list[Step]:
    spec = new.get("aggregate")
    words = [f"SFUNC = {spec['sfunc']}", f"STYPE = {spec['stype']}"]
    plain = (
        ("sspace", "SSPACE"), ("finalfunc", "FINALFUNC"), ("combinefunc", "COMBINEFUNC"),
        ("serialfunc", "SERIALFUNC"), ("deserialfunc", "DESERIALFUNC"),
        ("msfunc", "MSFUNC"), ("minvfunc", "MINVFUNC"), ("mstype", "MSTYPE"),
        ("msspace", "MSSPACE"), ("mfinalfunc", "MFINALFUNC"), ("sortop", "SORTOP"), ("parallel", "PARALLEL"),
    )  # fmt: skip
    words += [f"{word} = {spec[key]}" for key, word in plain if key in spec]
    words += [
        f"{word} = {literal(spec[key])}"
        for key, word in (("initcond", "INITCOND"), ("minitcond", "MINITCOND"))
        if key in spec
    ]
    words += [
        word
        for key, word in (("finalfunc_extra", "FINALFUNC_EXTRA"), ("mfinalfunc_extra", "MFINALFUNC_EXTRA"))
        if key in spec
    ]
    modes = {"r": "READ_ONLY", "s": "SHAREABLE", "w": "READ_WRITE"}
    usual = "r" if spec["kind"] == "n" else "w"
    for key, word in (("finalfunc_modify", "FINALFUNC_MODIFY"), ("mfinalfunc_modify", "MFINALFUNC_MODIFY")):
        if spec.get(key, usual) != usual:
            words.append(f"{word} = {modes[spec[key]]}")
    if spec["kind"] == "h":
        words.append("HYPOTHETICAL")
    listed = ",\n  ".join(words)
    name, arguments = qualified(new.path[:2]), spec["arguments"] or "*"
    return [Step(f"CREATE AGGREGATE {name}({arguments}) (\n  {listed}\n)", Phase.INSTALL)]


def _drop_aggregate(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP AGGREGATE {signature(old)}", Phase.RETIRE)]


def _alter_aggregate(old: Object, new: Object, scene: Scene) -> Alteration | None:
    return Alteration() if old.get("aggregate") == new.get("aggregate") else None


FUNCTION = Kind(_create, _drop, _alter)
AGGREGATE = Kind(_create_aggregate, _drop_aggregate, _alter_aggregate)
