"""Owner, comments and grants: alike for every kind of object."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import ident, identity, literal, qualified, role
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.snapshot import Address, Object, Snapshot, Value
from pgsluice.pipeline.snapshot.reader import GRANT_LETTERS
from pgsluice.pipeline.statement import Hazard, Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DEFAULTS_FOR: Final = {
    "schema": "SCHEMAS", "table": "TABLES", "view": "TABLES", "materialized view": "TABLES",
    "sequence": "SEQUENCES", "function": "FUNCTIONS", "aggregate": "FUNCTIONS", "enum": "TYPES",
    "composite": "TYPES", "domain": "TYPES", "range": "TYPES", "base type": "TYPES",
}  # fmt: skip


def decorate_new(new: Object, scene: Scene) -> list[Step]:
    """Owner, comments and grants of an object that the plan creates."""
    steps = _owner(new) if new.get("owner") is not None else []
    steps += _comments(None, new)
    have = _initial_grants(new, scene.before)
    if new.get("owner") is not None:
        have = _given_to(str(new.get("owner")), have)
    steps += _grants(new, have, _grants_of(new, scene.after), scene) + _column_grants(None, new)
    return steps + _identity_sequence(None, new, scene) + _extensions(None, new)


def decorate_changed(old: Object, new: Object, scene: Scene) -> list[Step]:
    """Owner, comments and grants of an object that exists before and after."""
    steps = _owner(new) if old.get("owner") != new.get("owner") else []
    steps += _comments(old, new)
    have = _grants_of(old, scene.before)
    if old.get("owner") != new.get("owner"):
        have = _given_to(new.get("owner") or scene.before.runner, have)
    steps += _grants(new, have, _grants_of(new, scene.after), scene) + _column_grants(old, new)
    return steps + _identity_sequence(old, new, scene) + _extensions(old, new)


def _given_to(owner: str, grants: Iterable[Value]) -> Sequence[Value]:
    """The grants after `owner to`: what the new owner was granted becomes part of what an owner has."""
    merged: dict[tuple[str | None, str], bool] = {}
    for grantee, privilege, grantable in grants:
        key = ("@owner" if grantee == owner else grantee, privilege)
        merged[key] = merged.get(key, False) or grantable
    return [[*key, grantable] for key, grantable in merged.items()]


def _identity_sequence(old: Object | None, new: Object, scene: Scene) -> list[Step]:
    """Comment and grants of the sequence behind an identity column."""
    if new.kind != "column" or new.get("sequence") is None:
        return []  # from 17 on, a partition draws from its root's sequence
    now = new.get("sequence")
    was = (old.get("sequence") if old is not None else None) or {}
    name = qualified((now["schema"], now["name"]))
    steps: list[Step] = []
    if was.get("comment") != now["comment"]:
        steps.append(Step(f"COMMENT ON SEQUENCE {name} IS {_text(now['comment'])}", Phase.INSTALL))
    sequence = Object(Address("sequence", (now["schema"], now["name"])), {"grants": now["grants"]})
    if was:
        had = Object(sequence.address, {"grants": was.get("grants")})
        have = _grants_of(had, scene.before)
    else:
        have = _initial_grants(sequence, scene.before)
    return steps + _grants(sequence, have, _grants_of(sequence, scene.after), scene)


def _extensions(old: Object | None, new: Object) -> list[Step]:
    """The extensions with which the object is dropped."""
    was, now = set((old.get("extensions") if old else None) or ()), set(new.get("extensions") or ())
    return [
        Step(f"ALTER {identity(new)} {verb} ON EXTENSION {ident(name)}", Phase.INSTALL)
        for verb, names in (("NO DEPENDS", was - now), ("DEPENDS", now - was))
        for name in sorted(names)
    ]


def _owner(new: Object) -> list[Step]:
    target = ident(new.get("owner")) if new.get("owner") is not None else "CURRENT_USER"
    return [Step(f"ALTER {identity(new)} OWNER TO {target}", _phase(new))]


def _phase(new: Object) -> Phase:
    """An event trigger fires on what comes after it: it and all of its own come last."""
    return Phase.RETIRE if new.kind == "event trigger" else Phase.INSTALL


def _comments(old: Object | None, new: Object) -> list[Step]:
    steps: list[Step] = []
    if (old.get("comment") if old else None) != new.get("comment"):
        text = new.get("comment") if new.get("comment") is not None else new.get("default_comment")
        steps.append(Step(f"COMMENT ON {identity(new)} IS {_text(text)}", _phase(new)))
    was, now = (old.get("column_comments") if old else None) or {}, new.get("column_comments") or {}
    there = {one[0] for one in new.get("attributes") or new.get("columns") or ()}
    for column in sorted((was.keys() | now.keys()) & there):
        if was.get(column) != now.get(column):
            name = qualified((*new.path, column))
            steps.append(Step(f"COMMENT ON COLUMN {name} IS {_text(now.get(column))}", Phase.INSTALL))
    return steps


def _text(comment: str | None) -> str:
    return "NULL" if comment is None else literal(comment)


def _grants_of(obj: Object, snapshot: Snapshot) -> Sequence[Value]:
    implied = snapshot.implied_grants.get(GRANT_LETTERS.get(obj.kind, ""), ())
    grants = obj.get("grants")
    return implied if grants is None else grants


def _initial_grants(new: Object, before: Snapshot) -> Sequence[Value]:
    """What an object gets at birth: the kind's own grants, or what default privileges say."""
    implied = list(before.implied_grants.get(GRANT_LETTERS.get(new.kind, ""), ()))
    kind = DEFAULTS_FOR.get(new.kind)
    if kind is None:
        return implied
    everywhere = before.objects.get(Address("default privileges", ("", "@runner", kind)))
    if everywhere is not None:
        implied = list(everywhere.get("privileges"))
    here = before.objects.get(Address("default privileges", (new.path[0], "@runner", kind)))
    return implied + [grant for grant in (here.get("privileges") if here else ()) if grant not in implied]


def _grants(new: Object, have: Iterable[Value], want: Iterable[Value], scene: Scene) -> list[Step]:
    if new.kind not in GRANT_LETTERS:
        return []
    return grant_steps(have, want, on=_grantable(new), whole=_whole(new, scene.after))


def _grantable(obj: Object) -> str:
    if obj.kind in ("function", "aggregate"):
        word = "PROCEDURE" if obj.get("form") == "procedure" else "FUNCTION"
        # an aggregate goes by its types alone here: neither `*` nor `order by`
        return f"{word} {qualified(obj.path[:2])}({obj.path[2]})"
    if obj.kind in ("table", "view", "materialized view"):
        return f"TABLE {qualified(obj.path)}"
    if obj.kind == "column":
        return f"TABLE {qualified(obj.path[:2])}"
    if obj.kind in ("enum", "composite", "range", "base type"):
        return f"TYPE {qualified(obj.path)}"
    if obj.kind == "server":
        return f"FOREIGN SERVER {qualified(obj.path)}"
    return identity(obj)


def _whole(obj: Object, snapshot: Snapshot) -> int:
    """How many privileges make ALL on this kind for this server, 0 where it has only one."""
    implied = snapshot.implied_grants.get(GRANT_LETTERS.get(obj.kind, ""), ())
    count = sum(1 for grant in implied if grant[0] == "@owner")
    return count if count > 1 else 0


def _column_grants(old: Object | None, new: Object) -> list[Step]:
    """Grants on single columns of tables and views."""
    steps: list[Step] = []
    if new.kind == "column":
        pairs = {new.path[2]: ((old.get("grants") if old else None) or [], new.get("grants") or [])}
        table = qualified(new.path[:2])
    else:
        was, now = (old.get("column_grants") if old else None) or {}, new.get("column_grants") or {}
        pairs = {
            column: (was.get(column, []), now.get(column, [])) for column in sorted(was.keys() | now.keys())
        }
        table = qualified(new.path)
    for column, (have, want) in pairs.items():
        steps += grant_steps(have, want, on=f"TABLE {table}", column=column)
    return steps


def grant_steps(
    have: Iterable[Value],
    want: Iterable[Value],
    *,
    on: str,
    whole: int = 0,
    column: str | None = None,
    head: str = "",
) -> list[Step]:
    """Revokes and grants that lead from one set of (grantee, privilege, grantable) to another."""
    had = {(grantee, privilege): grantable for grantee, privilege, grantable in have}
    wanted = {(grantee, privilege): grantable for grantee, privilege, grantable in want}
    revoke: dict[str | None, list[str]] = defaultdict(list)
    unoption: dict[str | None, list[str]] = defaultdict(list)
    for (grantee, privilege), grantable in had.items():
        if (grantee, privilege) not in wanted:
            revoke[grantee].append(privilege)
        elif grantable and not wanted[grantee, privilege]:
            unoption[grantee].append(privilege)
    give: dict[tuple[str | None, bool], list[str]] = defaultdict(list)
    for (grantee, privilege), grantable in wanted.items():
        if (grantee, privilege) not in had or (grantable and not had[grantee, privilege]):
            give[grantee, grantable].append(privilege)
    for grantee in _once_whole(had, revoke, whole if on.startswith("TABLE") else 0):
        revoke[grantee] = [key[1] for key in had if key[0] == grantee]
        for (other, privilege), grantable in wanted.items():
            if other == grantee and privilege not in give[grantee, grantable]:
                give[grantee, grantable].append(privilege)
    steps: list[Step] = []
    for grantee, privileges in _by_name(revoke):
        everything = all(key[0] != grantee for key in wanted)
        everything = everything or (bool(whole) and len(privileges) >= whole)
        words = "ALL" if everything and column is None else _privileges(privileges, column, whole)
        steps.append(Step(f"{head}REVOKE {words} ON {on} FROM {role(grantee)}", Phase.INSTALL))
    for grantee, privileges in _by_name(unoption):
        words = _privileges(privileges, column, whole)
        steps.append(
            Step(f"{head}REVOKE GRANT OPTION FOR {words} ON {on} FROM {role(grantee)}", Phase.INSTALL)
        )
    for (grantee, grantable), privileges in sorted(
        give.items(), key=lambda item: (item[0][0] or "", item[0][1])
    ):
        option = " WITH GRANT OPTION" if grantable else ""
        words = _privileges(privileges, column, whole)
        steps.append(
            Step(
                f"{head}GRANT {words} ON {on} TO {role(grantee)}{option}", Phase.INSTALL, _public(grantee, on)
            )
        )
    return steps


def _once_whole(
    had: Mapping[tuple[str | None, str], bool], revoke: Mapping[str | None, list[str]], whole: int
) -> list[str | None]:
    """Who loses a part of ALL, which is more on newer servers: revoked whole, what stays is granted anew."""
    return [
        grantee
        for grantee in revoke
        if whole and grantee != "@owner" and sum(1 for key in had if key[0] == grantee) >= whole
    ]


def _public(grantee: str | None, on: str) -> tuple[Hazard, ...]:
    if grantee is not None:
        return ()
    return (Hazard("grant-to-public", f"every role gets this on {on}"),)


def _by_name(groups: dict[str | None, list[str]]) -> list[tuple[str | None, list[str]]]:
    return sorted(groups.items(), key=lambda item: item[0] or "")


def _privileges(privileges: Iterable[str], column: str | None, whole: int) -> str:
    """The privileges' list; MAINTAIN, which 17 added, is only ever said as part of ALL."""
    names = sorted(privileges)
    if whole and len(names) >= whole:
        return "ALL"
    return ", ".join(f"{name} ({ident(column)})" if column is not None else name for name in names)
