"""`docs/reference/pgflow-sql.md`, out of the catalog's own comments and the headers of the schema's files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, LiteralString

from psycopg.rows import namedtuple_row

from tests.sql.pgflow.function_files import function_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

INTRODUCTION: Final = """\
# pgflow's tables and functions

Written by `just docs` from the comments in the catalog; the notes on locks are those of the files in
`schema/pgflow/functions`, see [lock order](../locks.md). Unless an entry says otherwise, a function is
volatile and runs with the rights of its caller. Each pins `search_path` to `pg_catalog, pg_temp`: a caller's
temporary objects come last. Nothing is granted to anybody: roles get what they need from their operator.

What callers may rely on: names and types of arguments and columns, and the names of constraints, which
PostgreSQL's errors carry. The order of a table's columns is not among it, as it differs in databases that
grew by migrations. Read results by name.
"""
TABLE_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Tables of definitions": ("flows", "steps", "deps"),
    "Tables of runs": ("runs", "step_states", "step_tasks"),
    "Tables of workers": ("workers", "worker_functions"),
}
FUNCTION_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Define flows": ("create_flow", "add_step", "ensure_flow_compiled", "delete_flow_and_data"),
    "Run flows": ("start_flow", "start_flow_with_states", "get_run_with_states"),
    "Work on tasks": ("start_tasks", "complete_task", "fail_task", "poll_for_tasks"),
    "Recover tasks": ("requeue_stalled_tasks", "setup_requeue_stalled_tasks_cron"),
    "Keep workers running": (
        "track_worker_function",
        "mark_worker_stopped",
        "ensure_workers",
        "setup_ensure_workers_cron",
        "cleanup_ensure_workers_logs",
    ),
    "Steps of the engine": (
        "start_ready_steps",
        "cascade_resolve_conditions",
        "cascade_complete_taskless_steps",
        "maybe_complete_run",
    ),
    "Utilities": ("is_valid_slug", "is_local", "calculate_retry_delay", "set_vt_batch"),
}
LEADS: Final[dict[str, str]] = {
    "Work on tasks": (
        "A worker reads messages with `pgmq.read_with_poll`, claims their tasks, and says how each ended."
    ),
    "Steps of the engine": "The functions above call these. They can be called by name, and seldom need be.",
}
PRIVATE: Final = """\
## Private functions

A name that begins with an underscore is a part of the functions above and may change with any release.
"""
VOLATILITY: Final = {"i": "immutable", "s": "stable"}
KEY_ORDER: Final = {"p": 0, "u": 1, "f": 2}

READ_COLUMNS: Final = """
select c.relname as owner, c.relkind::text as kind,
       pg_catalog.obj_description(c.oid, 'pg_class') as comment, a.attname as name,
       pg_catalog.format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid) as value,
       pg_catalog.col_description(c.oid, a.attnum) as meaning
from pg_catalog.pg_class as c
join pg_catalog.pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_catalog.pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'pgflow'::regnamespace and c.relkind in ('r', 'c')
order by c.relname, a.attnum
"""
READ_TYPE_COMMENT: Final = """
select pg_catalog.obj_description(t.oid, 'pg_type')
from pg_catalog.pg_type as t
where t.typnamespace = 'pgflow'::regnamespace and t.typname = %s
"""
READ_CONSTRAINTS: Final = """
select c.relname as owner, k.conname as name, k.contype::text as kind,
       pg_catalog.pg_get_constraintdef(k.oid) as definition
from pg_catalog.pg_constraint as k join pg_catalog.pg_class as c on c.oid = k.conrelid
where c.relnamespace = 'pgflow'::regnamespace and k.contype in ('p', 'u', 'f', 'c')
order by k.conname collate "C"
"""
READ_FUNCTIONS: Final = """
select p.proname as name, pg_catalog.pg_get_function_arguments(p.oid) as arguments,
       pg_catalog.pg_get_function_result(p.oid) as result, p.provolatile::text as volatility,
       p.prosecdef as definer, pg_catalog.obj_description(p.oid, 'pg_proc') as comment
from pg_catalog.pg_proc as p
where p.pronamespace = 'pgflow'::regnamespace
order by p.proname collate "C"
"""
NAME: Final = re.compile(r"(?<![\w`.])(?:[a-z]+\.)?_?[a-z]+(?:_[a-z]+)+(?![\w`])")
WIDTH: Final = 100


def render_reference(conn: psycopg.Connection[Any]) -> str:
    """The whole page for the schema `pgflow` of a database.

    Raises:
        LookupError: A public table or function stands in no group, or a group names one that there is not.
    """
    conn.execute("set local search_path = ''")
    columns, constraints = (_rows(conn, query) for query in (READ_COLUMNS, READ_CONSTRAINTS))
    functions = {row.name: row for row in _rows(conn, READ_FUNCTIONS)}
    tables = {row.owner for row in columns if row.kind == "r"}
    _expect_all("table", TABLE_GROUPS, tables)
    _expect_all("function", FUNCTION_GROUPS, {name for name in functions if not name.startswith("_")})

    parts = [INTRODUCTION]
    for title, names in FUNCTION_GROUPS.items():
        parts.append("\n".join(_lines(f"## {title}", LEADS.get(title))))
        parts += [_function(functions[name]) for name in names]
    for title, names in TABLE_GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [
            _table([row for row in columns if row.owner == name], [k for k in constraints if k.owner == name])
            for name in names
        ]
    parts.append("## Types\n")
    for name in sorted({row.owner for row in columns if row.kind == "c"}):
        found = conn.execute(READ_TYPE_COMMENT, [name]).fetchone()
        parts.append(_type([row for row in columns if row.owner == name], found[0] if found else ""))
    hidden = (row for name, row in functions.items() if name.startswith("_"))
    rows = (f"| `{row.name}({_arguments(row)})` | {_cell(row.comment)} |" for row in hidden)
    parts.append("\n".join((PRIVATE, "| function | effect |", "|---|---|", *rows, "")))
    return "\n".join(parts)


def render_locks() -> str:
    """The table of `docs/locks.md`: each function with the note of its file's header, private ones last."""
    files = function_files()
    public = [name for names in FUNCTION_GROUPS.values() for name in names]
    private = [name for name in files if name not in public]
    rows = (f"| `{name}` | {_cell(files[name].locks.removesuffix('.'))} |" for name in (*public, *private))
    return "\n".join(("| function | locks |", "|---|---|", *rows, ""))


def _rows(conn: psycopg.Connection[Any], query: LiteralString) -> list[Any]:
    """Rows whose attributes are the query's columns."""
    with conn.cursor(row_factory=namedtuple_row) as cursor:
        return list(cursor.execute(query))


def _expect_all(kind: str, groups: dict[str, tuple[str, ...]], found: set[str]) -> None:
    grouped = [name for names in groups.values() for name in names]
    if wrong := sorted(found.symmetric_difference(grouped)):
        raise LookupError(f"{kind} without a place in the reference, or a place without its {kind}: {wrong}")


def _function(row: Any) -> str:
    notes = [VOLATILITY.get(row.volatility), "security definer" if row.definer else None]
    said = ", ".join(note for note in notes if note)
    locks = function_files()[row.name].locks
    return "\n".join(
        _lines(
            f"### `{row.name}`",
            f"```sql\n{_signature(row)}\n```",
            _prose(row.comment),
            f"{said.capitalize()}." if said else None,
            f"Locks: {_prose(locks)}",
        )
    )


def _signature(row: Any) -> str:
    """On one line if it fits, else an argument a line."""
    result = f"returns {_type_name(row.result)}"
    line = f"pgflow.{row.name}({_arguments(row)}) {result}"
    if len(line) <= WIDTH:
        return line
    if len(result) > WIDTH:
        result = result.replace("(", "(\n  ").replace(", ", ",\n  ").replace(")", "\n)")
    arguments = _arguments(row).replace(", ", ",\n  ")
    return f"pgflow.{row.name}(\n  {arguments}\n)\n{result}"


def _arguments(row: Any) -> str:
    text = re.sub(r" DEFAULT NULL::[\w\[\]]+", " default null", row.arguments)
    return _type_name(re.sub(r" DEFAULT ('[^']*'|\w+)(::[\w\[\]]+)?", r" default \1", text))


def _type_name(text: str) -> str:
    short = text.replace("timestamp with time zone", "timestamptz")
    return short.replace("SETOF ", "setof ").replace("TABLE(", "table (")


def _table(columns: list[Any], constraints: list[Any]) -> str:
    rows = (
        f"| `{row.name}` | `{_type_name(row.type)}` | {'yes' if row.nullable else ''} | {_default(row.value)}"
        f" | {_cell(row.meaning)} |"
        for row in columns
    )
    keys = sorted((one for one in constraints if one.kind != "c"), key=lambda one: KEY_ORDER[one.kind])
    checks = ", ".join(f"`{one.name}`" for one in constraints if one.kind == "c")
    head = ("| column | type | null | default | meaning |", "|---|---|---|---|---|")
    return "\n".join(
        _lines(
            f"### `{columns[0].owner}`",
            _prose(columns[0].comment),
            "\n".join((*head, *rows)),
            "\n".join(f"- `{one.name}`: {_key(one.definition)}" for one in keys),
            f"Checks: {checks}." if checks else None,
        )
    )


def _key(definition: str) -> str:
    words = definition.replace("PRIMARY KEY", "primary key").replace("FOREIGN KEY", "foreign key")
    words = words.replace("REFERENCES pgflow.", "references ").replace("UNIQUE", "unique")
    return words.replace("ON DELETE SET NULL", "on delete set null")


def _type(columns: list[Any], comment: str) -> str:
    rows = (f"| `{row.name}` | `{_type_name(row.type)}` | {_cell(row.meaning)} |" for row in columns)
    return "\n".join(
        _lines(
            f"### `{columns[0].owner}`",
            _prose(comment),
            "\n".join(("| attribute | type | meaning |", "|---|---|---|", *rows)),
        )
    )


def _default(value: str | None) -> str:
    return "" if value is None else f"`{re.sub(r'::[a-z ]+$', '', value)}`"


def _cell(text: str | None) -> str:
    return _prose(text).replace("|", "\\|")


def _prose(text: str | None) -> str:
    """A comment as Markdown: names with underscores are code."""
    return NAME.sub(r"`\g<0>`", text or "")


def _lines(*blocks: str | None) -> Iterator[str]:
    """The blocks that there are, an empty line after each."""
    for block in blocks:
        if block:
            yield block
            yield ""
