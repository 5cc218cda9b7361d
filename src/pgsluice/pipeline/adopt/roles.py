"""Roles in a dump: the one that owns most is whoever runs the migrations, and is not named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgsluice.pipeline.adopt.spelling import replace_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.sources.parse import Parsed

CURRENT: Final = "CURRENT_USER"
# Exists in every database, with an owner of its own.
PUBLIC: Final = "public"


def without_runner(parsed: Parsed, runner: str, *, owner: str) -> str | None:
    """A statement in which the runner is `current_user` as an owner; None for `owner to` the runner.

    What the runner is granted on objects of others names it, as policies and user mappings do: there the
    role itself is meant.

    Args:
        parsed: The statement.
        runner: The role that runs the migrations.
        owner: The owner of the object that the statement is about.
    """
    if owner_of(parsed) == runner and not _is_public_schema(parsed):
        return None
    if parsed.kind not in ("AlterDefaultPrivilegesStmt", "AlterOwnerStmt", "GrantStmt"):
        return parsed.text
    if parsed.kind == "AlterDefaultPrivilegesStmt":
        owner = next((str(role.get("rolename")) for role in _roles(parsed.node["options"])), runner)
    if owner != runner:
        return parsed.text
    places = {
        parsed.position(role["location"]) - parsed.start: CURRENT
        for role in _roles(parsed.node)
        if role.get("rolename") == runner
    }
    return replace_tokens(parsed.text, places) if places else parsed.text


def owner_of(parsed: Parsed) -> str | None:
    """The role to which a statement gives its object."""
    if parsed.kind == "AlterOwnerStmt":
        return str(parsed.node["newowner"].get("rolename"))
    if parsed.kind == "AlterTableStmt":
        command = parsed.node["cmds"][0]["AlterTableCmd"]
        if command["subtype"] == "AT_ChangeOwner":
            return str(command["newowner"].get("rolename"))
    return None


def _is_public_schema(parsed: Parsed) -> bool:
    node = parsed.node
    return node.get("objectType") == "OBJECT_SCHEMA" and node["object"]["String"]["sval"] == PUBLIC


def _roles(node: Any) -> Iterator[dict[str, Any]]:
    """Every role that a tree names, with its place."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if "roletype" in item:
                yield item
            stack += item.values()
        elif isinstance(item, list):
            stack += item
