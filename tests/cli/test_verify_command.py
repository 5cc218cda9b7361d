"""`pgsluice verify` as a process: output, exit code, and what it must never import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.digest import schema_digest
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ("migra", "schemainspect", "sqlalchemy", "sqlfluff", "psycopg", "rich", "jinja2", "pglast.ast")

PROBE = f"""
import sys
from pgsluice.cli.main import main
code = main(["verify"])
print(code, sorted(set({HEAVY!r}) & sys.modules.keys()))
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A project with one schema file and one migration, as a build left it."""
    migrations, schema = tmp_path / "migrations/app", tmp_path / "schema/app"
    migrations.mkdir(parents=True)
    schema.mkdir(parents=True)
    (tmp_path / "pgsluice.toml").write_text("[targets.app]\n")
    (schema / "users.sql").write_text("create table users (user_id bigint);\n")
    (migrations / "0001_a.sql").write_text("create table public.users (user_id bigint);\n")
    (migrations / SUM_NAME).write_bytes(compute_sum(migrations).render())
    (migrations / LOCK_NAME).write_bytes(Lock(schema=schema_digest(schema)).render())
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `pgsluice verify` in a folder."""
    command = [sys.executable, "-m", "pgsluice", "verify", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_a_built_project_passes(built: Path) -> None:
    done = run(built)
    assert (done.returncode, done.stdout, done.stderr) == (0, "app: as built\n", "")
    assert not (built / ".pgsluice").exists()


def test_findings_go_to_stderr_and_exit_1(built: Path) -> None:
    (built / "migrations/app/0001_a.sql").unlink()
    done = run(built)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: migrations/app/0001_a.sql was removed after it was recorded\n"
        "  atlas.sum line 2 records it\n"
        "hint: git checkout -- migrations/app/0001_a.sql\n"
    )


def test_json_names_code_and_place(built: Path) -> None:
    assert json.loads(run(built, "--json").stdout) == {"ok": True, "findings": []}
    (built / "migrations/app/0001_a.sql").unlink()
    done = run(built, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout) == {
        "ok": False,
        "findings": [
            {
                "target": "app",
                "code": "removed",
                "message": "migrations/app/0001_a.sql was removed after it was recorded",
                "file": "migrations/app/atlas.sum",
                "line": 2,
                "details": ["atlas.sum line 2 records it"],
                "hint": "git checkout -- migrations/app/0001_a.sql",
            }
        ],
    }


def test_one_target_can_be_chosen(built: Path) -> None:
    (built / "pgsluice.toml").write_text(
        "[targets.app]\nmanages = ['app']\n[targets.audit]\nmanages = ['audit']\n"
    )
    (built / "schema/audit").mkdir()
    (built / "schema/audit/x.sql").write_text("create table audit.x ();\n")
    assert run(built, "--target", "app").returncode == 0
    done = run(built)
    assert done.stderr == ("error: schema/audit was never built\nhint: pgsluice build --target audit first\n")


def test_nothing_heavy_is_imported(built: Path) -> None:
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, cwd=built, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "app: as built\n0 []\n"


def test_names_that_the_terminal_cannot_show_are_escaped(built: Path) -> None:
    (built / "migrations/app" / os.fsdecode(b"0002_\xff\xc3\xa9.sql")).write_text("")
    command = [sys.executable, "-m", "pgsluice", "verify"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command, cwd=built, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: migrations/app/0002_\\udcff\\xe9.sql is not recorded in atlas.sum\n"
    )
