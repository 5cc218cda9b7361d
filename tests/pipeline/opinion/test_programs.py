"""Which pg_dump is run, and what it is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pgsluice.pipeline.opinion.dump import RunningDumps, hide_password
from pgsluice.pipeline.opinion.programs import clean_environment, find_pg_dump

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pgsluice.pipeline.devdb import DevServer


def test_the_program_beside_the_server_comes_first(server: DevServer) -> None:
    assert server.bin_dir is not None
    assert find_pg_dump(server.major, server.bin_dir) == server.bin_dir / "pg_dump"


def test_a_newer_program_reads_an_older_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "pg_dump"
    fake.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 99.1 (Distribution 99.1-1)'\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_pg_dump(98, None) == fake
    assert find_pg_dump(99, None) == fake


def test_a_program_older_than_the_server_is_none() -> None:
    assert find_pg_dump(1000, None) is None


def test_a_password_is_not_on_the_command_line() -> None:
    place, environment = hide_password("postgresql://me:s3cret@db.example/app?options=-c%20jit%3Doff")
    assert "s3cret" not in place
    assert environment["PGPASSWORD"] == "s3cret"
    assert "host=db.example" in place


def test_the_environment_shapes_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PG_COLOR": "always", "LC_ALL": "de_DE.UTF-8", "PGHOST": "db", "SECRET": "1"}.items():
        monkeypatch.setenv(name, value)
    kept = clean_environment()
    assert (kept["LC_ALL"], kept["PGHOST"]) == ("C", "db")
    assert not {"PG_COLOR", "SECRET"} & kept.keys()


def test_a_dump_that_nobody_waits_for_is_ended() -> None:
    running = RunningDumps()
    with ThreadPoolExecutor(1) as pool:
        code = pool.submit(lambda: running.run(["sleep", "600"], clean_environment())[0])
        running.stop()
        assert code.result(timeout=30) < 0
