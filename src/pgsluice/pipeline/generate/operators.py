"""Operators, operator classes and families, casts, collations and conversions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.naming import ident, identity, literal, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP {identity(old)}", Phase.RETIRE)]


def _only_rebuilt(old: Object, new: Object, scene: Scene) -> Alteration | None:
    return None if changed(old, new) else Alteration()


def _operator_name(text: str) -> str:
    """An operator as `regoper` prints it, in the form that a clause of `create operator` takes."""
    return f"OPERATOR({text})" if "." in text else text


def _create_operator(new: Object, scene: Scene) -> list[Step]:
    schema, name, left, right = new.path
    words = [f"FUNCTION = {new.get('function')}"]
    words += [
        f"{side} = {type_name}"
        for side, type_name in (("LEFTARG", left), ("RIGHTARG", right))
        if type_name != "NONE"
    ]
    for facet, word in (("commutator", "COMMUTATOR"), ("negator", "NEGATOR")):
        if new.get(facet):
            words.append(f"{word} = {_operator_name(new.get(facet))}")
    words += [
        f"{word} = {new.get(facet)}"
        for facet, word in (("restrict", "RESTRICT"), ("join", "JOIN"))
        if new.get(facet)
    ]
    words += [word for facet, word in (("hashes", "HASHES"), ("merges", "MERGES")) if new.get(facet)]
    listed = ",\n  ".join(words)
    return [Step(f"CREATE OPERATOR {ident(schema)}.{name} (\n  {listed}\n)", Phase.INSTALL)]


def _alter_operator(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets and facets <= {"restrict", "join"}:
        words = ", ".join(f"{facet.upper()} = {new.get(facet) or 'NONE'}" for facet in sorted(facets))
        return Alteration((Step(f"ALTER {identity(new)} SET ({words})", Phase.INSTALL),))
    return None if facets else Alteration()


def _create_family(new: Object, scene: Scene) -> list[Step]:
    implicit = Address("operator class", new.path)
    members = _members(new)
    by_class = scene.after.objects.get(implicit)
    if by_class is not None and by_class.get("family") == list(new.path[:2]) and not members:
        return []
    return [Step(f"CREATE {identity(new)}", Phase.INSTALL), *_change_members(new, "ADD", members.values())]


def _members(family: Object | None) -> dict[str, str]:
    """The loose operators and functions of a family: each as it is added, by the words that drop it."""
    found: dict[str, str] = {}
    for strategy, operator, sort, left, right in (family.get("operators") if family else None) or ():
        purpose = f" FOR ORDER BY {sort}" if sort else ""
        found[f"OPERATOR {strategy} ({left}, {right})"] = f"OPERATOR {strategy} {operator}{purpose}"
    for number, left, right, function in (family.get("functions") if family else None) or ():
        words = f"FUNCTION {number} ({left}, {right})"
        found[words] = f"{words} {function}"
    return found


def _change_members(family: Object, verb: str, members: Iterable[str]) -> list[Step]:
    listed = ",\n  ".join(members)
    return [Step(f"ALTER {identity(family)} {verb}\n  {listed}", Phase.INSTALL)] if listed else []


def _alter_family(old: Object, new: Object, scene: Scene) -> Alteration:
    was, now = _members(old), _members(new)
    gone = [words for words, added in was.items() if now.get(words) != added]
    come = [added for words, added in now.items() if was.get(words) != added]
    return Alteration((*_change_members(new, "DROP", gone), *_change_members(new, "ADD", come)))


def _drop_family(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP {identity(old)}", Phase.RETIRE)]


def _create_class(new: Object, scene: Scene) -> list[Step]:
    schema, name, method = new.path
    default = "DEFAULT " if new.get("default") else ""
    head = f"CREATE OPERATOR CLASS {qualified((schema, name))} {default}FOR TYPE {new.get('type')}"
    head += f" USING {ident(method)}"
    if new.get("family") != [schema, name]:
        head += f" FAMILY {qualified(new.get('family'))}"
    lines = []
    for strategy, operator, sort in new.get("operators") or []:
        lines.append(f"OPERATOR {strategy} {operator}" + (f" FOR ORDER BY {sort}" if sort else ""))
    for number, left, right, function in new.get("functions") or []:
        lines.append(f"FUNCTION {number} ({left}, {right}) {function}")
    if new.get("storage"):
        lines.append(f"STORAGE {new.get('storage')}")
    if not lines:
        lines.append(f"STORAGE {new.get('type')}")
    listed = ",\n  ".join(lines)
    return [Step(f"{head} AS\n  {listed}", Phase.INSTALL)]


def _create_cast(new: Object, scene: Scene) -> list[Step]:
    source, target = new.path
    how = f"WITH FUNCTION {new.get('function')}" if new.get("function") else "WITHOUT FUNCTION"
    if new.get("method") == "inout":
        how = "WITH INOUT"
    context = f" AS {new.get('context').upper()}" if new.get("context") else ""
    return [Step(f"CREATE CAST ({source} AS {target}) {how}{context}", Phase.INSTALL)]


def _create_collation(new: Object, scene: Scene) -> list[Step]:
    words = [f"provider = {new.get('provider')}"]
    if new.get("locale") is not None:
        words.append(f"locale = {literal(new.get('locale'))}")
    elif new.get("lc_collate") == new.get("lc_ctype"):
        words.append(f"locale = {literal(new.get('lc_collate'))}")
    else:
        words += [
            f"lc_collate = {literal(new.get('lc_collate'))}",
            f"lc_ctype = {literal(new.get('lc_ctype'))}",
        ]
    if new.get("nondeterministic"):
        words.append("deterministic = false")
    if new.get("rules") is not None:
        words.append(f"rules = {literal(new.get('rules'))}")
    return [Step(f"CREATE COLLATION {qualified(new.path)} ({', '.join(words)})", Phase.EXPAND)]


def _create_conversion(new: Object, scene: Scene) -> list[Step]:
    default = "DEFAULT " if new.get("default") else ""
    sides = f"{literal(new.get('from'))} TO {literal(new.get('to'))}"
    return [
        Step(
            f"CREATE {default}CONVERSION {qualified(new.path)} FOR {sides} FROM {new.get('function')}",
            Phase.INSTALL,
        )
    ]


OPERATOR = Kind(_create_operator, _drop, _alter_operator)
OPERATOR_FAMILY = Kind(_create_family, _drop_family, _alter_family)
OPERATOR_CLASS = Kind(_create_class, _drop, _only_rebuilt)
CAST = Kind(_create_cast, _drop, _only_rebuilt)
COLLATION = Kind(_create_collation, _drop, _only_rebuilt)
CONVERSION = Kind(_create_conversion, _drop, _only_rebuilt)
