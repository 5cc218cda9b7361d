"""The SQL of the ways around long locks: checks that are validated later, indexes built beside other work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import automatic, ident, options, qualified

if TYPE_CHECKING:
    from collections.abc import Collection

    from pgsluice.pipeline.snapshot import Address, Object

TURNS: Final = 600
TURN: Final = "100ms"
PAUSE_S: Final = 0.4
KEYS: Final = (
    ("PRIMARY KEY", "PRIMARY KEY", ""),
    ("UNIQUE", "UNIQUE", ""),
    ("UNIQUE NULLS NOT DISTINCT", "UNIQUE", " NULLS NOT DISTINCT"),
)
TIMINGS: Final = (" DEFERRABLE INITIALLY DEFERRED", " DEFERRABLE", "")


def validate_constraint(table: tuple[str, ...], name: str) -> str:
    """Check the rows under a lock that lets others read and write."""
    return f"ALTER TABLE {qualified(table)} VALIDATE CONSTRAINT {ident(name)}"


def add_helper(column: Address, name: str) -> str:
    """A check that proves a column filled, not yet for the rows that are there."""
    table, filled = qualified(column.path[:2]), f"{ident(column.path[2])} IS NOT NULL"
    return f"ALTER TABLE {table} ADD CONSTRAINT {ident(name)} CHECK ({filled}) NOT VALID"


def add_helper_again(column: Address, name: str) -> str:
    """The same outside of a transaction, in a way that can be repeated.

    It asks for its lock in short turns, as long as it takes others to commit: who comes later does not
    queue behind it.
    """
    table = qualified(column.path[:2])
    add = add_helper(column, name).removeprefix(f"ALTER TABLE {table} ")
    return (
        "DO $pgsluice$\nBEGIN\n"
        f"  FOR turn IN 1..{TURNS} LOOP\n    BEGIN\n      SET LOCAL lock_timeout = '{TURN}';\n"
        f"      ALTER TABLE {table}\n        DROP CONSTRAINT IF EXISTS {ident(name)},\n        {add};\n"
        "      RETURN;\n    EXCEPTION WHEN lock_not_available THEN\n"
        f"      IF turn = {TURNS} THEN\n        RAISE;\n      END IF;\n"
        f"      PERFORM pg_catalog.pg_sleep({PAUSE_S});\n    END;\n  END LOOP;\nEND\n$pgsluice$"
    )


def drop_helper(column: Address, name: str) -> str:
    """Take the check away when the column itself is not null."""
    return f"ALTER TABLE {qualified(column.path[:2])} DROP CONSTRAINT {ident(name)}"


def helper_name(column: Address, taken: Collection[str]) -> str:
    """A name that no constraint of the table has, and that no server makes up for a not-null constraint."""
    return _free(column.path[1], column.path[2], label="filled", taken=taken)


def interim_name(name: str, taken: Collection[str]) -> str:
    """The name of an index while the one that it replaces still has its own."""
    return _free(name, None, label="new", taken=taken)


def _free(first: str, second: str | None, *, label: str, taken: Collection[str]) -> str:
    number = 1
    while True:
        name = automatic(first, second, label if number == 1 else f"{label}{number}")
        if name not in taken:
            return name
        number += 1


def drop_index_concurrently(schema: str, name: str) -> str:
    """Drop an index while others work, also one that a failed build left invalid."""
    return f"DROP INDEX CONCURRENTLY IF EXISTS {qualified((schema, name))}"


def build_concurrently(sql: str, index: Address, name: str) -> str | None:
    """`create index` under `name`, while others work; None where its text does not begin as expected."""
    for words in ("CREATE INDEX", "CREATE UNIQUE INDEX"):
        start = f"{words} {ident(index.path[1])} ON "
        if sql.startswith(start):
            return f"{words} CONCURRENTLY {ident(name)} ON {sql.removeprefix(start)}"
    return None


def rename_index(schema: str, *, old: str, new: str) -> str:
    """Give a new index the name of the one that it replaces."""
    return f"ALTER INDEX {qualified((schema, old))} RENAME TO {ident(new)}"


def build_key_index(key: Object, name: str) -> str | None:
    """The index of a unique or primary key; None for a form that no `create unique index` has."""
    parts = _key_parts(key)
    if parts is None:
        return None
    _, columns, include, nulls, _ = parts
    storage = f" WITH ({options(key.get('index_options'))})" if key.get("index_options") else ""
    place = f" TABLESPACE {ident(key.get('index_tablespace'))}" if key.get("index_tablespace") else ""
    head = f"CREATE UNIQUE INDEX CONCURRENTLY {ident(name)} ON {qualified(key.path[:2])}"
    return f"{head} ({columns}){include}{nulls}{storage}{place}"


def use_index(key: Object, name: str) -> str | None:
    """Make an index the one of a unique or primary key, which gives it the key's name."""
    parts = _key_parts(key)
    if parts is None:
        return None
    words, _, _, _, timing = parts
    return (
        f"ALTER TABLE {qualified(key.path[:2])} ADD CONSTRAINT {ident(key.path[2])} {words} "
        f"USING INDEX {ident(name)}{timing}"
    )


def _key_parts(key: Object) -> tuple[str, str, str, str, str] | None:
    """Words, columns, `include`, treatment of nulls, and when it is checked."""
    definition, columns = str(key.get("definition")), ", ".join(map(ident, key.get("columns")))
    for start, words, nulls in KEYS:
        head = f"{start} ({columns})"
        if definition.startswith(head):
            rest = definition.removeprefix(head)
            timing = next(one for one in TIMINGS if rest.endswith(one))
            include = rest.removesuffix(timing) if timing else rest
            if not include or include.startswith(" INCLUDE ("):
                return words, columns, include, nulls, timing
    return None
