"""Workers that are registered, started by a ping, and cleaned up after by pg_cron."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.rows import dict_row

from .engine import add_worker

if TYPE_CHECKING:
    from .engine import Conn

HERE: Final = Path(__file__).parent
TRACK: Final = "select pgflow.track_worker_function(%s)"
TRACK_AS: Final = "select pgflow.track_worker_function(%s, %s)"
ENSURE: Final = "select * from pgflow.ensure_workers()"
LONG_AGO: Final = "2020-01-01"
CLOUD: Final = "https://abc.supabase.co/functions/v1"
LOCAL: Final = "http://kong:8000/functions/v1"
JSON: Final = {"Content-Type": "application/json"}


def install(conn: Conn, *names: str) -> None:
    """Install stand-ins of Supabase's extensions."""
    for name in names:
        conn.execute((HERE / f"{name}.sql").read_bytes())


def production(conn: Conn, **secrets: str) -> None:
    """Install net and vault, with the secrets of a hosted project or the given ones."""
    install(conn, "net", "vault")
    for name, secret in (secrets or {"supabase_project_id": "abc", "pgflow_auth_secret": "key"}).items():
        conn.execute("insert into vault.secrets (name, secret) values (%s, %s)", [name, secret])


def local(conn: Conn) -> None:
    """Say that the database is a developer's own."""
    conn.execute("select set_config('pgflow.environment', 'local', true)")


def pinged(conn: Conn) -> list[str]:
    """Call `ensure_workers`: the functions that it started."""
    return [str(row[0]) for row in conn.execute(ENSURE)]


def requests(conn: Conn) -> list[dict[str, Any]]:
    """What was asked of net."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("select url, headers, body from net.http_request_queue order by id").fetchall()


def function_row(conn: Conn, name: str = "f") -> dict[str, Any]:
    """The function's row."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("select * from pgflow.worker_functions where function_name = %s", [name])
        found = row.fetchone()
    assert found is not None
    return found


def change(conn: Conn, assignment: str) -> None:
    """Change all rows of worker_functions."""
    conn.execute(f"update pgflow.worker_functions set {assignment}".encode())


def test_a_function_is_registered_once_and_refreshed(conn: Conn) -> None:
    """Row 116."""
    conn.execute(TRACK, ["f"])
    first = function_row(conn)
    assert first["enabled"] is True
    assert first["start_mode"] == "http"
    assert first["last_invoked_at"] is None
    conn.execute(TRACK, ["f"])
    second = function_row(conn)
    assert second.pop("updated_at") > first.pop("updated_at")
    assert second == first


def test_a_refresh_keeps_pause_debounce_and_last_start(conn: Conn) -> None:
    conn.execute(TRACK, ["f"])
    change(conn, f"enabled = false, debounce = '9 s', last_invoked_at = '{LONG_AGO}'")
    before = function_row(conn)
    conn.execute(TRACK_AS, ["f", "process"])
    after = function_row(conn)
    assert after["start_mode"] == "process"
    for name in ("enabled", "debounce", "last_invoked_at", "created_at"):
        assert after[name] == before[name]


def test_one_argument_turns_a_process_back_into_http(conn: Conn) -> None:
    conn.execute(TRACK_AS, ["f", "process"])
    conn.execute(TRACK, ["f"])
    assert function_row(conn)["start_mode"] == "http"


def test_an_unknown_start_mode_is_refused(conn: Conn) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="worker_functions_start_mode_check"):
        conn.execute(TRACK_AS, ["f", "cron"])


def test_a_stopped_worker_says_when(conn: Conn) -> None:
    """Row 116."""
    stopped, other = add_worker(conn), add_worker(conn)
    conn.execute("select pgflow.mark_worker_stopped(%s)", [stopped])
    conn.execute("select pgflow.mark_worker_stopped(gen_random_uuid())")
    rows = conn.execute("select worker_id, stopped_at > now() from pgflow.workers").fetchall()
    assert dict(rows) == {stopped: True, other: None}


def test_a_function_that_was_never_started_is_pinged(conn: Conn) -> None:
    """Row 115."""
    production(conn)
    conn.execute(TRACK, ["f"])
    with conn.cursor(row_factory=dict_row) as cursor:
        assert cursor.execute(ENSURE).fetchall() == [{"function_name": "f", "invoked": True, "request_id": 1}]
    headers = {"Authorization": "Bearer key", **JSON}
    assert requests(conn) == [{"url": f"{CLOUD}/f", "headers": headers, "body": {}}]
    assert conn.execute("select last_invoked_at > now() from pgflow.worker_functions").fetchone() == (True,)


def test_a_ping_is_not_repeated_within_the_debounce(conn: Conn) -> None:
    """Row 115."""
    production(conn)
    conn.execute(TRACK, ["f"])
    assert pinged(conn) == ["f"]
    assert pinged(conn) == []
    change(conn, "last_invoked_at = now() - debounce + interval '3 s'")
    assert pinged(conn) == []
    change(conn, "last_invoked_at = now() - debounce - interval '1 s'")
    assert pinged(conn) == ["f"]
    change(conn, "last_invoked_at = now() - interval '1 hour', debounce = '2 hours'")
    assert pinged(conn) == []


@pytest.mark.parametrize("assignment", ["enabled = false", "start_mode = 'process'"])
@pytest.mark.parametrize("here", ["production", "local"])
def test_paused_functions_and_processes_are_never_pinged(conn: Conn, here: str, assignment: str) -> None:
    """Row 115."""
    production(conn)
    if here == "local":
        local(conn)
    conn.execute(TRACK, ["f"])
    change(conn, assignment)
    assert pinged(conn) == []
    assert requests(conn) == []


@pytest.mark.parametrize(
    ("assignment", "alive"),
    [
        ("last_heartbeat_at = now()", True),
        ("last_heartbeat_at = now() - interval '3 s'", True),
        ("last_heartbeat_at = now() - interval '6 s'", False),
        ("stopped_at = now()", False),
        ("deprecated_at = now()", False),
        ("function_name = 'other'", False),
    ],
)
def test_only_a_live_worker_spares_the_ping(conn: Conn, assignment: str, alive: bool) -> None:
    """Row 115."""
    production(conn)
    conn.execute(TRACK, ["f"])
    add_worker(conn, "q", function="f")
    conn.execute(f"update pgflow.workers set {assignment}".encode())
    assert pinged(conn) == ([] if alive else ["f"])


def test_one_live_worker_among_dead_ones_is_enough(conn: Conn) -> None:
    production(conn)
    conn.execute(TRACK, ["f"])
    for _ in range(2):
        add_worker(conn, "q", function="f")
    conn.execute("update pgflow.workers set stopped_at = now()")
    add_worker(conn, "q", function="f")
    assert pinged(conn) == []


def test_a_local_database_pings_always_and_needs_no_secrets(conn: Conn) -> None:
    """Row 115."""
    install(conn, "net", "vault")
    local(conn)
    for name in ("f", "g"):
        conn.execute(TRACK, [name])
        add_worker(conn, "q", function=name)
    assert pinged(conn) == ["f", "g"]
    assert pinged(conn) == ["f", "g"]
    assert requests(conn)[0] == {"url": f"{LOCAL}/f", "headers": JSON, "body": {}}


@pytest.mark.parametrize(
    ("secrets", "key"),
    [
        ({"pgflow_auth_secret": "a", "supabase_service_role_key": "b"}, "a"),
        ({"pgflow_auth_secret": "", "supabase_service_role_key": "b"}, "b"),
        ({"supabase_service_role_key": "b"}, "b"),
    ],
)
def test_the_key_of_pgflow_goes_before_the_role_key(conn: Conn, secrets: dict[str, str], key: str) -> None:
    """Row 115."""
    production(conn, supabase_project_id="abc", **secrets)
    conn.execute(TRACK, ["f"])
    assert pinged(conn) == ["f"]
    assert [request["headers"]["Authorization"] for request in requests(conn)] == [f"Bearer {key}"]


@pytest.mark.parametrize(
    "secrets",
    [
        {"supabase_project_id": "abc"},
        {"supabase_project_id": "abc", "pgflow_auth_secret": "", "supabase_service_role_key": ""},
        {"pgflow_auth_secret": "key"},
        {"supabase_project_id": "", "pgflow_auth_secret": "key"},
    ],
)
def test_without_a_key_or_a_project_nothing_is_called(conn: Conn, secrets: dict[str, str]) -> None:
    """Row 115."""
    production(conn, **secrets)
    conn.execute(TRACK, ["f"])
    assert pinged(conn) == []
    assert requests(conn) == []
    assert function_row(conn)["last_invoked_at"] is None


def test_two_calls_at_once_start_a_function_once_and_do_not_wait(database: str) -> None:
    with psycopg.connect(database) as first, psycopg.connect(database) as second:
        production(first)
        first.execute(TRACK, ["f"])
        first.commit()
        second.execute("set lock_timeout = '5s'")
        assert pinged(first) == ["f"]
        assert pinged(second) == []
        first.commit()
        second.commit()
        assert pinged(second) == []
        assert len(requests(second)) == 1


def jobs(conn: Conn) -> list[tuple[object, ...]]:
    """The jobs of pg_cron."""
    return conn.execute("select jobname, schedule, command from cron.job order by jobname").fetchall()


def text(conn: Conn, call: str) -> str:
    """The text that a function returns."""
    row = conn.execute(f"select pgflow.{call}".encode()).fetchone()
    assert row is not None
    return str(row[0])


def test_the_recovery_job_is_set_up_once_and_replaced(conn: Conn) -> None:
    """Row 117."""
    install(conn, "cron")
    name, command = "pgflow_requeue_stalled_tasks", "select pgflow.requeue_stalled_tasks()"
    said = text(conn, "setup_requeue_stalled_tasks_cron()")
    assert said == f"job {name} is scheduled: 15 seconds"
    assert jobs(conn) == [(name, "15 seconds", command)]
    text(conn, "setup_requeue_stalled_tasks_cron('30 seconds')")
    assert jobs(conn) == [(name, "30 seconds", command)]


def test_the_jobs_that_keep_workers_are_set_up_once_and_replaced(conn: Conn) -> None:
    """Row 117."""
    install(conn, "cron")
    clean = ("pgflow_cleanup_logs", "0 * * * *", "select pgflow.cleanup_ensure_workers_logs()")
    said = text(conn, "setup_ensure_workers_cron()")
    assert (
        said
        == "job pgflow_ensure_workers is scheduled: 1 second; job pgflow_cleanup_logs is scheduled: 0 * * * *"
    )
    assert jobs(conn) == [clean, ("pgflow_ensure_workers", "1 second", "select pgflow.ensure_workers()")]
    text(conn, "setup_ensure_workers_cron(cron_interval => '5 seconds')")
    assert jobs(conn) == [clean, ("pgflow_ensure_workers", "5 seconds", "select pgflow.ensure_workers()")]


def test_jobs_of_other_users_and_names_stay(conn: Conn) -> None:
    install(conn, "cron")
    conn.execute(
        "insert into cron.job (jobname, schedule, command, username) values"
        " ('pgflow_requeue_stalled_tasks', '1 day', 'select 1', 'somebody'),"
        " ('nightly', '1 day', 'select 2', current_user)"
    )
    text(conn, "setup_requeue_stalled_tasks_cron()")
    text(conn, "setup_requeue_stalled_tasks_cron()")
    assert [row[1] for row in jobs(conn)] == ["1 day", "1 day", "15 seconds"]


def test_a_null_schedule_is_refused_and_the_job_stays(conn: Conn) -> None:
    install(conn, "cron")
    text(conn, "setup_requeue_stalled_tasks_cron()")
    with pytest.raises(psycopg.errors.NullValueNotAllowed) as refused, conn.transaction():
        text(conn, "setup_requeue_stalled_tasks_cron(null)")
    message = "the schedule of cron job pgflow_requeue_stalled_tasks must not be null"
    assert refused.value.diag.message_primary == message
    assert len(jobs(conn)) == 1


def test_old_log_rows_are_deleted_by_the_end_of_their_run(conn: Conn) -> None:
    install(conn, "cron")
    conn.execute(
        "insert into cron.job_run_details (jobid, end_time) values (1, now() - interval '25 hours'),"
        " (2, now() - interval '23 hours'), (3, now() - interval '3 days'), (4, null)"
    )
    cleanup = "select cron_deleted from pgflow.cleanup_ensure_workers_logs"
    assert conn.execute(f"{cleanup}()".encode()).fetchall() == [(2,)]
    assert conn.execute(f"{cleanup}(retention_hours => 1)".encode()).fetchall() == [(1,)]
    assert conn.execute("select jobid from cron.job_run_details").fetchall() == [(4,)]
