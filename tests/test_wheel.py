"""The wheel brings this repository's own targets: they are applied without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.pipeline.devdb import bootstrap

if TYPE_CHECKING:
    from pgsluice.pipeline.devdb import DevServer

ROOT: Final = Path(__file__).parents[1]
BUILD: Final = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir")
TIMEOUT_S: Final = 180
PRUNE: Final = ROOT / "examples/pgflow/prune_data_older_than.sql"
NEWEST: Final = sorted(path.name for path in (ROOT / "migrations/pgflow").glob("*.sql"))[-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as a wheel holds it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*BUILD, folder, ROOT], check=True, capture_output=True, timeout=TIMEOUT_S)
    (wheel,) = folder.glob("pgsluice-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def run(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command of the unpacked wheel, in a folder without a project."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pgsluice", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.slow
def test_an_installed_package_applies_its_own_target(
    installed: Path, tmp_path: Path, server: DevServer
) -> None:
    with server.clone(bootstrap(server, ["pgmq"], root=ROOT)) as conninfo:
        database = ("--target", "pgflow", "--database", conninfo)
        pending = run(installed, tmp_path, "status", *database)
        assert pending.returncode == 0, pending.stderr
        assert "pending" in pending.stdout
        applied = run(installed, tmp_path, "apply", *database)
        assert applied.returncode == 0, applied.stderr
        assert NEWEST in applied.stdout
        again = run(installed, tmp_path, "apply", *database)
        assert "nothing to do" in again.stdout
        with psycopg.connect(conninfo) as conn:
            conn.execute(PRUNE.read_bytes())
        drift = run(installed, tmp_path, "drift", *database)
        assert drift.returncode == 0, drift.stdout + drift.stderr
        assert "pgflow.prune_data_older_than" in drift.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_project_without_that_target_can_apply_it_too(
    installed: Path, tmp_path: Path, server: DevServer
) -> None:
    (tmp_path / "pgsluice.toml").write_text("[targets.app]\n")
    with server.clone(bootstrap(server, ["pgmq"], root=ROOT)) as conninfo:
        done = run(installed, tmp_path, "apply", "--target", "pgflow", "--database", conninfo)
    assert done.returncode == 0, done.stderr
    assert NEWEST in done.stdout


@pytest.mark.slow
def test_a_database_without_pgmq_is_told_where_its_sql_is(
    installed: Path, tmp_path: Path, server: DevServer
) -> None:
    with server.clone(None) as conninfo:
        done = run(installed, tmp_path, "apply", "--target", "pgflow", "--database", conninfo)
    assert done.returncode == 3, done.stderr
    assert "error: the database lacks what target pgflow requires: pgmq" in done.stderr
    assert "--command 'create schema pgmq' --file " in done.stderr


def test_a_target_that_nobody_has_needs_a_project(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pgsluice", "status", "--target", "nobody", "--database", "dbname=app"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 2
    assert f"no pgsluice.toml in {tmp_path} or a folder above it" in done.stderr
