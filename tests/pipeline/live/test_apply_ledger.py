"""`apply` and `status` on ledgers that are locked, altered, of another target, or of another tool."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pgsluice.pipeline.live.database import shown
from pgsluice.pipeline.live.ledger import COLUMNS, TOOL
from tests.conftest import EMBEDDED
from tests.e2e.applying import Deploy, deployed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

ATLAS = """
create schema atlas_schema_revisions;
create table atlas_schema_revisions.atlas_schema_revisions (
  version text primary key, description text, type bigint, applied bigint, total bigint,
  error text, error_stmt text, hash text
);
insert into atlas_schema_revisions.atlas_schema_revisions values
  ('0001', 'first', 2, 1, 1, null, null, ''), ('0002', 'second', 2, 1, 1, null, null, '');
"""


@pytest.fixture
def deploy(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Iterator[Deploy]:
    """A project with one migration applied and one pending."""
    with deployed(open_server(EMBEDDED), tmp_path / "project") as made:
        made.add("0001_first.sql", "create table t (i int);\n")
        made.ok("apply")
        made.add("0002_second.sql", "create table u (i int);\n")
        yield made


@pytest.mark.parametrize("arguments", [("status",), ("apply", "--dry-run"), ("apply",)])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            "alter table pgsluice.migrations drop column statement_digests",
            "column m.statement_digests does not exist",
        ),
        (
            "alter table pgsluice.migrations drop constraint migrations_kind_known;"
            " update pgsluice.migrations set kind = 'squashed'",
            "0001_first.sql is of kind squashed",
        ),
        (
            "update pgsluice.migrations set started_at = '-infinity'",
            "timestamp too small (before year 1): '-infinity'",
        ),
    ],
)
def test_ledger_of_another_shape_is_refused(
    deploy: Deploy, change: str, what: str, arguments: tuple[str, ...]
) -> None:
    with deploy.session() as conn:
        conn.execute(change.encode())
    assert deploy.fails(4, *arguments) == (
        "error: pgsluice.migrations is not as this version of pgsluice keeps it\n"
        f"  {what}\n"
        f"  this is {TOOL}; another version made it, or it was changed by hand\n"
        f"hint: use the newest version that worked on this database, or mend the table: it has {COLUMNS}\n"
    )


def test_ledger_that_takes_no_row_fails_the_file_and_says_so(deploy: Deploy) -> None:
    with deploy.session() as conn:
        conn.execute("alter table pgsluice.migrations add constraint closed check (version < '0002')")
    assert deploy.fails(1, "apply").startswith(
        "error: the record in pgsluice.migrations of 0002_second.sql failed;"
        " rolled back, nothing of this file is in the database\n"
    )


def test_locked_ledger_is_told_with_its_holder(deploy: Deploy) -> None:
    with deploy.session() as holder:
        holder.execute("begin")
        holder.execute("lock table pgsluice.migrations")
        error = deploy.fails(3, "apply", "--lock-timeout", "0.2")
    assert re.fullmatch(
        r"error: somebody keeps pgsluice.migrations locked\n"
        r"  pid \d+ \(\w+\): lock table pgsluice.migrations\n"
        r"hint: wait until that is over, then run the command again\n",
        error,
    ), error


def test_locked_ledger_bounds_the_attempts_of_a_file(deploy: Deploy) -> None:
    with deploy.session() as holder:
        holder.execute("begin")
        holder.execute("lock table pgsluice.migrations in share mode")
        error = deploy.fails(3, "apply", "--lock-timeout", "0.2", "--retries", "0")
    assert error.startswith(
        "error: the record in pgsluice.migrations of 0002_second.sql got no lock in 1 attempt;"
        " rolled back, nothing of this file is in the database\n"
    )
    assert "lock table pgsluice.migrations in share mode\n" in error


def test_what_the_server_refuses_apply_itself_is_told(deploy: Deploy) -> None:
    with deploy.session() as conn:
        conn.execute("drop schema pgsluice cascade")
        conn.execute(
            "create function no() returns event_trigger language plpgsql as"
            " $$begin raise exception 'no new schemas today'; end$$"
        )
        conn.execute(
            "create event trigger no on ddl_command_start when tag in ('CREATE SCHEMA') execute function no()"
        )
    assert deploy.fails(3, "apply") == (
        f"error: {shown(deploy.url)} refuses what apply itself asks for\n"
        "  no new schemas today (SQLSTATE P0001)\n"
        "  PL/pgSQL function no() line 1 at RAISE\n"
        "hint: mend the cause, then: pgsluice apply\n"
    )


def test_files_of_a_renamed_target_do_not_run_again(deploy: Deploy) -> None:
    deploy.project.write(
        "pgsluice.toml", '[targets.shop]\nmigrations = "migrations/app"\nversioning = "sequence"\n'
    )
    rename = "update pgsluice.migrations set target = 'shop' where target = 'app';"
    assert deploy.fails(4, "apply", "--dry-run") == (
        "error: 0001_first.sql was applied here as of target app, and the ledger has nothing of shop\n"
        f"hint: when the target was renamed: {rename}\n"
    )
    with deploy.session() as conn:
        conn.execute(rename.encode())
    deploy.ok("apply")


def test_files_that_atlas_applied_do_not_run_again(deploy: Deploy) -> None:
    with deploy.session() as conn:
        conn.execute("drop schema pgsluice cascade")
        conn.execute(ATLAS.encode())
    assert deploy.fails(4, "apply") == (
        "error: Atlas applied 0001_first.sql here, and the ledger has nothing of target app\n"
        "  also 0002_second.sql\n"
        "hint: pgsluice baseline --target app --from-atlas\n"
    )
    with deploy.session() as conn:
        conn.execute("drop schema atlas_schema_revisions cascade; drop table t")
    deploy.ok("apply")
