"""Which statements a schema file may hold, and which keep a file in its own order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError

if TYPE_CHECKING:
    from pgsluice.pipeline.sources.parse import Parsed

_TRANSACTIONS: Final = "take it out: the whole schema loads in one transaction"
_ROLES: Final = "take it out: a role that a grant, owner or policy names is created on dev when it is missing"
_CLUSTER: Final = "take it out: it changes the server, not this database's schema"
_FORBIDDEN: Final = {
    "CreateRoleStmt": ("create role", _ROLES),
    "AlterRoleStmt": ("alter role", _ROLES),
    "AlterRoleSetStmt": ("alter role", _ROLES),
    "DropRoleStmt": ("drop role", _ROLES),
    "GrantRoleStmt": ("grant of a role to a role", _ROLES),
    "CreatedbStmt": ("create database", _CLUSTER),
    "DropdbStmt": ("drop database", _CLUSTER),
    "AlterDatabaseStmt": ("alter database", _CLUSTER),
    "AlterDatabaseSetStmt": ("alter database", _CLUSTER),
    "AlterDatabaseRefreshCollStmt": ("alter database", _CLUSTER),
    "CreateTableSpaceStmt": ("create tablespace", _CLUSTER),
    "DropTableSpaceStmt": ("drop tablespace", _CLUSTER),
    "AlterTableSpaceOptionsStmt": ("alter tablespace", _CLUSTER),
    "AlterTableMoveAllStmt": ("alter ... all in tablespace", _CLUSTER),
    "AlterSystemStmt": ("alter system", _CLUSTER),
    "CheckPointStmt": ("checkpoint", _CLUSTER),
}
# Where a statement that may make a temporary object holds its name.
_RELATIONS: Final = {
    "CreateStmt": ("relation",),
    "CreateTableAsStmt": ("into", "rel"),
    "CreateSeqStmt": ("sequence",),
    "ViewStmt": ("view",),
}
IMPERATIVE: Final = frozenset(
    (
        "AlterExtensionContentsStmt",
        "AlterObjectSchemaStmt",
        "CallStmt",
        "ClosePortalStmt",
        "ClusterStmt",
        "ConstraintsSetStmt",
        "CopyStmt",
        "DeallocateStmt",
        "DeclareCursorStmt",
        "DeleteStmt",
        "DiscardStmt",
        "DoStmt",
        "DropOwnedStmt",
        "DropStmt",
        "DropSubscriptionStmt",
        "DropUserMappingStmt",
        "ExecuteStmt",
        "ExplainStmt",
        "FetchStmt",
        "InsertStmt",
        "ListenStmt",
        "LoadStmt",
        "LockStmt",
        "MergeStmt",
        "NotifyStmt",
        "PrepareStmt",
        "ReassignOwnedStmt",
        "RefreshMatViewStmt",
        "ReindexStmt",
        "RenameStmt",
        "SelectStmt",
        "TruncateStmt",
        "UnlistenStmt",
        "UpdateStmt",
        "VacuumStmt",
        "VariableSetStmt",
        "VariableShowStmt",
    )
)


def check_allowed(parsed: Parsed) -> None:
    """Refuse a statement that has no place in a schema file.

    Raises:
        InputError: Transaction control, roles, databases, other settings of the server, `vacuum`,
            temporary objects, or anything `concurrently`.
    """
    what, hint = _FORBIDDEN.get(parsed.kind, ("", ""))
    if parsed.kind == "TransactionStmt":
        what, hint = f"{parsed.text.split()[0].lower()} (transaction control)", _TRANSACTIONS
    elif parsed.kind == "VacuumStmt" and parsed.node.get("is_vacuumcmd"):
        what, hint = "vacuum", "take it out: a schema file says what the database is, not how it is kept"
    elif parsed.kind in {"IndexStmt", "DropStmt", "ReindexStmt"} and _is_concurrent(parsed):
        action = {"IndexStmt": "create", "DropStmt": "drop", "ReindexStmt": "reindex"}[parsed.kind]
        what = f"{action} index concurrently" if action != "reindex" else "reindex concurrently"
        hint = "drop the word concurrently: how a migration gets there is not the schema's matter"
    elif _is_temporary(parsed):
        what, hint = "a temporary object", "take it out: it is gone once the schema has been loaded"
    if what:
        message = f"{what} has no place in a schema file"
        raise InputError(message, location=parsed.file.line_location(parsed.start), hint=hint)


def _is_temporary(parsed: Parsed) -> bool:
    node = parsed.node
    for key in _RELATIONS.get(parsed.kind, ()):
        node = node.get(key, {})
    return node.get("relpersistence") == "t"


def _is_concurrent(parsed: Parsed) -> bool:
    if parsed.node.get("concurrent"):
        return True
    return any(item["DefElem"]["defname"] == "concurrently" for item in parsed.node.get("params", ()))
