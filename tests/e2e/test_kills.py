"""Killed builds, and builds at the same time: the tree is as before or complete, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.pipeline.devdb.folders import root_key, runtime_base
from tests.e2e.project import SEQUENCE, InProcess

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeProject
    from tests.e2e.project import Project, Tree

USERS: Final = "create table users (\n  user_id bigint primary key,\n  name text\n);\n"
VIEW: Final = "create view names as select name from users;\n"
KILLS: Final = 15
GONE_S: Final = 30.0
SCRATCH: Final = "select datname from pg_database where datname like 'pgsluice#_scratch#_%' escape '#'"


@pytest.mark.slow
def test_killed_builds_leave_the_tree_as_it_was_or_complete(own_server: Project) -> None:
    project = own_server
    project.write("pgsluice.toml", SEQUENCE)
    project.write("schema/app/users.sql", USERS)
    project.write("schema/app/names.sql", VIEW)
    project.ok("build", "first")
    project.ok("release")
    project.write("schema/app/users.sql", edit(0))
    started = time.monotonic()
    project.ok("build", "second")
    whole_s = time.monotonic() - started
    for number in range(1, KILLS + 1):
        project.write("schema/app/users.sql", edit(number))
        before = state(project)
        kill_after(project, 1.1 * whole_s * number / KILLS, "build")
        if not is_whole(project, number):
            assert state(project) == before, f"kill {number}"
    project.ok("build")
    assert is_whole(project, KILLS)
    assert scratch_databases(project) == []
    project.ok("dev", "stop")
    assert processes_of(project) == []


@pytest.mark.slow
def test_killed_builds_leave_no_server_beyond_dev_stop(own_server: Project) -> None:
    project = own_server
    project.ok("init")
    project.write("schema/app/users.sql", USERS)
    for number, delay_s in enumerate((0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 3.0)):
        kill_after(project, delay_s, "build", f"kill_{number}")
    project.ok("build", "first")
    project.ok("verify")
    servers = postmasters_of(project)
    assert len(servers) == 1, servers
    project.ok("dev", "stop")
    assert processes_of(project) == []


@pytest.mark.slow
def test_killed_server_and_supervisor_do_not_stop_the_next_build(own_server: Project) -> None:
    project = own_server
    project.ok("init")
    project.write("schema/app/users.sql", USERS)
    project.ok("build", "first")
    for pid in processes_of(project):
        kill(pid)
    project.write("schema/app/names.sql", VIEW)
    project.ok("build")
    project.ok("verify")
    project.ok("dev", "stop")
    assert processes_of(project) == []


def test_two_builds_at_once_both_succeed(make: MakeProject) -> None:
    project = make({"schema/app/users.sql": USERS})
    at_once(project, ["build", "first"], ["build", "first"])
    assert [path.name for path in project.migrations()] == ["0001_first.sql"]
    project.ok("verify")
    project.write("schema/app/names.sql", VIEW)
    at_once(project, ["build"], ["build"], ["verify"], codes=(0, 1))
    project.ok("verify")
    project.ok("diff", "--check")


def test_two_targets_build_at_once(make: MakeProject) -> None:
    config = f'{SEQUENCE}manages = ["a"]\n[targets.other]\nversioning = "sequence"\nmanages = ["b"]\n'
    project = make(
        {
            "schema/app/a.sql": "create schema a;\ncreate table a.t (x int);\n",
            "schema/other/b.sql": "create schema b;\ncreate table b.t (x int);\n",
        },
        config=config,
    )
    at_once(project, ["build", "first", "--target", "app"], ["build", "first", "--target", "other"])
    project.ok("verify")
    assert [path.name for path in project.migrations("other")] == ["0001_first.sql"]
    assert project.ok("build").count("nothing to do") == 2


def test_first_builds_at_once_share_one_server(own_server: Project) -> None:
    project = own_server
    project.ok("init")
    project.write("schema/app/users.sql", USERS)
    at_once(project, ["build", "first"], ["build", "first"])
    assert len(postmasters_of(project)) == 1
    project.ok("verify")


def edit(number: int) -> str:
    """The table with a column that tells the edits apart."""
    return USERS.replace("name text", f"name text,\n  c_{number} int")


def is_whole(project: Project, number: int) -> bool:
    """Whether the migration of an edit is there and everything agrees with it."""
    return InProcess(project.root).run("verify").code == 0 and f"c_{number} " in project.newest()


def state(project: Project) -> Tree:
    """The tree, but for the schema's own files."""
    return {name: value for name, value in project.tree().items() if not name.startswith("schema/")}


def kill_after(project: Project, delay_s: float, *arguments: str) -> None:
    """Start a command and kill it, not its server, after a while."""
    process = project.start(*arguments)
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()


def at_once(project: Project, *commands: list[str], codes: tuple[int, ...] = (0,)) -> None:
    """Run commands at the same time; each ends with one of `codes`, the first with 0."""
    running = [project.start(*arguments) for arguments in commands]
    said = [process.communicate(timeout=120) for process in running]
    ended = [process.returncode for process in running]
    assert ended[0] == 0, said
    assert all(code in codes for code in ended), said


def processes_of(project: Project) -> list[int]:
    """The processes of servers and supervisors of this project, without those that end right now."""
    deadline = time.monotonic() + GONE_S
    while (found := _processes_of(project)) and not postmasters_of(project) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def postmasters_of(project: Project) -> list[int]:
    """The server processes whose data belongs to this project."""
    return [pid for pid in _processes_of(project) if b"/postgres\0" in _command(pid)]


def scratch_databases(project: Project) -> list[str]:
    """The scratch databases on the project's server, after some time to be dropped."""
    (socket,) = runtime_base().glob(f"{root_key(project.root)}-*/s")
    with psycopg.connect(
        f"host={socket} port=5432 user=pgsluice_dev dbname=postgres", autocommit=True
    ) as conn:
        return [row[0] for row in conn.execute(SCRATCH)]


def _processes_of(project: Project) -> list[int]:
    key = root_key(project.root).encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if key in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill(pid: int) -> None:
    """End a process that this test started, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
