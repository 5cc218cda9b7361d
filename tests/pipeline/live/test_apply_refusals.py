"""What `apply` refuses before anything runs, and what it says of statements that the server refuses."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from psycopg import sql

from pgsluice.pipeline.live.database import shown
from tests.conftest import EMBEDDED
from tests.e2e.applying import ONLINE, Deploy, deployed
from tests.e2e.project import SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

FIRST: Final = "create table t (i int);\n"
SECOND: Final = "create table u (i int);\ncreate table v (i int);\n"
ROLE: Final = "pgsluice_test_deploy"


@pytest.fixture
def deploy(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project whose first migration the database has, and whose second is pending."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        made.add("0001_first.sql", FIRST)
        made.ok("apply")
        made.add("0002_second.sql", SECOND)
        yield made


def test_edited_file_is_refused_by_the_sum(deploy: Deploy) -> None:
    deploy.project.write("migrations/app/0002_second.sql", SECOND + "-- more\n")
    error = deploy.fails(4, "apply")
    assert re.fullmatch(
        "error: migrations/app/atlas.sum:3: migrations/app/0002_second.sql was edited after it was recorded\n"
        r"  atlas.sum line 3 records h1:\S{4}…, the file now hashes to h1:\S{4}…\n"
        "hint: git checkout -- migrations/app/0002_second.sql\n",
        error,
    )
    assert deploy.states() == ["applied", "pending"]


def test_sum_with_several_findings_names_the_first(deploy: Deploy) -> None:
    deploy.project.remove("migrations/app/0001_first.sql")
    deploy.project.write("migrations/app/0003_third.sql", "select 1;\n")
    assert "  and 1 more: pgsluice verify\n" in deploy.fails(4, "apply")


def test_history_that_was_edited_and_recorded_again_is_refused(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", FIRST + "-- more\n")
    assert re.fullmatch(
        "error: migrations/app/0001_first.sql was changed after it was applied here\n"
        r"  applied \S+ \S+ UTC by pgsluice_dev as h1:\S{6}…, the file now hashes to h1:\S{6}…\n"
        "hint: git log --patch -- migrations/app/0001_first.sql\n",
        deploy.fails(4, "apply"),
    )
    assert deploy.run("status").code == 4
    assert deploy.states() == ["changed", "pending"]


def test_open_migration_that_was_built_again_is_refused_with_the_reason(deploy: Deploy) -> None:
    lock = 'open = "0001_first.sql"\npostgres = 18\nschema = "x"\ntool = "0"\n'
    deploy.project.write("migrations/app/pgsluice.lock", lock)
    deploy.add("0001_first.sql", FIRST + "-- more\n")
    assert ("\n  it is still open, and a build made it again; release before you apply\n") in deploy.fails(
        4, "apply"
    )


def test_applied_file_that_the_folder_lacks_is_refused(deploy: Deploy) -> None:
    deploy.project.remove("migrations/app/0001_first.sql")
    deploy.record()
    assert re.fullmatch(
        "error: migrations/app/0001_first.sql was applied here, and the folder lacks it\n"
        r"  applied \S+ \S+ UTC by pgsluice_dev\n"
        "hint: git log --diff-filter=D --summary -- migrations/app/0001_first.sql\n",
        deploy.fails(4, "apply"),
    )
    assert deploy.states() == ["missing", "pending"]


def test_file_added_before_the_last_applied_one_is_refused(deploy: Deploy) -> None:
    deploy.ok("apply")
    deploy.add("0001_a_late_one.sql", "select 1;\n")
    deploy.project.write("pgsluice.toml", SEQUENCE)
    deploy.project.remove("migrations/app/0001_a_late_one.sql")
    deploy.add("0000_late.sql", "select 1;\n")
    assert deploy.fails(4, "apply") == (
        "error: migrations/app/0000_late.sql sorts before 0002_second.sql, which was applied here already\n"
        "hint: pgsluice rebase\n"
    )
    assert deploy.states() == ["out-of-order", "applied", "applied"]


def test_several_problems_are_all_named(deploy: Deploy) -> None:
    deploy.add("0001_first.sql", FIRST + "-- more\n")
    deploy.add("0000_late.sql", "select 1;\n")
    assert "\n  also changed: migrations/app/0001_first.sql\n" in deploy.fails(4, "apply")


def test_read_only_database_is_refused(deploy: Deploy) -> None:
    with deploy.session() as conn:
        name = sql.Identifier(conn.info.dbname)
        conn.execute(sql.SQL("alter database {} set default_transaction_read_only = on").format(name))
        assert deploy.fails(3, "apply") == (
            f"error: {shown(deploy.url)} is read-only: default_transaction_read_only is on\n"
            f"hint: alter database {conn.info.dbname} reset default_transaction_read_only;"
            " it may also be set for the role, or in postgresql.conf\n"
        ).replace(f"database {conn.info.dbname}", f'database "{conn.info.dbname}"')
    assert deploy.states() == ["applied", "pending"]


def test_missing_roles_are_all_named_before_anything_runs(deploy: Deploy) -> None:
    deploy.add(
        "0003_third.sql", 'grant select on u to "no Such", no_such;\ngrant select on u to pg_monitor;\n'
    )
    assert deploy.fails(3, "apply") == (
        "error: the server lacks 2 roles that these migrations name\n"
        "  no Such, named in migrations/app/0003_third.sql\n"
        "  no_such, named in migrations/app/0003_third.sql\n"
        'hint: create role "no Such" nologin; create role "no_such" nologin;\n'
    )
    assert deploy.states() == ["applied", "pending", "pending"]
    deploy.ok("apply", "--to", "0002")


def test_role_that_a_migration_creates_itself_is_not_missing(deploy: Deploy) -> None:
    deploy.add("0003_third.sql", "create role pgsluice_test_new;\ngrant select on u to pgsluice_test_new;\n")
    with deploy.session() as conn:
        deploy.ok("apply")
        conn.execute("drop owned by pgsluice_test_new; drop role pgsluice_test_new")


def test_ordinary_role_is_told_which_right_it_lacks(
    tmp_path: Path, open_server: Callable[[str], DevServer]
) -> None:
    with deployed(open_server(EMBEDDED), tmp_path / "project") as deploy, role(deploy) as ordinary:
        deploy.add("0001_first.sql", FIRST)
        with deploy.session() as conn:
            database = sql.Identifier(conn.info.dbname).as_string(conn)
            assert ordinary.fails(3, "apply") == (
                f"error: role {ROLE} may not keep the ledger pgsluice.migrations in this database\n"
                f'hint: create schema if not exists pgsluice authorization "{ROLE}";'
                f' or: grant create on database {database} to "{ROLE}";\n'
            )
            conn.execute(f'create schema pgsluice authorization "{ROLE}"'.encode())
            deploy.add("0001_first.sql", "create table public.t (i int);\n")
            assert ordinary.fails(3, "apply") == (
                f"error: role {ROLE} may create nothing in schema public,"
                " as migrations/app/0001_first.sql does\n"
                f'hint: grant create on schema "public" to "{ROLE}";\n'
            )
            deploy.add("0001_first.sql", "create schema s;\n")
            assert ordinary.fails(3, "apply") == (
                f"error: role {ROLE} may not create schema s, which migrations/app/0001_first.sql does\n"
                f'hint: grant create on database {database} to "{ROLE}";\n'
            )
            deploy.add("0001_first.sql", "select 1;\n")
            assert ordinary.ok("apply").startswith("applied 0001_first.sql (1 statement, ")
        assert deploy.files("applied_by") == [(ROLE,)]


def test_statement_without_rights_is_exit_3_and_rolled_back(deploy: Deploy) -> None:
    with role(deploy) as ordinary, deploy.session() as conn:
        grants = "grant usage on schema pgsluice to {0}; grant all on pgsluice.migrations to {0}"
        conn.execute(grants.format(ROLE).encode())
        deploy.add("0002_second.sql", "alter table t add j int;\n")
        assert ordinary.fails(3, "apply") == (
            "error: migrations/app/0002_second.sql:1: statement 1 of 1 was refused;"
            " rolled back, nothing of this file is in the database\n"
            "  must be owner of table t (SQLSTATE 42501)\n"
            "  alter table t add j int\n"
            f"  it ran as role {ROLE}\n"
            "hint: run it as the owner of what it changes, or grant that:"
            f' grant <owner> to "{ROLE}";\n'
        )
        assert ordinary.run("status").code == 0


def test_status_without_rights_says_what_to_grant(deploy: Deploy) -> None:
    with role(deploy) as ordinary:
        assert ordinary.fails(3, "status") == (
            f"error: role {ROLE} may not read pgsluice.migrations\n"
            f'hint: grant usage on schema pgsluice to "{ROLE}";'
            f' grant select on pgsluice.migrations to "{ROLE}";\n'
        )


def test_database_changed_by_hand_hints_at_drift(deploy: Deploy) -> None:
    with deploy.session() as conn:
        conn.execute("create table v (i int)")
    assert deploy.fails(1, "apply") == (
        "error: migrations/app/0002_second.sql:2: statement 2 of 2 failed;"
        " rolled back, nothing of this file is in the database\n"
        '  relation "v" already exists (SQLSTATE 42P07)\n'
        "  create table v (i int)\n"
        "hint: the database may have been changed by hand: pgsluice drift\n"
    )
    assert deploy.states() == ["applied", "pending"]
    assert deploy.rows("select to_regclass('u')::text") == [None]


def test_database_without_a_baseline_is_told_of_it(deploy: Deploy) -> None:
    with deploy.session() as conn:
        conn.execute("drop schema pgsluice cascade")
    assert deploy.fails(1, "apply") == (
        "error: migrations/app/0001_first.sql:1: statement 1 of 1 failed;"
        " rolled back, nothing of this file is in the database\n"
        '  relation "t" already exists (SQLSTATE 42P07)\n'
        "  create table t (i int)\n"
        "hint: pgsluice baseline --target app, if the database had all of this before: its ledger has nothing"
        " of this target\n"
    )


def test_refusal_by_rows_is_told_without_the_check_that_found_them(deploy: Deploy) -> None:
    raised = "raise exception 'two are alike' using errcode = 'SL100', detail = 'a, b'"
    deploy.add("0002_second.sql", f"-- hazard\ndo $refuse$begin\n  {raised};\nend$refuse$;\n")
    assert deploy.fails(1, "apply") == (
        "error: migrations/app/0002_second.sql:2: statement 1 of 1 failed;"
        " rolled back, nothing of this file is in the database\n"
        "  two are alike (SQLSTATE SL100)\n"
        "  a, b\n"
        "  do $refuse$ ...\n"
        "hint: mend the cause, then: pgsluice apply\n"
    )


def test_failure_names_place_statement_and_cause(deploy: Deploy) -> None:
    deploy.add("0002_second.sql", "select 1;\n\nselect 1,\n  nothing from t;\n")
    assert deploy.fails(1, "apply") == (
        "error: migrations/app/0002_second.sql:4:3: statement 2 of 2 failed;"
        " rolled back, nothing of this file is in the database\n"
        '  column "nothing" does not exist (SQLSTATE 42703)\n'
        "  select 1,\n"
        "    nothing from t\n"
        "    ^\n"
        "hint: the database may have been changed by hand: pgsluice drift\n"
    )


def test_failure_at_commit_says_so(deploy: Deploy) -> None:
    deploy.add(
        "0002_second.sql",
        "create table u (i int primary key, j int references u deferrable initially deferred);\n"
        "insert into u values (1, 2);\n",
    )
    assert deploy.fails(1, "apply") == (
        "error: the commit of 0002_second.sql failed; rolled back, nothing of this file is in the database\n"
        '  insert or update on table "u" violates foreign key constraint "u_j_fkey" (SQLSTATE 23503)\n'
        '  Key (j)=(2) is not present in table "u".\n'
        "hint: mend the cause, then: pgsluice apply\n"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "select 1;\ncommit;\nselect 2;\n",
            "migrations/app/0002_second.sql:2: commit: a migration holds no transaction control\n"
            "hint: take it out: the file runs in one transaction\n",
        ),
        (
            ONLINE + "begin;\n",
            "migrations/app/0002_second.sql:3: begin: a migration holds no transaction control\n"
            "hint: take it out: each statement is its own transaction\n",
        ),
        (
            ONLINE + "discard all;\n",
            "migrations/app/0002_second.sql:3: discard all would give back the lock that a run of apply"
            " holds\n"
            "hint: reset all\n",
        ),
        (
            "copy t from stdin;\n",
            "migrations/app/0002_second.sql:1: copy from stdin needs psql; a migration file holds no data\n"
            "hint: dump the schema alone: pg_dump --schema-only, or write the rows as insert statements\n",
        ),
        (
            ONLINE + "copy t to stdout;\n",
            "migrations/app/0002_second.sql:3: copy to stdout needs psql; a migration file holds no data\n"
            "hint: dump the schema alone: pg_dump --schema-only, or write the rows as insert statements\n",
        ),
        (
            "selekt 1;\n",
            'migrations/app/0002_second.sql:1:1: syntax error at or near "selekt"\n  selekt 1;\n  ^\n',
        ),
    ],
)
def test_files_that_cannot_be_run_safely_are_bad_input(deploy: Deploy, text: str, error: str) -> None:
    deploy.add("0002_second.sql", text)
    assert deploy.fails(2, "apply") == f"error: {error}"
    assert deploy.states() == ["applied", "pending"]


def test_file_that_is_no_utf_8_is_bad_input(deploy: Deploy) -> None:
    (deploy.project.root / "migrations/app/0002_second.sql").write_bytes(b"select '\xff';\n")
    deploy.record()
    assert deploy.fails(2, "apply") == (
        "error: migrations/app/0002_second.sql:1: the file is not valid UTF-8: byte 0xff at offset 8\n"
        "hint: save the file as UTF-8\n"
    )


def test_begin_and_commit_around_a_whole_file_are_the_transaction_of_apply(deploy: Deploy) -> None:
    deploy.add("0002_second.sql", f"begin;\n{SECOND}commit;\n")
    assert deploy.ok("apply").startswith("applied 0002_second.sql (2 statements, ")


def test_older_server_is_refused_and_a_newer_one_noted(deploy: Deploy) -> None:
    major = deploy.rows("select current_setting('server_version_num')::int / 10000")[0]
    deploy.project.write("pgsluice.toml", f'postgres = ["{major + 1}", "{major + 2}"]\n{SEQUENCE}')
    assert deploy.fails(4, "apply") == (
        f"error: {shown(deploy.url)} runs PostgreSQL {major};"
        f" these migrations are made for {major + 1} to {major + 2}\n"
        f'hint: postgres = ["{major}", "{major + 2}"] in the project\'s configuration, then: pgsluice check\n'
    )
    deploy.project.write("pgsluice.toml", f'postgres = ["15", "{major - 1}"]\n{SEQUENCE}')
    done = deploy.run("apply")
    assert done.code == 0
    assert done.stderr == (
        f"note: the server is PostgreSQL {major}; these migrations are proved on 15 to {major - 1}\n"
    )


def test_what_the_target_requires_is_named_with_the_sql_to_paste(deploy: Deploy) -> None:
    deploy.project.write("base.sql", "create schema base;\ncreate table base.kept (i int);\n")
    requires = 'requires = ["base.sql", "citext", "no_such_extension"]\n'
    deploy.project.write("pgsluice.toml", SEQUENCE + requires)
    error = deploy.fails(3, "apply")
    words = re.escape(re.search(r"psql (.*?) --file", error)[1])  # type: ignore[index]
    assert re.fullmatch(
        'error: the database lacks what target app requires: "base"."kept" of base.sql\n'
        r'  and extension citext: create extension "citext" cascade;\n'
        "  and extension no_such_extension, and the server does not offer it:"
        " install no_such_extension there\n"
        f"hint: psql {words} --file base.sql\n",
        error,
    ), error
    assert deploy.states() == ["applied", "pending"]


def test_missing_pgmq_is_named_with_the_way_to_load_it(deploy: Deploy) -> None:
    deploy.project.write("pgsluice.toml", SEQUENCE + 'requires = ["pgmq"]\n')
    error = deploy.fails(3, "apply")
    assert error.startswith(
        "error: the database lacks what target app requires: pgmq, and the server offers no such extension\n"
        "hint: psql "
    )
    assert " --command 'create schema pgmq' --file " in error
    with deploy.session() as conn:
        conn.execute("create schema pgmq; create function pgmq.send() returns int language sql return 1")
    deploy.ok("apply")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("--to", "0009"),
            "no migration of migrations/app is version 0009\n  0001_first.sql\n  0002_second.sql\n"
            "hint: --to 0001_first\n",
        ),
        (
            ("--lock-timeout", "0"),
            "--lock-timeout must be more than 0 seconds and at most 2000000, not 0\nhint: --lock-timeout 5\n",
        ),
        (
            ("--lock-timeout", "nan"),
            "--lock-timeout must be more than 0 seconds and at most 2000000, not nan\n"
            "hint: --lock-timeout 5\n",
        ),
        (
            ("--wait", "-1"),
            "--wait must be 0 seconds or more and at most 2000000, not -1\nhint: --wait 60\n",
        ),
        (("--retries", "-1"), "--retries must be 0 or more, not -1\nhint: --retries 5\n"),
        (("--resume", "maybe"), "--resume takes rerun or skip, not maybe\nhint: --resume rerun\n"),
        (
            ("--resume", "skip"),
            "nothing is to be resumed in target app: no migration stopped half-way\nhint: pgsluice apply\n",
        ),
    ],
)
def test_wrong_options_are_bad_input(deploy: Deploy, arguments: tuple[str, ...], error: str) -> None:
    assert deploy.fails(2, "apply", *arguments) == f"error: {error}"


def test_no_database_is_bad_input(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSLUICE_DATABASE", raising=False)
    done = deploy.project.run("apply")
    assert done.code == 2
    assert done.stderr == (
        "error: no database is named: give --database, or set PGSLUICE_DATABASE\n"
        "hint: --database postgresql://deploy@db.example.com/app\n"
    )


def test_errors_are_json_on_request(deploy: Deploy) -> None:
    deploy.add("0000_late.sql", "select 1;\n")
    done = deploy.run("apply", "--json")
    assert done.code == 4
    assert json.loads(done.stdout)["error"]["hint"] == "pgsluice rebase"


@contextmanager
def role(deploy: Deploy) -> Iterator[Deploy]:
    """The same project, deployed by an ordinary role."""
    with deploy.session() as conn:
        conn.execute(f"create role {ROLE} login".encode())
        try:
            yield Deploy(deploy.project, deploy.url.replace("user=pgsluice_dev", f"user={ROLE}"))
        finally:
            conn.execute(f"drop owned by {ROLE}; drop role {ROLE}".encode())
