"""`apply` with real processes: others at work on the database, kills, signals, locks that are held."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.conftest import EMBEDDED
from tests.e2e.applying import (
    ASKING,
    NOBODY,
    ONLINE,
    WAITING,
    Deploy,
    deployed,
    ended,
    kill,
    wait_for,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer

FIRST: Final = "create table t (i int, j int);\ninsert into t values (1, 1), (2, 2);\n"
THREE: Final = "create table u (i int);\nalter table t add k int;\ninsert into u values (1);\n"
SLEEPING: Final = """
select a.pid from pg_stat_activity as a
where a.datname = current_database() and a.application_name = 'pgsluice' and a.wait_event = 'PgSleep'
"""
HOLD: Final = "lock table t in access share mode"


@pytest.fixture
def deploy(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project with one migration that the database has, and one that waits for whoever reads table t."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        made.add("0001_first.sql", FIRST)
        made.ok("apply")
        made.add("0002_second.sql", THREE)
        yield made


def test_second_of_two_runs_waits_and_finds_nothing_to_do(deploy: Deploy) -> None:
    with deploy.session() as reader, deploy.session() as watcher:
        with reader.transaction():
            reader.execute(HOLD)
            first = deploy.start("apply", "--lock-timeout", "30")
            wait_for(watcher, WAITING, like="alter%")
            second = deploy.start("apply")
            wait_for(watcher, ASKING)
        one, two = ended(first), ended(second)
    assert (one.code, two.code) == (0, 0), f"{one}\n{two}"
    assert one.stdout.startswith("applied 0002_second.sql (3 statements, ")
    assert two.stdout == f"app: nothing to do on {shown(deploy)}\n"
    assert deploy.states() == ["applied", "applied"]


def test_second_of_two_runs_leaves_with_the_name_of_the_first(deploy: Deploy) -> None:
    with deploy.session() as reader, deploy.session() as watcher:
        with reader.transaction():
            reader.execute(HOLD)
            first = deploy.start("apply", "--lock-timeout", "30")
            pid = wait_for(watcher, WAITING, like="alter%")
            error = deploy.fails(3, "apply", "--wait", "0.2")
            status = deploy.ok("status")
        assert ended(first).code == 0
    assert without_times(error) == (
        f"error: another run works on this database, waited 0.2 s: pgsluice, pid {pid} of pgsluice_dev,"
        " connected since <time> UTC\n"
        "hint: pgsluice apply --wait 600, or when that run hangs:"
        f" select pg_terminate_backend({pid});\n"
    )
    assert f"a run works on it now: pgsluice, pid {pid} of pgsluice_dev, connected since" in status
    assert "pending       0002_second.sql" in status


def test_kill_in_a_transaction_leaves_nothing_of_the_file(deploy: Deploy) -> None:
    with deploy.session() as reader, deploy.session() as watcher:
        with reader.transaction():
            reader.execute(HOLD)
            process = deploy.start("apply", "--lock-timeout", "60")
            wait_for(watcher, WAITING, like="alter%")
            kill(process)
            wait_for(watcher, NOBODY)  # the server notices by itself, while the lock is still held
        assert deploy.rows("select to_regclass('u')::text") == [None]
    assert deploy.states() == ["applied", "pending"]
    deploy.ok("apply")
    assert deploy.rows("select i from u") == [1]


def test_kill_in_a_concurrent_index_resumes_with_that_statement(deploy: Deploy) -> None:
    deploy.add(
        "0002_second.sql", ONLINE + "insert into t values (3, 3);\ncreate index concurrently t_i on t (i);\n"
    )
    with deploy.session() as writer, deploy.session() as watcher, writer.transaction():
        writer.execute("insert into t values (4, 4)")
        process = deploy.start("apply")
        wait_for(watcher, WAITING, like="create index%")
        kill(process)
        wait_for(watcher, NOBODY)
    assert deploy.rows("select indisvalid from pg_index where indexrelid = to_regclass('t_i')") == [False]
    status = deploy.run("status")
    assert status.code == 4
    assert status.stdout.endswith(
        "  dirty         0002_second.sql  1 of 2 statements done; statement 2 (create index concurrently t_i"
        " on t (i)) was started, and may or may not have come to its end\n"
    )
    done = deploy.run("apply")
    assert done.code == 0, str(done)
    assert "note: 0002_second.sql: drop index concurrently if exists public.t_i\n" in done.stderr
    assert deploy.rows("select indisvalid from pg_index where indexrelid = 't_i'::regclass") == [True]
    assert deploy.rows("select count(*) from t where i = 3") == [1]
    assert deploy.states() == ["applied", "applied"]


def test_kill_in_a_recorded_statement_leaves_it_out(deploy: Deploy) -> None:
    deploy.add("0002_second.sql", ONLINE + THREE)
    with deploy.session() as reader, deploy.session() as watcher, reader.transaction():
        reader.execute(HOLD)
        process = deploy.start("apply", "--lock-timeout", "60")
        wait_for(watcher, WAITING, like="alter%")
        kill(process)
        wait_for(watcher, NOBODY)
    assert deploy.files("state", "detail")[1] == (
        "dirty",
        "1 of 3 statements done; statement 2 was not started, or was rolled back",
    )
    assert deploy.ok("apply").startswith("applied 0002_second.sql (2 statements, ")
    assert deploy.rows("select i from u") == [1]


@pytest.mark.slow
def test_kills_at_any_moment_end_in_the_same_database(deploy: Deploy) -> None:
    rows = "insert into t select i, i from generate_series(1, 20000) as i;\n"
    deploy.add("0002_second.sql", rows + "create table u (n int);\n")
    deploy.add(
        "0003_third.sql",
        f"{ONLINE}insert into u values (1);\ncreate index concurrently t_i on t (i);\n"
        "insert into u values (2);\ncreate index concurrently t_j on t (j);\ninsert into u values (3);\n",
    )
    deploy.add("0004_fourth.sql", rows + "insert into u values (4);\n")
    kills = 0
    for delay_s in (0.3 + 0.06 * number for number in range(100)):
        process = deploy.start("apply")
        try:
            process.wait(delay_s)
        except subprocess.TimeoutExpired:
            kill(process)
            kills += 1
        else:
            assert ended(process).code == 0
            break
    assert kills > 0
    assert deploy.states() == ["applied"] * 4
    assert deploy.rows("select n from u order by n") == [1, 2, 3, 4]
    assert deploy.rows("select count(*) from t") == [40002]
    assert deploy.rows("select count(*) from pg_index where indrelid = 't'::regclass and indisvalid") == [2]


def test_reader_in_the_way_is_named_after_bounded_attempts(deploy: Deploy) -> None:
    with deploy.session() as reader, reader.transaction():
        reader.execute(HOLD)
        pid = reader.info.backend_pid
        done = deploy.run("apply", "--lock-timeout", "0.4", "--retries", "1")
    assert done.code == 3, str(done)
    blocker = rf"pid {pid} \(pgsluice_dev, web, idle in transaction for \d+ s\): {HOLD}"
    assert re.fullmatch(
        "note: 0002_second.sql: no lock in attempt 1 of 2, blocked by " + blocker + r"; again in \d\.\d s\n"
        "error: migrations/app/0002_second.sql:2: statement 2 of 3 got no lock in 2 attempts;"
        " rolled back, nothing of this file is in the database\n"
        r"  canceling statement due to lock timeout \(SQLSTATE 55P03\)\n"
        "  alter table t add k int\n"
        "  blocked by " + blocker + "\n"
        r"hint: pgsluice apply --retries 20, or end who is in the way: select pg_terminate_backend\("
        rf"{pid}\);\n",
        done.stderr,
    ), done.stderr
    assert deploy.states() == ["applied", "pending"]


def test_reader_that_leaves_lets_a_later_attempt_succeed(deploy: Deploy) -> None:
    with deploy.session() as reader:
        with reader.transaction():
            reader.execute(HOLD)
            process = deploy.start("apply", "--lock-timeout", "0.3", "--retries", "8")
            assert process.stderr is not None
            note = process.stderr.readline()
            assert "no lock in attempt 1 of 9" in note
        done = ended(process)
    assert done.code == 0, str(done)
    assert deploy.states() == ["applied", "applied"]


def test_lock_timeout_in_a_concurrent_index_is_cleared_away_and_tried_again(deploy: Deploy) -> None:
    deploy.add(
        "0002_second.sql", ONLINE + "set lock_timeout = '300ms';\ncreate index concurrently t_i on t (i);\n"
    )
    with deploy.session() as writer:
        with writer.transaction():
            writer.execute("insert into t values (4, 4)")
            process = deploy.start("apply", "--lock-timeout", "0.3", "--retries", "8")
            assert process.stderr is not None
            assert "no lock in attempt 1 of 9" in process.stderr.readline()
        done = ended(process)
    assert done.code == 0, str(done)
    assert deploy.rows("select indisvalid from pg_index where indexrelid = 't_i'::regclass") == [True]


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signal_cancels_the_statement_and_rolls_back(
    deploy: Deploy, number: signal.Signals, code: int, word: str
) -> None:
    with deploy.session() as reader, deploy.session() as watcher, reader.transaction():
        reader.execute(HOLD)
        process = deploy.start("apply", "--lock-timeout", "60")
        wait_for(watcher, WAITING, like="alter%")
        process.send_signal(number)
        done = ended(process)
        wait_for(watcher, NOBODY)
        process = deploy.start("apply", "--lock-timeout", "60", "--json")
        wait_for(watcher, WAITING, like="alter%")
        process.send_signal(number)
        told = ended(process)
    assert (told.code, json.loads(told.stdout)["error"]["exit_code"]) == (code, code)
    assert done.code == code, str(done)
    assert done.stderr.endswith(
        f"error: migrations/app/0002_second.sql:2: {word} in 0002_second.sql;"
        " rolled back, nothing of this file is in the database\n"
    )
    assert deploy.states() == ["applied", "pending"]


def test_signal_between_attempts_ends_the_run(deploy: Deploy) -> None:
    with deploy.session() as reader, reader.transaction():
        reader.execute(HOLD)
        process = deploy.start("apply", "--lock-timeout", "1", "--retries", "50")
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert done.code == 143, str(done)
    assert done.stderr.endswith(
        "error: terminated in 0002_second.sql; rolled back, nothing of this file is in the database\n"
    )


def test_signal_between_attempts_of_a_step_says_what_is_done(deploy: Deploy) -> None:
    deploy.add("0002_second.sql", ONLINE + THREE)
    with deploy.session() as reader, reader.transaction():
        reader.execute(HOLD)
        process = deploy.start("apply", "--lock-timeout", "1", "--retries", "50")
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert done.code == 143, str(done)
    assert done.stderr.endswith(
        "error: terminated in 0002_second.sql; 1 of 3 statements of this file are done and recorded\n"
    )


def test_second_signal_does_not_wait_for_a_server_that_hangs(deploy: Deploy) -> None:
    deploy.add("0002_second.sql", "select pg_sleep(60);\n")
    with deploy.session() as watcher:
        process = deploy.start("apply", "--json")
        backend = wait_for(watcher, SLEEPING)
        os.kill(backend, signal.SIGSTOP)
        try:
            process.send_signal(signal.SIGTERM)
            wait_until(
                lambda: _is_pending(backend, signal.SIGINT)
            )  # the first one has cancelled the statement
            process.send_signal(signal.SIGTERM)
            done = ended(process)
        finally:
            os.kill(backend, signal.SIGCONT)
        wait_for(watcher, NOBODY)
    assert done.code == 143, str(done)
    assert json.loads(done.stdout)["error"] == {
        "message": "terminated twice, and ended at once: the server rolls back what it was at",
        "file": None,
        "line": None,
        "column": None,
        "details": [],
        "hint": "pgsluice status",
        "exit_code": 143,
    }


def test_signal_in_a_file_of_steps_keeps_what_is_done(deploy: Deploy) -> None:
    deploy.add("0002_second.sql", ONLINE + THREE)
    with deploy.session() as reader, deploy.session() as watcher, reader.transaction():
        reader.execute(HOLD)
        process = deploy.start("apply", "--lock-timeout", "60")
        wait_for(watcher, WAITING, like="alter%")
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.code == 130, str(done)
    assert done.stderr.endswith(
        "error: migrations/app/0002_second.sql:4: interrupted in 0002_second.sql;"
        " 1 of 3 statements of this file are done and recorded\n"
    )
    assert deploy.files("state", "statements_done")[1] == ("dirty", 1)
    deploy.ok("apply")
    assert deploy.rows("select i from u") == [1]


def test_signal_while_another_run_has_the_lock_ends_the_wait(deploy: Deploy) -> None:
    with deploy.session() as other, deploy.session() as watcher:
        other.execute("select pg_advisory_lock(8099569364512629605)")
        process = deploy.start("apply")
        wait_for(watcher, ASKING)
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert done.code == 143, str(done)
    assert done.stderr.endswith("error: terminated: nothing is left half-way\n")


def test_signal_between_steps_ends_the_run_there(deploy: Deploy) -> None:
    sleepy = "do $$ begin perform pg_sleep(60); exception when query_canceled then null; end $$;\n"
    deploy.add("0002_second.sql", ONLINE + sleepy + "create table u ();\n")
    with deploy.session() as watcher:
        process = deploy.start("apply")
        wait_for(watcher, SLEEPING)
        process.send_signal(signal.SIGTERM)
        done = ended(process)
    assert done.code == 143, str(done)
    assert done.stderr.endswith(
        "error: terminated in 0002_second.sql; 1 of 2 statements of this file are done and recorded\n"
    )


def test_lost_connection_says_what_the_ledger_says(deploy: Deploy) -> None:
    with deploy.session() as reader, deploy.session() as watcher, reader.transaction():
        reader.execute(HOLD)
        process = deploy.start("apply", "--lock-timeout", "60")
        pid = wait_for(watcher, WAITING, like="alter%")
        watcher.execute("select pg_terminate_backend(%s)", [pid])
        done = ended(process)
    assert done.code == 3, str(done)
    assert done.stderr.endswith(
        f"error: the connection to {shown(deploy)} was lost in 0002_second.sql\n"
        "  terminating connection due to administrator command (SQLSTATE 57P01)\n"
        "  0002_second.sql was rolled back, nothing of it is in the database\n"
        "hint: pgsluice status, then: pgsluice apply\n"
    )
    deploy.ok("apply")
    assert deploy.rows("select i from u") == [1]


def test_password_appears_nowhere(deploy: Deploy) -> None:
    secret = "Sesam-öffne"
    for url in (
        f"postgresql://deploy:{secret}@127.0.0.1:1/app?connect_timeout=1",
        f"{deploy.url} password={secret}",
        f"host=127.0.0.1 port=abc password={secret}",
        f"postgresql://deploy:{secret}@[half/app",
        f"postgresql://deploy:p@{secret}@127.0.0.1/app",
    ):
        for command in ("apply", "status"):
            done = deploy.run(command, "--json", database=url)
            assert "Sesam" not in str(done)


def shown(deploy: Deploy) -> str:
    """The database as messages name it."""
    from pgsluice.pipeline.live.database import shown

    return shown(deploy.url)


def without_times(text: str) -> str:
    """A message with its times left out."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>", text)


def _is_pending(process: int, number: signal.Signals) -> bool:
    """Whether a stopped process has a signal still to come."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    pending = re.search(r"^ShdPnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    assert pending is not None, status
    return bool(int(pending[1], 16) >> (number - 1) & 1)
