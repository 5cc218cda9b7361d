"""The opinion of migra: what a second differ, which shares no code with ours, would still change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from pglast import ast
from pglast.parser import ParseError, parse_sql

from pgsluice.errors import FindingError
from pgsluice.pipeline.opinion.inspector import import_migra, inspect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

    from pgsluice.config import Target

PROPOSALS_SHOWN: Final = 10
LINES_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class SecondDiff:
    """What migra would change, as SQL; `failure` says how it broke down, and then it has no opinion."""

    proposals: tuple[str, ...]
    failure: str | None = None


def propose(
    have: Connection[Any], want: Connection[Any], *, manages: Sequence[str], ignore: Sequence[str] = ()
) -> tuple[str, ...]:
    """The statements by which migra would lead one database to the other, in its order."""
    migration_class, _ = import_migra()
    migration = migration_class(
        inspect(have, manages=manages, ignore=ignore), inspect(want, manages=manages, ignore=ignore)
    )
    migration.set_safety(False)
    migration.add_all_changes(privileges=True)
    return tuple(str(statement).strip() for statement in migration.statements)


def second_diff(
    have: Connection[Any], want: Connection[Any], *, manages: Sequence[str], ignore: Sequence[str] = ()
) -> SecondDiff:
    """What migra would change of one database to make it the other; settings of its own session left out.

    Its queries fail on some schemas, such as a table that inherits from two.
    """
    try:
        proposed = propose(have, want, manages=manages, ignore=ignore)
    except (psycopg.OperationalError, psycopg.InterfaceError):
        raise
    except Exception as exc:  # noqa: BLE001 - whatever the library raises, it has no opinion then
        return SecondDiff((), f"{type(exc).__name__}: {exc}")
    return SecondDiff(tuple(filter(None, map(_as_change, proposed))))


def refuse_second_diff(have: Connection[Any], want: Connection[Any], target: Target) -> str | None:
    """Raise when migra would still change something.

    Returns:
        A note where migra has no opinion, because it breaks down on this schema.

    Raises:
        FindingError: It names the proposals.
    """
    diff = second_diff(have, want, manages=target.manages, ignore=target.ignore)
    if diff.failure is not None:
        return f"migra has no opinion, it fails with {diff.failure}"
    if not diff.proposals:
        return None
    raise FindingError(
        f"the migrations of target {target.name} do not lead to its schema: migra sees a difference that the "
        "catalog comparison does not",
        details=tuple(line for text in diff.proposals[:PROPOSALS_SHOWN] for line in _shown(text)),
        hint="report it as a fault of pgsluice, with these lines; to go on, write the statements in a "
        "migration of your own: pgsluice new NAME",
    )


def _as_change(statement: str) -> str | None:
    """The statement when it changes a catalog, with a word on one that PostgreSQL could not read."""
    try:
        parsed = parse_sql(statement)
    except ParseError:
        return f"{statement} -- rejected: does not parse"
    if all(isinstance(one.stmt, ast.VariableSetStmt) for one in parsed):
        return None
    return statement


def _shown(statement: str) -> tuple[str, ...]:
    lines = statement.splitlines()
    return (
        *lines[:LINES_SHOWN],
        *([f"... {len(lines) - LINES_SHOWN} more lines"] if lines[LINES_SHOWN:] else []),
    )
