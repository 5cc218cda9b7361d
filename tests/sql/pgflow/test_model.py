"""pgflow's data model: the names that callers match on, and what each constraint refuses."""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

# table: (column, type, nullable, default as the server prints it)
COLUMNS: Final[dict[str, tuple[tuple[str, str, bool, str | None], ...]]] = {
    "flows": (
        ("flow_slug", "text", False, None),
        ("opt_max_attempts", "integer", False, "3"),
        ("opt_base_delay", "integer", False, "1"),
        ("opt_timeout", "integer", False, "60"),
        ("created_at", "timestamp with time zone", False, "now()"),
    ),
    "steps": (
        ("flow_slug", "text", False, None),
        ("step_slug", "text", False, None),
        ("step_type", "text", False, "'single'::text"),
        ("step_index", "integer", False, "0"),
        ("deps_count", "integer", False, "0"),
        ("opt_max_attempts", "integer", True, None),
        ("opt_base_delay", "integer", True, None),
        ("opt_timeout", "integer", True, None),
        ("opt_start_delay", "integer", True, None),
        ("required_input_pattern", "jsonb", True, None),
        ("forbidden_input_pattern", "jsonb", True, None),
        ("when_unmet", "text", False, "'skip'::text"),
        ("when_exhausted", "text", False, "'fail'::text"),
        ("created_at", "timestamp with time zone", False, "now()"),
    ),
    "deps": (
        ("flow_slug", "text", False, None),
        ("dep_slug", "text", False, None),
        ("step_slug", "text", False, None),
        ("created_at", "timestamp with time zone", False, "now()"),
    ),
    "workers": (
        ("worker_id", "uuid", False, None),
        ("queue_name", "text", False, None),
        ("function_name", "text", False, None),
        ("started_at", "timestamp with time zone", False, "now()"),
        ("deprecated_at", "timestamp with time zone", True, None),
        ("stopped_at", "timestamp with time zone", True, None),
        ("last_heartbeat_at", "timestamp with time zone", False, "now()"),
    ),
    "worker_functions": (
        ("function_name", "text", False, None),
        ("enabled", "boolean", False, "true"),
        ("debounce", "interval", False, "'00:00:06'::interval"),
        ("last_invoked_at", "timestamp with time zone", True, None),
        ("created_at", "timestamp with time zone", False, "now()"),
        ("updated_at", "timestamp with time zone", False, "now()"),
        ("start_mode", "text", False, "'http'::text"),
    ),
    "runs": (
        ("run_id", "uuid", False, "gen_random_uuid()"),
        ("flow_slug", "text", False, None),
        ("status", "text", False, "'started'::text"),
        ("input", "jsonb", False, None),
        ("output", "jsonb", True, None),
        ("remaining_steps", "integer", False, "0"),
        ("started_at", "timestamp with time zone", False, "now()"),
        ("completed_at", "timestamp with time zone", True, None),
        ("failed_at", "timestamp with time zone", True, None),
    ),
    "step_states": (
        ("flow_slug", "text", False, None),
        ("run_id", "uuid", False, None),
        ("step_slug", "text", False, None),
        ("status", "text", False, "'created'::text"),
        ("initial_tasks", "integer", True, None),
        ("remaining_tasks", "integer", True, None),
        ("remaining_deps", "integer", False, "0"),
        ("output", "jsonb", True, None),
        ("error_message", "text", True, None),
        ("skip_reason", "text", True, None),
        ("created_at", "timestamp with time zone", False, "now()"),
        ("started_at", "timestamp with time zone", True, None),
        ("completed_at", "timestamp with time zone", True, None),
        ("failed_at", "timestamp with time zone", True, None),
        ("skipped_at", "timestamp with time zone", True, None),
    ),
    "step_tasks": (
        ("flow_slug", "text", False, None),
        ("run_id", "uuid", False, None),
        ("step_slug", "text", False, None),
        ("message_id", "bigint", True, None),
        ("task_index", "integer", False, "0"),
        ("status", "text", False, "'queued'::text"),
        ("attempts_count", "integer", False, "0"),
        ("error_message", "text", True, None),
        ("output", "jsonb", True, None),
        ("queued_at", "timestamp with time zone", False, "now()"),
        ("started_at", "timestamp with time zone", True, None),
        ("completed_at", "timestamp with time zone", True, None),
        ("failed_at", "timestamp with time zone", True, None),
        ("last_worker_id", "uuid", True, None),
        ("requeued_count", "integer", False, "0"),
        ("last_requeued_at", "timestamp with time zone", True, None),
        ("permanently_stalled_at", "timestamp with time zone", True, None),
    ),
}

# table: {key: definition as the server prints it}
KEYS: Final[dict[str, dict[str, str]]] = {
    "flows": {"flows_pkey": "PRIMARY KEY (flow_slug)"},
    "steps": {
        "steps_pkey": "PRIMARY KEY (flow_slug, step_slug)",
        "steps_flow_slug_step_index_key": "UNIQUE (flow_slug, step_index)",
        "steps_flow_slug_fkey": "FOREIGN KEY (flow_slug) REFERENCES pgflow.flows(flow_slug)",
    },
    "deps": {
        "deps_pkey": "PRIMARY KEY (flow_slug, dep_slug, step_slug)",
        "deps_flow_slug_fkey": "FOREIGN KEY (flow_slug) REFERENCES pgflow.flows(flow_slug)",
        "deps_flow_slug_dep_slug_fkey": (
            "FOREIGN KEY (flow_slug, dep_slug) REFERENCES pgflow.steps(flow_slug, step_slug)"
        ),
        "deps_flow_slug_step_slug_fkey": (
            "FOREIGN KEY (flow_slug, step_slug) REFERENCES pgflow.steps(flow_slug, step_slug)"
        ),
    },
    "workers": {"workers_pkey": "PRIMARY KEY (worker_id)"},
    "worker_functions": {"worker_functions_pkey": "PRIMARY KEY (function_name)"},
    "runs": {
        "runs_pkey": "PRIMARY KEY (run_id)",
        "runs_flow_slug_fkey": "FOREIGN KEY (flow_slug) REFERENCES pgflow.flows(flow_slug)",
    },
    "step_states": {
        "step_states_pkey": "PRIMARY KEY (run_id, step_slug)",
        "step_states_flow_slug_fkey": "FOREIGN KEY (flow_slug) REFERENCES pgflow.flows(flow_slug)",
        "step_states_run_id_fkey": "FOREIGN KEY (run_id) REFERENCES pgflow.runs(run_id)",
        "step_states_flow_slug_step_slug_fkey": (
            "FOREIGN KEY (flow_slug, step_slug) REFERENCES pgflow.steps(flow_slug, step_slug)"
        ),
    },
    "step_tasks": {
        "step_tasks_pkey": "PRIMARY KEY (run_id, step_slug, task_index)",
        "step_tasks_flow_slug_fkey": "FOREIGN KEY (flow_slug) REFERENCES pgflow.flows(flow_slug)",
        "step_tasks_run_id_fkey": "FOREIGN KEY (run_id) REFERENCES pgflow.runs(run_id)",
        "step_tasks_run_id_step_slug_fkey": (
            "FOREIGN KEY (run_id, step_slug) REFERENCES pgflow.step_states(run_id, step_slug)"
        ),
        "step_tasks_last_worker_id_fkey": (
            "FOREIGN KEY (last_worker_id) REFERENCES pgflow.workers(worker_id) ON DELETE SET NULL"
        ),
    },
}

CHECKS: Final[dict[str, set[str]]] = {
    "flows": {
        "slug_is_valid",
        "opt_max_attempts_is_nonnegative",
        "opt_base_delay_is_nonnegative",
        "opt_timeout_is_positive",
    },
    "steps": {
        "steps_step_slug_check",
        "steps_step_type_check",
        "steps_deps_count_check",
        "opt_max_attempts_is_nonnegative",
        "opt_base_delay_is_nonnegative",
        "opt_start_delay_is_nonnegative",
        "opt_timeout_is_positive",
        "required_input_pattern_is_object",
        "forbidden_input_pattern_is_object",
        "when_unmet_is_valid",
        "when_exhausted_is_valid",
    },
    "deps": {"deps_check"},
    "workers": set(),
    "worker_functions": {"worker_functions_debounce_check", "worker_functions_start_mode_check"},
    "runs": {
        "status_is_valid",
        "runs_remaining_steps_check",
        "completed_at_or_failed_at",
        "completed_at_is_after_started_at",
        "failed_at_is_after_started_at",
    },
    "step_states": {
        "status_is_valid",
        "status_and_remaining_tasks_match",
        "remaining_tasks_state_consistency",
        "initial_tasks_known_when_started",
        "step_states_initial_tasks_check",
        "step_states_remaining_deps_check",
        "output_only_for_completed_or_null",
        "skip_reason_matches_status",
        "completed_at_or_failed_at_or_skipped_at",
        "started_at_is_after_created_at",
        "completed_at_is_after_started_at",
        "failed_at_is_after_started_at",
        "skipped_at_is_after_created_at",
    },
    "step_tasks": {
        "valid_status",
        "output_valid_only_for_completed",
        "attempts_count_nonnegative",
        "completed_at_or_failed_at",
        "started_at_is_after_queued_at",
        "completed_at_is_after_queued_at",
        "failed_at_is_after_queued_at",
        "completed_at_is_after_started_at",
        "failed_at_is_after_started_at",
    },
}

# index: (table, columns, predicate as the server prints it)
INDEXES: Final[dict[str, tuple[str, str, str | None]]] = {
    "idx_deps_by_flow_step": ("deps", "flow_slug, step_slug", None),
    "idx_deps_by_flow_dep": ("deps", "flow_slug, dep_slug", None),
    "idx_workers_queue_name": ("workers", "queue_name", None),
    "idx_workers_heartbeat": ("workers", "last_heartbeat_at", None),
    "idx_runs_flow_slug": ("runs", "flow_slug", None),
    "idx_runs_status": ("runs", "status", None),
    "idx_step_states_ready": (
        "step_states",
        "run_id, status, remaining_deps",
        "((status = 'created'::text) AND (remaining_deps = 0))",
    ),
    "idx_step_states_failed": ("step_states", "run_id, step_slug", "(status = 'failed'::text)"),
    "idx_step_states_skipped": ("step_states", "run_id, step_slug", "(status = 'skipped'::text)"),
    "idx_step_states_flow_slug": ("step_states", "flow_slug", None),
    "idx_step_states_run_id": ("step_states", "run_id", None),
    "idx_step_tasks_message_id": ("step_tasks", "message_id", None),
    "idx_step_tasks_queued": ("step_tasks", "run_id, step_slug", "(status = 'queued'::text)"),
    "idx_step_tasks_completed": ("step_tasks", "run_id, step_slug", "(status = 'completed'::text)"),
    "idx_step_tasks_failed": ("step_tasks", "run_id, step_slug", "(status = 'failed'::text)"),
    "idx_step_tasks_flow_run_step": ("step_tasks", "flow_slug, run_id, step_slug", None),
    "idx_step_tasks_started": ("step_tasks", "started_at", "(status = 'started'::text)"),
    "idx_step_tasks_queued_msg": ("step_tasks", "message_id", "(status = 'queued'::text)"),
    "idx_step_tasks_last_worker": ("step_tasks", "last_worker_id", "(status = 'started'::text)"),
}

READ_COLUMNS: Final = """
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), not a.attnotnull,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid)
from pg_catalog.pg_attribute as a
left join pg_catalog.pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = pg_catalog.to_regclass('pgflow.' || %s) and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""
READ_KEYS: Final = """
select c.conname, pg_catalog.pg_get_constraintdef(c.oid)
from pg_catalog.pg_constraint as c
where c.conrelid = pg_catalog.to_regclass('pgflow.' || %s) and c.contype in ('p', 'u', 'f', 'x')
"""
READ_CHECKS: Final = """
select c.conname from pg_catalog.pg_constraint as c
where c.conrelid = pg_catalog.to_regclass('pgflow.' || %s) and c.contype = 'c' and c.convalidated
"""
READ_INDEXES: Final = """
select i.indexrelid::regclass::text, i.indrelid::regclass::text,
       (select string_agg(pg_catalog.pg_get_indexdef(i.indexrelid, k, true), ', ' order by k)
        from generate_series(1, i.indnkeyatts) as k),
       pg_catalog.pg_get_expr(i.indpred, i.indrelid), i.indisunique
from pg_catalog.pg_index as i
join pg_catalog.pg_class as c on c.oid = i.indexrelid
where c.relnamespace = 'pgflow'::regnamespace
and not exists (
  select from pg_catalog.pg_constraint as k where k.conindid = i.indexrelid and k.contype <> 'f'
)
"""
READ_TYPE: Final = """
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_type as t join pg_catalog.pg_attribute as a on a.attrelid = t.typrelid
where t.oid = 'pgflow.step_task_record'::regtype and a.attnum > 0
order by a.attnum
"""
READ_GRANTEES: Final = """
select acl.grantee
from pg_catalog.pg_namespace as n, lateral pg_catalog.aclexplode(n.nspacl) as acl
where n.nspname = 'pgflow' and acl.grantee <> n.nspowner
union all
select acl.grantee
from pg_catalog.pg_class as c, lateral pg_catalog.aclexplode(c.relacl) as acl
where c.relnamespace = 'pgflow'::regnamespace and acl.grantee <> c.relowner
"""
READ_UNCOMMENTED: Final = """
select n.nspname from pg_catalog.pg_namespace as n
where n.nspname = 'pgflow' and pg_catalog.obj_description(n.oid, 'pg_namespace') is null
union all
select c.oid::regclass::text from pg_catalog.pg_class as c
where c.relnamespace = 'pgflow'::regnamespace and c.relkind = 'r'
and pg_catalog.obj_description(c.oid, 'pg_class') is null
union all
select p.oid::regprocedure::text from pg_catalog.pg_proc as p
where p.pronamespace = 'pgflow'::regnamespace
and pg_catalog.obj_description(p.oid, 'pg_proc') is null
union all
select t.oid::regtype::text from pg_catalog.pg_type as t
join pg_catalog.pg_class as c on c.oid = t.typrelid and c.relkind = 'c'
where t.typnamespace = 'pgflow'::regnamespace
and pg_catalog.obj_description(t.oid, 'pg_type') is null
"""

# One row of everything, an hour old, so that times before and after it can be tried.
ROWS: Final = """
insert into pgflow.flows (flow_slug, created_at) values ('f', now());
insert into pgflow.steps (flow_slug, step_slug, step_index) values ('f', 'a', 0), ('f', 'b', 1);
insert into pgflow.deps (flow_slug, dep_slug, step_slug) values ('f', 'a', 'b');
insert into pgflow.workers (worker_id, queue_name, function_name)
values ('00000000-0000-0000-0000-00000000000a', 'f', 'w');
insert into pgflow.worker_functions (function_name) values ('w');
insert into pgflow.runs (run_id, flow_slug, input) values ('00000000-0000-0000-0000-000000000001', 'f', '{}');
insert into pgflow.step_states (flow_slug, run_id, step_slug)
values ('f', '00000000-0000-0000-0000-000000000001', 'a');
insert into pgflow.step_tasks (flow_slug, run_id, step_slug, last_worker_id)
values ('f', '00000000-0000-0000-0000-000000000001', 'a', '00000000-0000-0000-0000-00000000000a');
"""
EARLIER: Final = "now() - interval '1 hour'"
LATER: Final = "now() + interval '1 hour'"
EVEN_LATER: Final = "now() + interval '2 hours'"

# (table, assignments to its one row, the constraint that refuses them)
REFUSED: Final = (
    ("flows", "flow_slug = '1f'", "slug_is_valid"),
    ("flows", "flow_slug = 'run'", "slug_is_valid"),
    ("flows", "opt_max_attempts = -1", "opt_max_attempts_is_nonnegative"),
    ("flows", "opt_base_delay = -1", "opt_base_delay_is_nonnegative"),
    ("flows", "opt_timeout = 0", "opt_timeout_is_positive"),
    ("steps", "step_slug = 'a-b'", "steps_step_slug_check"),
    ("steps", "step_type = 'batch'", "steps_step_type_check"),
    ("steps", "step_index = 0", "steps_flow_slug_step_index_key"),
    ("steps", "deps_count = -1", "steps_deps_count_check"),
    ("steps", "opt_max_attempts = -1", "opt_max_attempts_is_nonnegative"),
    ("steps", "opt_base_delay = -1", "opt_base_delay_is_nonnegative"),
    ("steps", "opt_start_delay = -1", "opt_start_delay_is_nonnegative"),
    ("steps", "opt_timeout = 0", "opt_timeout_is_positive"),
    ("steps", "required_input_pattern = '[]'", "required_input_pattern_is_object"),
    ("steps", "required_input_pattern = 'null'", "required_input_pattern_is_object"),
    ("steps", "forbidden_input_pattern = '1'", "forbidden_input_pattern_is_object"),
    ("steps", "when_unmet = 'ignore'", "when_unmet_is_valid"),
    ("steps", "when_exhausted = 'retry'", "when_exhausted_is_valid"),
    ("deps", "dep_slug = 'b'", "deps_check"),
    ("deps", "dep_slug = 'c'", "deps_flow_slug_dep_slug_fkey"),
    ("deps", "step_slug = 'c'", "deps_flow_slug_step_slug_fkey"),
    ("worker_functions", "debounce = interval '999 ms'", "worker_functions_debounce_check"),
    ("worker_functions", "start_mode = 'cron'", "worker_functions_start_mode_check"),
    ("runs", "status = 'skipped'", "status_is_valid"),
    ("runs", "flow_slug = 'g'", "runs_flow_slug_fkey"),
    ("runs", "remaining_steps = -1", "runs_remaining_steps_check"),
    ("runs", f"completed_at = {LATER}, failed_at = {LATER}", "completed_at_or_failed_at"),
    ("runs", f"completed_at = {EARLIER}", "completed_at_is_after_started_at"),
    ("runs", f"failed_at = {EARLIER}", "failed_at_is_after_started_at"),
    ("step_states", "status = 'queued'", "status_is_valid"),
    ("step_states", "status = 'completed'", "status_and_remaining_tasks_match"),
    ("step_states", "status = 'completed', remaining_tasks = 1", "status_and_remaining_tasks_match"),
    ("step_states", "remaining_tasks = 1", "remaining_tasks_state_consistency"),
    (
        "step_states",
        "status = 'skipped', skip_reason = 'condition_unmet', remaining_tasks = 1",
        "remaining_tasks_state_consistency",
    ),
    ("step_states", "status = 'started'", "initial_tasks_known_when_started"),
    ("step_states", "initial_tasks = -1", "step_states_initial_tasks_check"),
    ("step_states", "remaining_deps = -1", "step_states_remaining_deps_check"),
    ("step_states", "output = '1'", "output_only_for_completed_or_null"),
    ("step_states", "status = 'failed', output = '1'", "output_only_for_completed_or_null"),
    ("step_states", "status = 'skipped'", "skip_reason_matches_status"),
    ("step_states", "skip_reason = 'condition_unmet'", "skip_reason_matches_status"),
    (
        "step_states",
        f"completed_at = {LATER}, failed_at = {LATER}",
        "completed_at_or_failed_at_or_skipped_at",
    ),
    ("step_states", f"failed_at = {LATER}, skipped_at = {LATER}", "completed_at_or_failed_at_or_skipped_at"),
    ("step_states", f"started_at = {EARLIER}", "started_at_is_after_created_at"),
    (
        "step_states",
        f"started_at = {EVEN_LATER}, completed_at = {LATER}",
        "completed_at_is_after_started_at",
    ),
    ("step_states", f"started_at = {EVEN_LATER}, failed_at = {LATER}", "failed_at_is_after_started_at"),
    ("step_states", f"skipped_at = {EARLIER}", "skipped_at_is_after_created_at"),
    ("step_states", "step_slug = 'b'", "step_tasks_run_id_step_slug_fkey"),
    ("step_tasks", "status = 'stalled'", "valid_status"),
    ("step_tasks", "status = 'created'", "valid_status"),
    ("step_tasks", "output = '1'", "output_valid_only_for_completed"),
    ("step_tasks", "attempts_count = -1", "attempts_count_nonnegative"),
    ("step_tasks", f"completed_at = {LATER}, failed_at = {LATER}", "completed_at_or_failed_at"),
    ("step_tasks", f"started_at = {EARLIER}", "started_at_is_after_queued_at"),
    ("step_tasks", f"completed_at = {EARLIER}", "completed_at_is_after_queued_at"),
    ("step_tasks", f"failed_at = {EARLIER}", "failed_at_is_after_queued_at"),
    ("step_tasks", f"started_at = {EVEN_LATER}, completed_at = {LATER}", "completed_at_is_after_started_at"),
    ("step_tasks", f"started_at = {EVEN_LATER}, failed_at = {LATER}", "failed_at_is_after_started_at"),
    ("step_tasks", "step_slug = 'b'", "step_tasks_run_id_step_slug_fkey"),
    (
        "step_tasks",
        "last_worker_id = '00000000-0000-0000-0000-00000000000b'",
        "step_tasks_last_worker_id_fkey",
    ),
)

ACCEPTED: Final = (
    ("flows", "opt_max_attempts = 0, opt_base_delay = 0, opt_timeout = 1"),
    (
        "steps",
        "step_type = 'map', deps_count = 1, when_unmet = 'skip-cascade', when_exhausted = 'skip-cascade'",
    ),
    ("steps", "opt_max_attempts = 0, opt_base_delay = 0, opt_start_delay = 0, opt_timeout = 1"),
    ("steps", "required_input_pattern = '{}', forbidden_input_pattern = '{\"a\": 1}', when_unmet = 'fail'"),
    ("worker_functions", "debounce = interval '1 second', start_mode = 'process', enabled = false"),
    ("runs", "status = 'completed', output = null, completed_at = started_at"),
    ("runs", "status = 'failed', failed_at = started_at"),
    ("step_states", "status = 'started', initial_tasks = 2, remaining_tasks = 2, started_at = created_at"),
    (
        "step_states",
        "status = 'completed', initial_tasks = 0, remaining_tasks = 0, output = '[]', started_at = now(),"
        " completed_at = now()",
    ),
    ("step_states", "status = 'completed', remaining_tasks = 0, output = null"),
    ("step_states", f"status = 'failed', error_message = 'Condition not met', failed_at = {LATER}"),
    ("step_states", "status = 'skipped', skip_reason = 'handler_failed', skipped_at = created_at"),
    ("step_tasks", "status = 'skipped'"),
    ("step_tasks", "status = 'cancelled', started_at = queued_at"),
    ("step_tasks", "message_id = 9007199254740993, status = 'started', started_at = queued_at"),
    ("step_tasks", f"status = 'completed', output = 'null', completed_at = {LATER}"),
    ("step_tasks", f"status = 'failed', output = '{{}}', failed_at = {LATER}, started_at = null"),
)

LONGEST: Final = "s" * 128
SLUGS: Final[tuple[tuple[str | None, bool], ...]] = (
    (None, False),
    ("", False),
    (" ", False),
    ("a", True),
    ("Z", True),
    ("_", True),
    ("_a", True),
    ("a_", True),
    ("a__b", True),
    ("camelCase9", True),
    ("9a", False),
    ("a9", True),
    ("a-b", False),
    ("a b", False),
    ("a.b", False),
    ("run", False),
    ("Run", True),
    ("RUN", True),
    ("runs", True),
    ("_run", True),
    ("run\n", False),
    ("a\n", False),
    ("\na", False),
    ("a\nb", False),
    ("a\r", False),
    (LONGEST, True),
    (LONGEST + "s", False),
    (LONGEST + "\n", False),
    ("\u00e9", False),
    ("\uff41", False),
    ("a\u0663", False),
    ("a\u00aa", False),
    ("\u017f", False),
    ("\u212a", False),
    ("\u0430", False),
    ("a\u200b", False),
)


def test_pgflow_holds_these_tables_and_nothing_else(conn: psycopg.Connection) -> None:
    rows = conn.execute(
        "select relname, relkind from pg_catalog.pg_class"
        " where relnamespace = 'pgflow'::regnamespace and relkind not in ('i', 'c')"
    ).fetchall()
    assert dict(rows) == dict.fromkeys(COLUMNS, "r")


@pytest.mark.parametrize("table", COLUMNS)
def test_columns_have_type_nullability_and_default(conn: psycopg.Connection, table: str) -> None:
    assert tuple(conn.execute(READ_COLUMNS, (table,)).fetchall()) == COLUMNS[table]


@pytest.mark.parametrize("table", KEYS)
def test_keys_have_these_names_columns_and_actions(conn: psycopg.Connection, table: str) -> None:
    conn.execute("set local search_path = ''")
    assert dict(conn.execute(READ_KEYS, (table,)).fetchall()) == KEYS[table]


@pytest.mark.parametrize("table", CHECKS)
def test_checks_have_these_names(conn: psycopg.Connection, table: str) -> None:
    assert {name for (name,) in conn.execute(READ_CHECKS, (table,))} == CHECKS[table]


def test_indexes_have_these_names_columns_and_predicates(conn: psycopg.Connection) -> None:
    conn.execute("set local search_path = 'pgflow'")
    found = {
        name: (table, columns, predicate) for name, table, columns, predicate, _ in conn.execute(READ_INDEXES)
    }
    assert found == INDEXES
    assert not any(unique for *_, unique in conn.execute(READ_INDEXES))


def test_step_task_record_has_seven_attributes_in_order(conn: psycopg.Connection) -> None:
    assert conn.execute(READ_TYPE).fetchall() == [
        ("flow_slug", "text"),
        ("run_id", "uuid"),
        ("step_slug", "text"),
        ("input", "jsonb"),
        ("msg_id", "bigint"),
        ("task_index", "integer"),
        ("flow_input", "jsonb"),
    ]


@pytest.mark.parametrize(("table", "assignments", "constraint"), REFUSED)
def test_a_row_is_refused_by_the_constraint_of_this_name(
    conn: psycopg.Connection, table: str, assignments: str, constraint: str
) -> None:
    conn.execute(ROWS)
    with pytest.raises(psycopg.IntegrityError) as caught:
        _assign(conn, table, assignments)
    assert caught.value.diag.constraint_name == constraint


@pytest.mark.parametrize(("table", "assignments"), ACCEPTED)
def test_a_row_is_accepted(conn: psycopg.Connection, table: str, assignments: str) -> None:
    conn.execute(ROWS)
    assert _assign(conn, table, assignments) == 1


def test_deleting_a_worker_leaves_its_tasks_without_one(conn: psycopg.Connection) -> None:
    conn.execute(ROWS)
    conn.execute("delete from pgflow.workers")
    assert conn.execute("select last_worker_id from pgflow.step_tasks").fetchall() == [(None,)]


@pytest.mark.parametrize(("slug", "valid"), SLUGS)
def test_is_valid_slug_says(conn: psycopg.Connection, slug: str | None, valid: bool) -> None:
    assert conn.execute("select pgflow.is_valid_slug(slug => %s)", (slug,)).fetchone() == (valid,)


def test_nothing_is_granted_to_anybody(conn: psycopg.Connection) -> None:
    assert conn.execute(READ_GRANTEES).fetchall() == []


def test_every_table_type_and_function_has_a_comment(conn: psycopg.Connection) -> None:
    assert conn.execute(READ_UNCOMMENTED).fetchall() == []


def _assign(conn: psycopg.Connection, table: str, assignments: str) -> int:
    """Change the table's row (the step `b`), and return how many rows changed."""
    where = "where step_slug = 'b'" if table == "steps" else ""
    return conn.execute(f"update pgflow.{table} set {assignments} {where}".encode()).rowcount
