"""Servers start once, are shared, and leave nothing behind, whoever is killed when."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgsluice.pipeline.devdb import DevServer, open_dev, stop_dev
from pgsluice.pipeline.devdb.filelock import is_held
from pgsluice.pipeline.devdb.folders import ServerFolder, server_folder
from pgsluice.pipeline.devdb.state import read_state, write_record

from .actor import started_at
from .conftest import DEBIAN_15, short_folder
from .processes import ACTOR, LIMIT_S, actor, is_silent, supervisor_pid, wait_until

EMBEDDED = "embedded"


def embedded_folder(root: Path) -> ServerFolder:
    return server_folder(root, EMBEDDED)


def databases(server: DevServer) -> set[str]:
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        own = conn.info.dbname
        return {row[0] for row in conn.execute("select datname from pg_database where datname <> %s", [own])}


def test_a_second_command_finds_the_server_running(root: Path, spec: str) -> None:
    messages: list[str] = []
    with open_dev(spec, root=root, progress=messages.append) as server:
        first = started_at(server)
        assert server.version_num // 10000 == server.major
    assert any(message.startswith("starting the PostgreSQL server of") for message in messages)
    messages.clear()
    with open_dev(spec, root=root, progress=messages.append) as server:
        assert started_at(server) == first
    assert messages == []


def test_the_description_names_version_and_origin(root: Path) -> None:
    with open_dev(EMBEDDED, root=root) as server:
        assert server.description.startswith(f"embedded PostgreSQL {server.major}.")
    with open_dev(f"local:{DEBIAN_15}", root=root) as server:
        assert server.major == 15
        assert server.description.endswith(f"of {DEBIAN_15}")


def test_a_symbolic_link_to_the_root_leads_to_the_same_server(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    with open_dev(EMBEDDED, root=root) as one, open_dev(EMBEDDED, root=link) as two:
        assert started_at(one) == started_at(two)


def test_two_commands_at_once_start_one_server(root: Path) -> None:
    with actor("open", EMBEDDED, root) as one, actor("open", EMBEDDED, root) as two:
        for each in (one, two):
            each.hears("loaded")
        for each in (one, two):
            each.go()
        assert one.hears("open")["started_at"] == two.hears("open")["started_at"]
        for each in (one, two):
            each.go()
            each.ends()


def test_a_caller_that_reads_our_output_to_its_end_does_not_hang(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, ACTOR, "open", EMBEDDED, root],
        input="\n\n",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert done.stderr == ""
    assert is_held(embedded_folder(root).server_lock)


def test_a_killed_command_s_scratch_database_is_dropped_by_the_next(root: Path, spec: str) -> None:
    with actor("hold", spec, root) as command:
        name = command.hears("scratch")["name"]
        with open_dev(spec, root=root) as server:
            assert name in databases(server)
        command.kill()

    def is_dropped() -> bool:  # the server may notice the closed socket a moment after our first look
        with open_dev(spec, root=root) as server:
            return name not in databases(server)

    wait_until(is_dropped, "scratch database dropped", limit_s=10)


def test_a_killed_supervisor_is_replaced_and_the_server_kept(root: Path) -> None:
    folder = embedded_folder(root)
    with actor("hold", EMBEDDED, root) as command:
        first = command.hears("scratch")["started_at"]
        killed = supervisor_pid(folder)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not is_held(folder.supervisor_lock), "supervisor gone")
        with open_dev(EMBEDDED, root=root) as server:
            assert started_at(server) == first
            assert supervisor_pid(folder) != killed
        command.go()
        assert command.hears("alive")["answer"] == [42]
    assert stop_dev(root)
    wait_until(lambda: is_silent(folder), "nothing left")


def test_stop_works_without_a_supervisor(root: Path) -> None:
    folder = embedded_folder(root)
    with open_dev(EMBEDDED, root=root):
        os.kill(supervisor_pid(folder), signal.SIGKILL)
    wait_until(lambda: not is_held(folder.supervisor_lock), "supervisor gone")
    assert stop_dev(root)
    wait_until(lambda: is_silent(folder), "nothing left")


def test_a_server_that_was_killed_with_its_supervisor_is_started_again(root: Path) -> None:
    folder = embedded_folder(root)
    with open_dev(EMBEDDED, root=root) as server:
        first = started_at(server)
    state = read_state(folder.state_file)
    assert state is not None
    os.kill(supervisor_pid(folder), signal.SIGKILL)
    os.kill(state.server_pid, signal.SIGKILL)
    with open_dev(EMBEDDED, root=root) as server:
        assert started_at(server) != first


def test_a_killed_server_is_started_again(root: Path) -> None:
    folder = embedded_folder(root)
    with open_dev(EMBEDDED, root=root) as server:
        first = started_at(server)
    state = read_state(folder.state_file)
    assert state is not None
    os.kill(state.server_pid, signal.SIGKILL)
    wait_until(lambda: not is_held(folder.server_lock), "server gone")
    with open_dev(EMBEDDED, root=root) as server:
        assert started_at(server) != first


def test_an_orphan_of_another_project_is_cleared_by_the_next_command(root: Path) -> None:
    other = short_folder("other")
    folder = embedded_folder(other)
    with open_dev(EMBEDDED, root=other):
        os.kill(supervisor_pid(folder), signal.SIGKILL)
    wait_until(lambda: not is_held(folder.supervisor_lock), "supervisor gone")
    with open_dev(EMBEDDED, root=root):
        wait_until(lambda: is_silent(folder), "nothing left")
        assert not folder.path.exists()
    shutil.rmtree(other)


def test_an_orphan_of_another_project_that_is_in_use_is_left_alone(root: Path) -> None:
    other = short_folder("other")
    folder = embedded_folder(other)
    with actor("hold", EMBEDDED, other) as command:
        command.hears("scratch")
        os.kill(supervisor_pid(folder), signal.SIGKILL)
        wait_until(lambda: not is_held(folder.supervisor_lock), "supervisor gone")
        with open_dev(EMBEDDED, root=root):
            command.go()
            assert command.hears("alive")["answer"] == [42]
    assert stop_dev(other)
    shutil.rmtree(other)


def test_the_sweep_touches_no_folder_that_is_not_a_server_s(root: Path, runtime: Path) -> None:
    mine = runtime / "mine"
    mine.mkdir()
    with open_dev(EMBEDDED, root=root):
        pass
    stop_dev(root)
    assert mine.is_dir()


def test_an_unused_server_stops_and_a_used_one_does_not(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSLUICE_DEV_IDLE_S", "0.3")
    unused = short_folder("unused")
    with actor("hold", EMBEDDED, root) as command:
        command.hears("scratch")
        with open_dev(EMBEDDED, root=unused):
            pass
        folder = embedded_folder(unused)
        wait_until(lambda: is_silent(folder), "unused server stopped")
        command.go()
        assert command.hears("alive")["answer"] == [42]
        command.go()
        command.ends()
    wait_until(lambda: is_silent(embedded_folder(root)), "server stopped after its last use")
    shutil.rmtree(unused)


def test_a_command_that_comes_while_the_server_stops_gets_a_new_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSLUICE_DEV_IDLE_S", "0.01")
    for _ in range(5):
        with open_dev(EMBEDDED, root=root) as server:
            assert started_at(server)


def test_a_vanished_project_root_stops_the_server_though_it_is_in_use(root: Path) -> None:
    folder = embedded_folder(root)
    with actor("hold", EMBEDDED, root) as command:
        command.hears("scratch")
        shutil.rmtree(root)
        wait_until(lambda: is_silent(folder), "server stopped")


def test_a_removed_runtime_folder_ends_the_old_server(root: Path) -> None:
    folder = embedded_folder(root)
    with open_dev(EMBEDDED, root=root) as server:
        first = started_at(server)
    state = read_state(folder.state_file)
    assert state is not None
    shutil.rmtree(folder.path)
    with open_dev(EMBEDDED, root=root) as server:
        assert started_at(server) != first
        wait_until(lambda: is_gone(state.server_pid), "old server gone")
        assert started_at(server) != first


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody collected has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_stop_ends_every_server_of_the_root_and_says_whether_there_was_one(root: Path) -> None:
    local = f"local:{DEBIAN_15}"
    for spec in (EMBEDDED, local):
        with open_dev(spec, root=root):
            pass
    folders = [embedded_folder(root), server_folder(root, local)]
    assert stop_dev(root)
    wait_until(lambda: all(is_silent(folder) for folder in folders), "nothing left")
    assert not any(folder.path.exists() or folder.memory_data.parent.exists() for folder in folders)
    assert not stop_dev(root)


def test_a_server_of_replaced_binaries_is_replaced_unless_it_is_in_use(root: Path) -> None:
    folder = embedded_folder(root)
    with open_dev(EMBEDDED, root=root) as server:
        first = started_at(server)
        state = read_state(folder.state_file)
        assert state is not None
        write_record(folder.state_file, type(state)(state.server_pid, state.bin_dir, "older binaries"))
        with actor("open", EMBEDDED, root) as command:
            command.hears("loaded")
            command.go()
            assert command.hears("open")["started_at"] == first
    with open_dev(EMBEDDED, root=root) as server:
        assert started_at(server) != first


def test_a_server_of_another_version_of_pgsluice_is_replaced(root: Path) -> None:
    folder = embedded_folder(root)
    with open_dev(EMBEDDED, root=root) as server:
        first = started_at(server)
    folder.state_file.write_text('{"written_by": "the future"}')
    with open_dev(EMBEDDED, root=root) as server:
        assert started_at(server) != first


def test_the_cache_may_vanish_at_any_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = short_folder("cache")
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", str(cache))
    with open_dev(EMBEDDED, root=root):
        shutil.rmtree(cache)
    stop_dev(root)
    with open_dev(EMBEDDED, root=root) as server:
        assert started_at(server)
    shutil.rmtree(cache)


@pytest.mark.parametrize("storage", ["disk", "memory"])
def test_data_are_where_the_environment_says(
    root: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSLUICE_DEV_STORAGE", storage)
    folder = embedded_folder(root)
    with (
        open_dev(EMBEDDED, root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        row = conn.execute("select current_setting('data_directory')").fetchone()
    assert row == (str(folder.disk_data if storage == "disk" else folder.memory_data),)
