"""Privileges for PUBLIC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.hazards.functions import known_routines
from pgsluice.pipeline.lint.nodes import shown, words
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding
    from pgsluice.pipeline.lint.script import Node, ScriptStatement

_CODE: Final = frozenset({"OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE"})
_HARMLESS: Final = frozenset({"select", "usage", "references", "execute", "connect", "temporary", "temp"})


def check_grants(context: Context) -> Iterator[LintFinding]:
    """Grants that every role gets."""
    script = context.script
    for statement in script.statements:
        grant = statement.node
        is_default = statement.kind == "AlterDefaultPrivilegesStmt"
        if is_default:
            grant = grant["action"]
        elif statement.kind != "GrantStmt":
            continue
        if not grant.get("is_grant") or not _to_public(grant):
            continue
        what = _what(grant)
        if is_default:
            code, message = "dangerous-grant-to-public", f"PUBLIC gets {what} on every object to come"
        elif grant.get("objtype") in _CODE:
            code, message = _of_code(context, statement, what=what)
        else:
            code = "grant-to-public" if _privileges(grant) <= _HARMLESS else "dangerous-grant-to-public"
            message = f"PUBLIC gets {what} on {_objects(grant)}"
        yield found(code, message, script.location(statement), end_line=script.end_line(statement))


def _of_code(context: Context, statement: ScriptStatement, *, what: str) -> tuple[str, str]:
    """A grant on functions; on one with its owner's rights it is worse."""
    grant = statement.node
    routines = known_routines(context)
    unsafe = list(routines.definers())
    if grant.get("targtype") == "ACL_TARGET_ALL_IN_SCHEMA":
        schemas = [item.get("String", {}).get("sval") for item in grant.get("objects", ())]
        given = [key for key in unsafe if key.name[0] in schemas]
    else:
        named = [routines.find(item["ObjectWithArgs"]) for item in grant.get("objects", ())]
        given = [key for key in unsafe if key in named]
    if given:
        name = routines.called(given[0])
        return (
            "dangerous-grant-to-public",
            f"PUBLIC gets {what} on {name}, which runs with its owner's rights",
        )
    return "grant-to-public", f"PUBLIC gets {what} on {_objects(grant)}"


def _to_public(grant: Node) -> bool:
    return any(
        item.get("RoleSpec", {}).get("roletype") == "ROLESPEC_PUBLIC" for item in grant.get("grantees", ())
    )


def _privileges(grant: Node) -> frozenset[str]:
    """The privileges in lower case; `all` when none is named."""
    named = [item["AccessPriv"].get("priv_name", "all") for item in grant.get("privileges", ())]
    return frozenset(name.lower() for name in named) or frozenset({"all"})


def _what(grant: Node) -> str:
    return ", ".join(sorted(_privileges(grant)))


def _objects(grant: Node) -> str:
    """The objects of a grant, the first few by name."""
    names = []
    for item in grant.get("objects", ()):
        if "RangeVar" in item:
            names.append(shown((item["RangeVar"].get("schemaname"), item["RangeVar"]["relname"])))
        elif "ObjectWithArgs" in item:
            names.append(".".join(words(item["ObjectWithArgs"].get("objname"))))
        elif "String" in item:
            names.append(item["String"].get("sval", ""))
        elif "List" in item:
            names.append(".".join(words(item["List"].get("items"))))
    kind = str(grant.get("objtype", "")).removeprefix("OBJECT_").lower()
    if grant.get("targtype") == "ACL_TARGET_ALL_IN_SCHEMA":
        return f"every {kind} of {', '.join(names)}"
    return f"{kind} {', '.join(names)}".strip()
