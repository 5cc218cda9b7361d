"""Specifications, URLs, environment and accounts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

import pgsluice
from pgsluice.errors import InputError, PipelineError, UnreachableError
from pgsluice.pipeline.devdb import folders, open_dev, stop_dev
from pgsluice.pipeline.devdb.binaries import find_binaries
from pgsluice.pipeline.devdb.folders import choose_data_dir, server_folder
from pgsluice.pipeline.devdb.spec import EmbeddedSpec

from .conftest import short_folder
from .processes import ACTOR, LIMIT_S, actor, process_commands
from .test_templates import creates, databases, refuses, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

EMBEDDED = "embedded"
FORMS = (
    'dev = "embedded", dev = "local:/usr/lib/postgresql/15/bin", dev = "docker://postgres:17",'
    ' or dev = "postgresql://..."'
)
HOSTILE = {
    "PGHOST": "nowhere.invalid",
    "PGPORT": "1",
    "PGUSER": "nobody-there",
    "PGDATABASE": "nothing",
    "PGSERVICE": "no-such-service",
    "PGOPTIONS": "-c search_path=elsewhere",
    "PGTZ": "Asia/Tokyo",
    "PGDATESTYLE": "German",
    "PGCLIENTENCODING": "LATIN1",
    "PGSSLMODE": "verify-full",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGTARGETSESSIONATTRS": "standby",
    "TZ": "America/New_York",
    "LC_ALL": "de_DE.UTF-8",
}


def failure(spec: str, root: Path, kind: type[PipelineError]) -> str:
    """The whole text of the error."""
    with pytest.raises(kind) as caught, open_dev(spec, root=root):
        pytest.fail("opened")
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("mysql://x", f"dev specification 'mysql://x' is not known\nhint: {FORMS}"),
        ("local:", f"dev specification 'local:' names no folder\nhint: {FORMS}"),
        (
            "local:/nowhere/bin",
            "no PostgreSQL server binaries in /nowhere/bin: postgres, initdb missing\n"
            "hint: name the folder that holds postgres and initdb, such as local:/usr/lib/postgresql/15/bin",
        ),
        (
            "postgresql://me:50%off@localhost/x",
            "the dev URL is not valid\n"
            'hint: dev = "postgresql://user:password@host:5432/postgres", with %40 for an @ in the password',
        ),
    ],
)
def test_a_specification_that_leads_nowhere_is_an_input_error(root: Path, spec: str, expected: str) -> None:
    assert failure(spec, root, InputError) == expected


def test_a_root_that_is_not_a_folder_is_an_input_error(root: Path) -> None:
    assert failure(EMBEDDED, root / "x", InputError) == f"project root {root / 'x'} is not a folder"


def test_a_server_that_does_not_start_shows_its_last_words(root: Path) -> None:
    real = find_binaries(EmbeddedSpec()).bin_dir
    fake = root / "bin"
    fake.mkdir()
    write_program(fake / "initdb", f'exec {real}/initdb "$@"')
    write_program(
        fake / "postgres",
        f'case "$*" in *unix_socket_directories*) echo "FATAL:  out of luck" >&2; exit 3;; esac\n'
        f'exec {real}/postgres "$@"',
    )
    assert failure("local:bin", root, UnreachableError) == (
        f"the PostgreSQL server of {fake} exited with status 3\n"
        "  FATAL:  out of luck\n"
        f"hint: try {fake}/postgres --version"
    )
    assert not stop_dev(root)


def test_binaries_that_do_not_run_say_why(root: Path) -> None:
    fake = root / "bin"
    fake.mkdir()
    write_program(fake / "initdb", "exit 0")
    write_program(fake / "postgres", "echo 'libnope.so: cannot open shared object file' >&2; exit 127")
    assert failure(f"local:{fake}", root, UnreachableError) == (
        f"cannot run the PostgreSQL binaries in {fake}\n"
        "  postgres: libnope.so: cannot open shared object file\n"
        f"hint: try {fake}/postgres --version"
    )


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_environment_reaches_neither_server_nor_sessions(
    root: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with (
        open_dev(spec, root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        row = conn.execute(
            "select current_setting('timezone'), current_setting('datestyle'),"
            " current_setting('search_path'), current_setting('client_encoding'),"
            " current_setting('lc_messages'), current_setting('log_timezone'), current_user::text"
        ).fetchone()
    assert row == ("UTC", "ISO, MDY", '"$user", public', "UTF8", "C", "UTC", "pgsluice_dev")
    assert dict(os.environ) == before


def test_overlapping_uses_put_the_environment_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    first, second = open_dev(EMBEDDED, root=root), open_dev(EMBEDDED, root=root)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert "PGTZ" not in os.environ
    second.__exit__(None, None, None)
    assert os.environ["PGTZ"] == "Asia/Tokyo"


def test_without_room_in_shared_memory_the_data_are_on_disk(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = server_folder(root, EMBEDDED)
    monkeypatch.setattr(folders, "SHARED_MEMORY", tmp_path / "missing")
    assert choose_data_dir(folder) == folder.disk_data
    monkeypatch.setattr(folders, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(folders, "MEMORY_NEEDED_BYTES", 1 << 60)
    assert choose_data_dir(folder) == folder.disk_data
    monkeypatch.setattr(folders, "MEMORY_NEEDED_BYTES", 0)
    assert choose_data_dir(folder) == folder.memory_data


def test_a_runtime_folder_of_somebody_else_is_refused(root: Path, runtime: Path) -> None:
    runtime.chmod(0o777)
    assert failure(EMBEDDED, root, UnreachableError) == (
        f"runtime folder {runtime} belongs to or is writable by somebody else\n"
        "hint: remove it, or export PGSLUICE_RUNTIME_DIR=/a/short/writable/folder"
    )
    runtime.chmod(0o711)


def test_a_runtime_folder_too_deep_for_a_socket_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = f"/tmp/{'x' * 90}"
    monkeypatch.setenv("PGSLUICE_RUNTIME_DIR", deep)
    assert failure(EMBEDDED, root, InputError) == (
        f"runtime folder {deep} is too long for a socket path\n"
        "hint: export PGSLUICE_RUNTIME_DIR=/tmp/pgsluice"
    )


@pytest.fixture
def url(root: Path) -> Iterator[str]:
    """A server as somebody else's: reached by URL alone."""
    home = short_folder("server")
    with open_dev(EMBEDDED, root=home):
        socket = server_folder(home, EMBEDDED).socket_dir
        yield f"postgresql://pgsluice_dev@/postgres?host={quote(str(socket), safe='')}"
    stop_dev(home)
    shutil.rmtree(home)


def test_a_url_s_server_holds_scratch_databases_and_templates(root: Path, url: str) -> None:
    with open_dev(url, root=root) as server:
        assert re.fullmatch(r"PostgreSQL \S+ at /tmp/\S+:5432", server.description)
        template = server.template("one", parent=None, fill=creates("a"))
        assert tables(server, template) == ["a"]
    with open_dev(url, root=root) as server:
        assert server.template("one", parent=None, fill=refuses) == template
        assert databases(server, "^pgsluice_") == [template]
    assert not stop_dev(root)


def test_a_killed_command_s_scratch_database_on_a_url_s_server_is_dropped(root: Path, url: str) -> None:
    with actor("hold", url, root) as command:
        name = command.hears("scratch")["name"]
        command.kill()
    with open_dev(url, root=root) as server:
        pass  # dropped when opened, or when closed should the server have noticed the kill just now
    with open_dev(url, root=root) as server:
        assert name not in databases(server, "^pgsluice_scratch_")


def test_an_ordinary_role_with_createdb_is_enough_and_without_it_is_not(root: Path, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("create role builder login")
    as_builder = url.replace("pgsluice_dev@", "builder@")
    assert failure(as_builder, root, UnreachableError) == (
        "role builder of the dev server may not create databases\n"
        'hint: have a superuser run: alter role "builder" createdb'
    )
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("alter role builder createdb")
    with open_dev(url, root=root) as server:
        theirs = server.template("one", parent=None, fill=creates("a"))
    with open_dev(as_builder, root=root) as server:
        ours = server.template("one", parent=None, fill=creates("a"))
        assert ours != theirs
        assert tables(server, ours) == ["a"]


def test_a_url_s_role_settings_do_not_reach_sessions(root: Path, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("alter role pgsluice_dev set timezone to 'Asia/Tokyo'")
        conn.execute("alter role pgsluice_dev set search_path to elsewhere")
    with (
        open_dev(url, root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        row = conn.execute("select current_setting('timezone'), current_setting('search_path')").fetchone()
    assert row == ("UTC", '"$user", public')


def test_an_unreachable_url_is_named_without_its_password(root: Path) -> None:
    text = failure("postgresql://me:s3cret@127.0.0.1:1/x", root, UnreachableError)
    assert text.startswith("cannot reach the dev server at 127.0.0.1:1\n")
    assert text.endswith('hint: start it, correct the URL, or use dev = "embedded"')
    assert "s3cret" not in text


AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root starts servers as another account")


@needs_root
def test_root_s_server_runs_unprivileged_and_changes_no_mode(root: Path) -> None:
    package = find_binaries(EmbeddedSpec()).bin_dir.parents[1]
    watched = [*package.parents, package, root, Path("/dev/shm")]
    before = [path.stat().st_mode for path in watched]
    with (
        open_dev(EMBEDDED, root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        status = Path(f"/proc/{conn.info.backend_pid}/status").read_text()
    assert re.search(r"^Uid:\t65534\t65534\t65534\t65534$", status, re.MULTILINE)
    assert [path.stat().st_mode for path in watched] == before


@needs_root
def test_binaries_under_a_private_folder_are_copied_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = find_binaries(EmbeddedSpec()).bin_dir.parents[1]
    private = short_folder("private")
    shutil.copytree(package, private / package.name, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(package.with_name(f"{package.name}.libs"), private / f"{package.name}.libs")
    private.chmod(0o700)
    cache = short_folder("cache")
    monkeypatch.setenv("PGSLUICE_CACHE_DIR", str(cache))
    monkeypatch.syspath_prepend(private)
    messages: list[str] = []
    with open_dev(EMBEDDED, root=root, progress=messages.append) as server:
        assert tables(server, None) == []
        assert any(f"{cache}/binaries/" in line for line in process_commands())
    assert messages[0] == "copying the PostgreSQL binaries to where an unprivileged account can run them"
    assert private.stat().st_mode & 0o777 == 0o700
    stop_dev(root)
    shutil.rmtree(private)
    shutil.rmtree(cache)


def ordinary_python() -> str | None:
    """An interpreter that an ordinary user can run and that fits our binary packages."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        command = [*AS_NOBODY, candidate, "-c"]
        check = f"import sys; sys.path.extend({sys.path!r}); import os, psycopg, pgsluice"
        check += "; assert os.access(sys.executable, os.X_OK)"
        try:
            done = subprocess.run([*command, check], capture_output=True, check=False, cwd="/")
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return candidate
    return None


@needs_root
def test_an_ordinary_user_starts_a_server_as_himself(runtime: Path) -> None:
    python = ordinary_python()
    if python is None:
        pytest.skip("no interpreter here that an ordinary user could run")
    home = short_folder("home")
    os.chown(home, 65534, 65534)
    project = home / "project"
    project.mkdir()
    source = str(Path(pgsluice.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, *(path for path in sys.path if path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "PGSLUICE_RUNTIME_DIR": str(home / "run"),
        "PGSLUICE_CACHE_DIR": str(home / "cache"),
    }
    for action, said in (("open", '"at": "open"'), ("stop", '"stopped": true')):
        done = subprocess.run(
            [*AS_NOBODY, python, ACTOR, action, EMBEDDED, project],
            input="\n\n",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env=environment,
            cwd="/",
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    shutil.rmtree(home)
