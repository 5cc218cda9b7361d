"""What every function of pgflow has in common, and the signature that callers of each rely on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from pglast.parser import parse_plpgsql_json, parse_sql, scan

from tests.sql.pgflow.function_files import FunctionFile, function_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

FILES: Final = tuple(function_files())
STAR: Final = re.compile(r"\b(?:select|returning)(?: distinct)? \*")
ROW_TYPE: Final = re.compile(r"^(returns (?:setof )?|  v_\w+ )pgflow\.\w+(?:%rowtype)?", re.MULTILINE)
LITERAL: Final = frozenset({"SCONST", "USCONST", "BCONST", "XCONST", "SQL_COMMENT", "C_COMMENT"})
NEVER: Final = "NULL::integer"
NO_TEXT: Final = "NULL::text"

PATH: Final = "search_path=pg_catalog, pg_temp"
KEEP_THEIR_PLANS: Final = ("start_flow", "start_tasks", "complete_task", "fail_task", "requeue_stalled_tasks")
# function: (arguments, result), as the server prints them with an empty search_path
SIGNATURES: Final[dict[str, tuple[str, str]]] = {
    "is_local": ("", "boolean"),
    "is_valid_slug": ("slug text", "boolean"),
    "calculate_retry_delay": ("base_delay numeric, attempts_count integer", "integer"),
    "set_vt_batch": (
        "queue_name text, msg_ids bigint[], vt_offsets integer[]",
        "TABLE(msg_id bigint, read_ct integer, enqueued_at timestamp with time zone,"
        " vt timestamp with time zone, message jsonb, headers jsonb)",
    ),
    "create_flow": (
        f"flow_slug text, max_attempts integer DEFAULT {NEVER}, base_delay integer DEFAULT {NEVER},"
        f" timeout integer DEFAULT {NEVER}",
        "pgflow.flows",
    ),
    "add_step": (
        "flow_slug text, step_slug text, deps_slugs text[] DEFAULT '{}'::text[],"
        f" max_attempts integer DEFAULT {NEVER}, base_delay integer DEFAULT {NEVER},"
        f" timeout integer DEFAULT {NEVER}, start_delay integer DEFAULT {NEVER},"
        " step_type text DEFAULT 'single'::text, required_input_pattern jsonb DEFAULT NULL::jsonb,"
        " forbidden_input_pattern jsonb DEFAULT NULL::jsonb, when_unmet text DEFAULT 'skip'::text,"
        " when_exhausted text DEFAULT 'fail'::text",
        "pgflow.steps",
    ),
    "_create_flow_from_shape": ("p_flow_slug text, p_shape jsonb", "void"),
    "_get_flow_shape": ("p_flow_slug text", "jsonb"),
    "_compare_flow_shapes": ("p_local jsonb, p_db jsonb", "text[]"),
    "ensure_flow_compiled": ("flow_slug text, shape jsonb", "jsonb"),
    "delete_flow_and_data": ("p_flow_slug text", "void"),
    "start_flow": ("flow_slug text, input jsonb, run_id uuid DEFAULT NULL::uuid", "SETOF pgflow.runs"),
    "start_flow_with_states": ("flow_slug text, input jsonb, run_id uuid DEFAULT NULL::uuid", "jsonb"),
    "get_run_with_states": ("run_id uuid", "jsonb"),
    "start_ready_steps": ("run_id uuid", "void"),
    "cascade_complete_taskless_steps": ("run_id uuid", "integer"),
    "cascade_resolve_conditions": ("run_id uuid", "boolean"),
    "_cascade_force_skip_steps": ("run_id uuid, step_slug text, skip_reason text", "integer"),
    "maybe_complete_run": ("run_id uuid", "void"),
    "poll_for_tasks": (
        "queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,"
        " poll_interval_ms integer DEFAULT 100",
        "SETOF pgflow.step_task_record",
    ),
    "start_tasks": (
        "flow_slug text, msg_ids bigint[], worker_id uuid",
        "SETOF pgflow.step_task_record",
    ),
    "complete_task": (
        "run_id uuid, step_slug text, task_index integer, output jsonb",
        "SETOF pgflow.step_tasks",
    ),
    "fail_task": (
        "run_id uuid, step_slug text, task_index integer, error_message text",
        "SETOF pgflow.step_tasks",
    ),
    "_archive_task_message": ("p_run_id uuid, p_step_slug text, p_task_index integer", "void"),
    "requeue_stalled_tasks": ("", "integer"),
    "setup_requeue_stalled_tasks_cron": ("cron_interval text DEFAULT '15 seconds'::text", "text"),
    "track_worker_function": ("function_name text, start_mode text DEFAULT 'http'::text", "void"),
    "mark_worker_stopped": ("worker_id uuid", "void"),
    "ensure_workers": ("", "TABLE(function_name text, invoked boolean, request_id bigint)"),
    "cleanup_ensure_workers_logs": (
        "retention_hours integer DEFAULT 24",
        "TABLE(cron_deleted bigint)",
    ),
    "setup_ensure_workers_cron": ("cron_interval text DEFAULT '1 second'::text", "text"),
}
STABLE: Final = frozenset({"is_local", "_get_flow_shape", "_compare_flow_shapes"})
IMMUTABLE: Final = frozenset({"is_valid_slug", "calculate_retry_delay"})
PARALLEL_SAFE: Final = frozenset({"is_local", "calculate_retry_delay"})
DEFINERS: Final = frozenset(
    {
        "start_flow_with_states",
        "get_run_with_states",
        "requeue_stalled_tasks",
        "setup_requeue_stalled_tasks_cron",
        "setup_ensure_workers_cron",
        "cleanup_ensure_workers_logs",
    }
)

READ_FUNCTIONS: Final = """
select p.proname, pg_catalog.pg_get_function_arguments(p.oid), pg_catalog.pg_get_function_result(p.oid),
       p.provolatile::text, p.proparallel::text, p.prosecdef, p.proconfig,
       pg_catalog.obj_description(p.oid, 'pg_proc')
from pg_catalog.pg_proc as p
where p.pronamespace = 'pgflow'::regnamespace and p.prokind = 'f'
"""
READ_OTHERS: Final = """
select t.tgname from pg_catalog.pg_trigger as t
join pg_catalog.pg_class as c on c.oid = t.tgrelid
where c.relnamespace = 'pgflow'::regnamespace and not t.tgisinternal
union all
select t.typname from pg_catalog.pg_type as t
where t.typnamespace = 'pgflow'::regnamespace and t.typtype in ('e', 'd', 'r')
union all
select c.relname from pg_catalog.pg_class as c
where c.relnamespace = 'pgflow'::regnamespace and (c.relname like '%event%' or c.relrowsecurity)
union all
select p.proname from pg_catalog.pg_proc as p
where p.pronamespace = 'pgflow'::regnamespace and p.prokind <> 'f'
"""
READ_GRANTEES: Final = """
select p.oid::regprocedure::text
from pg_catalog.pg_proc as p, lateral pg_catalog.aclexplode(p.proacl) as acl
where p.pronamespace = 'pgflow'::regnamespace and acl.grantee <> p.proowner
union all
select t.typname
from pg_catalog.pg_type as t, lateral pg_catalog.aclexplode(t.typacl) as acl
where t.typnamespace = 'pgflow'::regnamespace and acl.grantee <> t.typowner
"""


@pytest.fixture
def functions(conn: psycopg.Connection[Any]) -> dict[str, tuple[Any, ...]]:
    """Each function's row of the catalog by name; a second of the same name fails."""
    conn.execute("set local search_path = ''")
    rows = conn.execute(READ_FUNCTIONS).fetchall()
    named = {name: tuple(rest) for name, *rest in rows}
    assert len(named) == len(rows), "a function is overloaded"
    return named


def test_signatures_are_those_that_callers_rely_on(functions: dict[str, tuple[Any, ...]]) -> None:
    found = {name: (arguments, result) for name, (arguments, result, *_) in functions.items()}
    assert {name: found.get(name) for name in SIGNATURES} == SIGNATURES


def test_a_function_beyond_those_is_private(functions: dict[str, tuple[Any, ...]]) -> None:
    assert [name for name in functions if name not in SIGNATURES and not name.startswith("_")] == []


def test_volatility_is_as_stated(functions: dict[str, tuple[Any, ...]]) -> None:
    public = {name: row for name, row in functions.items() if name in SIGNATURES}
    assert {name for name, row in public.items() if row[2] == "s"} == STABLE
    assert {name for name, row in public.items() if row[2] == "i"} == IMMUTABLE
    assert {name for name, row in public.items() if row[3] == "s"} >= PARALLEL_SAFE


def test_only_these_functions_run_with_their_owners_rights(functions: dict[str, tuple[Any, ...]]) -> None:
    assert {name for name, row in functions.items() if row[4]} == DEFINERS


def test_every_function_pins_an_empty_path_and_some_keep_their_plans(
    functions: dict[str, tuple[Any, ...]],
) -> None:
    pinned = {name: set(row[5]) for name, row in functions.items()}
    assert {name for name, settings in pinned.items() if PATH not in settings} == set()
    more = {name: settings - {PATH} for name, settings in pinned.items()}
    assert {name: settings for name, settings in more.items() if settings} == {
        name: {"plan_cache_mode=force_generic_plan", "enable_seqscan=off"} for name in KEEP_THEIR_PLANS
    }


def test_every_function_has_a_comment_of_one_sentence_or_more(functions: dict[str, tuple[Any, ...]]) -> None:
    assert [name for name, row in functions.items() if not (row[6] or "").endswith(".")] == []


def test_no_function_or_type_is_granted_to_anybody(conn: psycopg.Connection[Any]) -> None:
    assert conn.execute(READ_GRANTEES).fetchall() == []


def test_a_role_without_grants_cannot_call_anything(conn: psycopg.Connection[Any]) -> None:
    conn.execute("create role pgflow_stranger")
    row = conn.execute(
        "select pg_catalog.has_schema_privilege('pgflow_stranger', 'pgflow', 'usage')"
    ).fetchone()
    assert row == (False,)


def test_there_is_no_trigger_enum_domain_event_table_or_procedure(conn: psycopg.Connection[Any]) -> None:
    assert conn.execute(READ_OTHERS).fetchall() == []


def test_each_function_of_the_catalog_has_its_file(functions: dict[str, tuple[Any, ...]]) -> None:
    assert set(FILES) == set(functions)


@pytest.mark.parametrize("name", FILES)
def test_file_holds_one_function_of_its_name_and_what_belongs_to_it(name: str) -> None:
    file = function_files()[name]
    assert file.path == ("pgflow", name)
    assert not file.statement.replace, "create or replace hides a second definition"
    assert len(file.comments) == 1
    for comment in file.comments:
        assert [part.sval for part in comment.object.objname] == ["pgflow", name]
        assert not comment.object.args_unspecified, "the comment names no argument types"


@pytest.mark.parametrize("name", FILES)
def test_header_says_what_the_function_does_and_locks(name: str) -> None:
    file = function_files()[name]
    assert file.header, "no comment above the function"
    assert not file.header[0].startswith("Locks:"), "the effect comes first"
    assert file.locks.endswith("."), "no line `-- Locks: …` that ends in a full stop"


@pytest.mark.parametrize("name", FILES)
def test_volatility_is_written_down(name: str) -> None:
    assert "volatility" in function_files()[name].options


@pytest.mark.parametrize("name", FILES)
def test_body_parses(name: str) -> None:
    file = function_files()[name]
    if file.language == "sql":
        assert parse_sql(file.body)
    elif file.returns_table:  # the parser knows no output columns; the server has compiled the body
        assert file.language == "plpgsql"
    else:  # nor types of a schema
        parse_plpgsql_json(ROW_TYPE.sub(r"\1record", file.text))


@pytest.mark.parametrize("name", FILES)
def test_only_literals_comments_and_quoted_names_have_capitals(name: str) -> None:
    file = function_files()[name]
    for text in (file.text, file.body):
        assert [word for word in bare_words(text) if word != word.lower()] == []


@pytest.mark.parametrize("name", FILES)
def test_no_statement_selects_all_columns(name: str) -> None:
    assert STAR.findall(without_literals(function_files()[name])) == []


def bare_words(text: str) -> Iterator[str]:
    """The tokens of SQL or PL/pgSQL that case could be told by."""
    for token in scan(text):
        word = text[token.start : token.end + 1]
        if token.name not in LITERAL and not word.startswith('"'):
            yield word


def without_literals(file: FunctionFile) -> str:
    """A body's words, apart from literals and comments, with one space between them."""
    return " ".join(bare_words(file.body))
