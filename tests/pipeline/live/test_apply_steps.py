"""How `apply` runs files, with and without a transaction, and where it goes on after a failure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from pgsluice.pipeline.live.database import shown
from tests.conftest import EMBEDDED
from tests.e2e.applying import ONLINE, Deploy, deployed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

TWELVE: Final = "".join(f"insert into t values ({n});\n" for n in range(1, 13)).replace(
    "(7)", "((select i from cause))"
)
CAUSE: Final = (
    "create table cause (i int);\ninsert into cause values (null);\ncreate table t (i int not null);\n"
)
BATCHES: Final = """do $backfill$
<<pgsluice>>
declare v_n int := 0;
begin
  while exists (select from t where not done) loop
    update t set done = true where i = (select min(x.i) from t as x where not x.done);
    commit;
    if (select fails from cause) and not exists (select from t where i = 2 and not done) then
      raise exception 'two is done';
    end if;
  end loop;
end;
$backfill$;
"""


@pytest.fixture
def deploy(tmp_path: Path, server: DevServer) -> Iterator[Deploy]:
    """A project without migrations, on each server."""
    with deployed(server, tmp_path / "project") as made:
        yield made


@pytest.fixture
def once(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project without migrations, on one server: for what no server has a say in."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        yield made


def test_failure_at_seven_of_twelve_rolls_a_transaction_back(deploy: Deploy) -> None:
    deploy.add("0001_cause.sql", CAUSE)
    deploy.add("0002_twelve.sql", TWELVE)
    error = deploy.fails(1, "apply")
    assert error.startswith(
        "error: migrations/app/0002_twelve.sql:7: statement 7 of 12 failed;"
        " rolled back, nothing of this file is in the database\n"
    )
    assert deploy.states() == ["applied", "pending"]
    assert deploy.rows("select count(*) from t") == [0]
    mend(deploy)
    assert deploy.ok("apply").startswith("applied 0002_twelve.sql (12 statements, ")
    assert deploy.rows("select count(*) from t") == [12]


def test_failure_at_seven_of_twelve_keeps_six_statements_and_resumes_there(deploy: Deploy) -> None:
    deploy.add("0001_cause.sql", CAUSE)
    deploy.add("0002_twelve.sql", ONLINE + TWELVE)
    assert re.fullmatch(
        "error: migrations/app/0002_twelve.sql:9: statement 7 of 12 failed;"
        " 6 of 12 statements of this file are done and recorded\n"
        r'  null value in column "i" of relation "t" violates not-null constraint \(SQLSTATE 23502\)\n'
        r"  Failing row contains \(null\)\.\n"
        r"  insert into t values \(\(select i from cause\)\)\n"
        "hint: mend the cause, then: pgsluice apply\n",
        deploy.fails(1, "apply"),
    )
    assert deploy.files("state", "statements_done", "detail")[1] == (
        "dirty",
        6,
        "6 of 12 statements done; statement 7 failed, and was rolled back: null value in column"
        ' "i" of relation "t" violates not-null constraint (SQLSTATE 23502)',
    )
    assert deploy.run("status").code == 4
    assert deploy.rows("select count(*) from t") == [6]
    deploy.fails(1, "apply")
    mend(deploy)
    assert deploy.ok("apply", "--dry-run") == (
        f"would apply to {shown(deploy.url)}:\n"
        "  0002_twelve.sql (12 statements, each on its own, from statement 7 on)\n"
    )
    assert deploy.ok("apply").startswith("applied 0002_twelve.sql (6 statements, ")
    assert deploy.rows("select count(*) from t") == [12]
    assert deploy.states() == ["applied", "applied"]


def test_failed_concurrent_index_is_cleared_away_when_resumed(deploy: Deploy) -> None:
    deploy.add(
        "0001_first.sql",
        'create schema "S";\ncreate table "S"."T" (i int);\ninsert into "S"."T" values (1), (1);\n',
    )
    deploy.add(
        "0002_index.sql",
        f'{ONLINE}set search_path = "S";\ncreate unique index concurrently "T_i" on "T" (i);\nvacuum "T";\n',
    )
    deploy.fails(1, "apply")
    assert deploy.files("running", "detail")[1] == (
        'create unique index concurrently "T_i" on "T" (i)',
        '1 of 3 statements done; statement 2 (create unique index concurrently "T_i" on "T" (i)) failed,'
        ' and may have left something behind: could not create unique index "T_i" (SQLSTATE 23505)',
    )
    with deploy.session() as conn:
        conn.execute('delete from "S"."T" where ctid = (select min(ctid) from "S"."T")')
    done = deploy.run("apply")
    assert done.code == 0, str(done)
    assert done.stderr == 'note: 0002_index.sql: drop index concurrently if exists "S"."T_i"\n'
    assert deploy.rows("""select indisvalid from pg_index where indexrelid = '"S"."T_i"'::regclass""") == [
        True
    ]


def test_batched_backfill_of_the_macro_is_run_again(deploy: Deploy) -> None:
    deploy.add(
        "0001_first.sql",
        "create table t (i int, done bool default false);\ninsert into t values (1), (2), (3);\n"
        "create table cause (fails bool);\ninsert into cause values (true);\n",
    )
    deploy.add("0002_fill.sql", ONLINE + BATCHES)
    assert "statement 1 of 1 failed; 0 of 1 statements" in deploy.fails(1, "apply")
    assert deploy.rows("select i from t where done order by i") == [1, 2]
    with deploy.session() as conn:
        conn.execute("update cause set fails = false")
    deploy.ok("apply")
    assert deploy.rows("select count(*) from t where done") == [3]


def test_statement_nobody_can_judge_is_left_to_the_user(deploy: Deploy) -> None:
    deploy.add(
        "0001_first.sql",
        "create table t (i int);\ncreate table cause (i int);\ninsert into cause values (0);\n",
    )
    body = "begin insert into t values (1); commit; perform 1 / i from cause; end"
    deploy.add("0002_do.sql", f"{ONLINE}do $$ {body} $$;\ninsert into t values (2);\n")
    deploy.fails(1, "apply")
    refusal = (
        "error: statement 1 of 0002_do.sql failed: division by zero (SQLSTATE 22012);"
        " nobody but you can tell how far it got\n"
        f"  do $$ {body} $$\n"
        "hint: look at what it changed, then: pgsluice apply --resume rerun, or --resume skip\n"
    )
    assert deploy.fails(4, "apply") == refusal
    assert deploy.fails(4, "apply") == refusal
    deploy.fails(1, "apply", "--resume", "rerun")
    assert deploy.rows("select i from t") == [1, 1]
    assert deploy.ok("apply", "--resume", "skip").startswith("applied 0002_do.sql (1 statement, ")
    assert deploy.rows("select i from t") == [1, 1, 2]


def test_procedure_that_commits_runs_outside_of_a_transaction(deploy: Deploy) -> None:
    deploy.add(
        "0001_first.sql",
        "create table t (i int);\ncreate procedure p() language plpgsql as $$ begin"
        " insert into t values (1); commit; insert into t values (2); end $$;\n",
    )
    deploy.add("0002_call.sql", ONLINE + "call p();\n")
    deploy.ok("apply")
    assert deploy.rows("select i from t") == [1, 2]


def test_statements_after_the_failed_one_may_be_edited(once: Deploy) -> None:
    once.add("0001_first.sql", "create table t (i int);\n")
    once.add("0002_steps.sql", ONLINE + "insert into t values (1);\ninsert into t values (1 / 0);\n")
    once.fails(1, "apply")
    once.add("0002_steps.sql", ONLINE + "insert into t values (1);\ninsert into t values (2), (3);\n")
    once.ok("apply")
    assert once.rows("select i from t order by i") == [1, 2, 3]
    assert once.states() == ["applied", "applied"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            ONLINE + "insert into t values (9);\nselect 1;\n",
            "migrations/app/0001_steps.sql:3: statement 1 of 0001_steps.sql is done in the database,"
            " and was edited since\n"
            "  1 of 2 statements are done\n"
            "hint: put it back as it ran; only statements after those may be edited\n",
        ),
        (
            "create table t (i int);\nselect 1;\n",
            "migrations/app/0001_steps.sql was begun without a transaction, and now says that it needs one\n"
            "hint: put back its first line: -- atlas:txmode none; 1 of its statements are done\n",
        ),
    ],
)
def test_statements_that_are_done_may_not_be_edited(once: Deploy, text: str, error: str) -> None:
    once.add("0001_steps.sql", ONLINE + "create table t (i int);\nselect 1 / 0;\n")
    once.fails(1, "apply")
    once.add("0001_steps.sql", text)
    assert once.fails(4, "apply") == f"error: {error}"


def test_statement_that_ended_before_it_was_edited_is_left_to_the_user(once: Deploy) -> None:
    once.add("0001_first.sql", "create table t (i int);\ncreate index t_i on t (i);\n")
    once.add("0002_steps.sql", ONLINE + "drop index concurrently t_i;\n")
    with once.session() as conn:
        conn.execute("create table pin (i int)")
    once.ok("apply", "--to", "0001")
    begun(once, "0002_steps.sql", "drop index concurrently t_i")
    with once.session() as conn:
        conn.execute("drop index t_i")
    once.add("0002_steps.sql", ONLINE + "drop table pin;\n")
    assert once.fails(4, "apply") == (
        "error: statement 1 of 0002_steps.sql came to its end before it was edited\n"
        "  drop index concurrently t_i\n"
        "hint: put it back as it ran, or say that what stands there now shall run:"
        " pgsluice apply --resume rerun\n"
    )
    once.ok("apply", "--resume", "rerun")
    assert once.rows("select to_regclass('pin')::text") == [None]


@pytest.mark.parametrize(
    ("statement", "by_hand", "query", "expected"),
    [
        (
            "create index concurrently t_i on t (i)",
            "create index t_i on t (i)",
            "to_regclass('t_i')::text",
            "t_i",
        ),
        ("create index concurrently t_i on t (i)", "", "to_regclass('t_i')::text", "t_i"),
        ("drop index concurrently t_j", "drop index t_j", "to_regclass('t_j')::text", None),
        ("drop index concurrently t_j", "", "to_regclass('t_j')::text", None),
        ("reindex table concurrently t", "", "to_regclass('t_j')::text", "t_j"),
        ("reindex index concurrently t_j", "", "to_regclass('t_j')::text", "t_j"),
        ("alter table p detach partition p1 concurrently", "", "count(*)::text from pg_inherits", "0"),
        (
            "alter table p detach partition p1 concurrently",
            "alter table p detach partition p1",
            "count(*)::text from pg_inherits",
            "0",
        ),
        ("vacuum t", "", "'done'", "done"),
    ],
)
def test_killed_statement_is_judged_by_the_catalog(
    once: Deploy, statement: str, by_hand: str, query: str, expected: str | None
) -> None:
    once.add(
        "0001_first.sql",
        "create table t (i int, j int);\ncreate index t_j on t (j);\n"
        "create table p (i int) partition by list (i);\ncreate table p1 partition of p for values in (1);\n",
    )
    once.ok("apply")
    once.add("0002_steps.sql", f"{ONLINE}{statement};\n")
    begun(once, "0002_steps.sql", statement)
    with once.session() as conn:
        conn.execute((by_hand or "select 1").encode())
    once.ok("apply")
    assert once.rows(f"select {query}") == [expected]
    assert once.states() == ["applied", "applied"]


def test_killed_statement_nobody_can_judge_is_left_to_the_user(once: Deploy) -> None:
    once.add("0001_first.sql", "create table t (i int);\n")
    once.ok("apply")
    once.add("0002_steps.sql", ONLINE + "do $$ begin commit; end $$;\n")
    begun(once, "0002_steps.sql", "do $$ begin commit; end $$")
    assert once.fails(4, "apply") == (
        "error: statement 1 of 0002_steps.sql was started and not seen to end; nobody but you can tell"
        " how far it got\n"
        "  do $$ begin commit; end $$\n"
        "hint: look at what it changed, then: pgsluice apply --resume rerun, or --resume skip\n"
    )


def test_index_made_by_hand_is_not_taken_for_the_one_that_failed(once: Deploy) -> None:
    once.add("0001_first.sql", "create table t (i int);\ncreate index t_i on t ((i + 1));\n")
    once.add("0002_steps.sql", ONLINE + "create index concurrently t_i on t (i);\n")
    assert "already exists" in once.fails(1, "apply")
    assert "already exists" in once.fails(1, "apply")


def test_role_and_settings_of_a_file_hold_after_resume_and_end_with_it(deploy: Deploy) -> None:
    role = "pgsluice_test_owner"
    with deploy.session() as conn:
        conn.execute(f"create role {role}; grant create on schema public to {role}".encode())
        try:
            deploy.add(
                "0001_steps.sql",
                f"{ONLINE}set role {role};\nset work_mem = '5MB';\ncreate table t (i int);\n"
                "insert into t values (1 / (select count(*) from pg_tables where tablename = 'cause'));\n"
                "create table u as select current_user as name, current_setting('work_mem') as memory;\n",
            )
            deploy.fails(1, "apply")
            conn.execute("create table cause ()")
            deploy.add(
                "0002_after.sql",
                "create table v as select current_user as name, current_setting('work_mem') as memory;\n",
            )
            deploy.ok("apply")
            assert conn.execute("select name, memory from u").fetchall() == [(role, "5MB")]
            assert conn.execute("select name, memory from v").fetchall() == [("pgsluice_dev", "4MB")]
            assert deploy.files("applied_by") == [("pgsluice_dev",), ("pgsluice_dev",)]
        finally:
            conn.execute(f"drop owned by {role}; drop role {role}".encode())


def test_statement_that_gives_the_lock_back_ends_the_run(once: Deploy) -> None:
    once.add("0001_steps.sql", ONLINE + "select pg_advisory_unlock_all();\nselect 1;\n")
    assert once.fails(3, "apply") == (
        "error: this connection changes its server session between transactions, so no lock holds\n"
        "  a pooler in transaction mode stands between, or a migration gave the lock back\n"
        "hint: connect to the server directly, or to the pooler's port for sessions\n"
    )
    assert once.files("detail") == [
        ("1 of 2 statements done; statement 2 was not started, or was rolled back",)
    ]


def test_dry_run_checks_everything_and_writes_nothing(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", "-- hazard locks-table: t is locked\ncreate table t (i int);\n")
    deploy.add("0002_second.sql", ONLINE + "create index concurrently t_i on t (i);\n")
    assert deploy.ok("apply", "--dry-run") == (
        f"would apply to {shown(deploy.url)}:\n"
        "  0001_first.sql (1 statement, in one transaction)\n"
        "    hazard locks-table: t is locked\n"
        "  0002_second.sql (1 statement, each on its own)\n"
    )
    assert deploy.rows("select to_regnamespace('pgsluice')::text") == [None]


def test_to_stops_at_a_version_and_says_when_it_is_past(once: Deploy) -> None:
    for number in (1, 2, 3):
        once.add(f"000{number}_step.sql", f"create table t{number} ();\n")
    assert once.ok("apply", "--to", "0002_step").count("applied ") == 2
    assert once.ok("apply", "--to", "0001") == f"app: nothing to do on {shown(once.url)} up to 0001\n"
    assert once.states() == ["applied", "applied", "pending"]
    assert once.run("status", "--check").code == 1


def test_result_as_json_says_all(once: Deploy) -> None:
    once.add("0001_first.sql", "do $$ begin raise warning 'careful'; end $$;\n")
    lock = 'open = "0001_first.sql"\npostgres = 18\nschema = "x"\ntool = "0"\n'
    once.project.write("migrations/app/pgsluice.lock", lock)
    result: dict[str, Any] = json.loads(once.ok("apply", "--json"))
    assert result["files"][0].pop("duration_s") >= 0
    assert result == {
        "ok": True,
        "database": shown(once.url),
        "dry_run": False,
        "files": [
            {
                "target": "app",
                "file": "0001_first.sql",
                "statements": 1,
                "transactional": True,
                "done_before": 0,
                "hazards": [],
                "open": True,
            }
        ],
        "notes": [
            "warning: careful",
            "0001_first.sql is still open: a build may make it again; close it: pgsluice release",
        ],
    }


def test_every_target_is_checked_before_the_first_one_runs(once: Deploy) -> None:
    config = "".join(
        f'[targets.{name}]\nversioning = "sequence"\nmanages = ["{name}"]\n' for name in ("app", "other")
    )
    once.project.write("pgsluice.toml", config)
    once.add("0001_first.sql", "create table t ();\n")
    once.project.write("migrations/other/0001_first.sql", "create table u ();\n")
    assert "migrations/other/atlas.sum is missing" in once.fails(4, "apply")
    assert once.rows("select to_regclass('t')::text") == [None]
    once.record("other")
    assert "this project has several targets: app, other" in once.fails(2, "apply", "--to", "0001")
    assert once.ok("apply", "--target", "other").count("applied ") == 1
    assert once.ok("apply").count("applied ") == 1
    assert once.ok("apply") == f"app, other: nothing to do on {shown(once.url)}\n"


def test_empty_file_is_applied(once: Deploy) -> None:
    once.add("0001_first.sql", "-- nothing yet\n")
    once.add("0002_second.sql", ONLINE)
    assert once.ok("apply").count("(0 statements, ") == 2
    assert once.states() == ["applied", "applied"]


def begun(deploy: Deploy, filename: str, statement: str) -> None:
    """Make the ledger what a kill in the first statement of a file leaves behind."""
    from pgsluice.pipeline.live.script import statement_digest

    with deploy.session() as conn:
        conn.execute(
            "insert into pgsluice.migrations (target, filename, version, digest, kind, applied_by, tool,"
            " started_at, statements_total, statements_done, running, statement_digests)"
            " values ('app', %s, '0002', 'h1:', 'applied', 'postgres', 'test', now(), 1, 0, %s, %s)",
            [filename, statement, [statement_digest(statement)]],
        )


def mend(deploy: Deploy) -> None:
    """Take the cause of the seventh statement's failure away."""
    with deploy.session() as conn:
        conn.execute("update cause set i = 7")
