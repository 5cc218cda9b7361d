"""What is said of images, engines and containers that are no good; needs no Docker."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb import docker_server, open_dev, stop_dev
from pgsluice.pipeline.devdb.docker_container import IMAGE_LABEL, SETTINGS_LABEL, Order
from pgsluice.pipeline.devdb.docker_engine import place_of_ports
from pgsluice.pipeline.devdb.docker_image import read_image
from pgsluice.pipeline.devdb.spec import DockerSpec, parse_spec

from .engine import engine
from .test_session import AS_NOBODY, failure, needs_root, ordinary_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPEC = "docker://postgres:17"
SHA = f"sha256:{'0123456789abcdef' * 4}"
NAMING = (
    "hint: start Docker, or name the engine:"
    " export DOCKER_HOST=unix:///run/user/1000/podman/podman.sock (or tcp://host:2376, ssh://user@host)"
)
IMAGE_ID = "sha256:1"
ID = "f00d"
HAS_IMAGE: dict[str, tuple[int, Any]] = {  # Any: JSON
    "GET /images/postgres:17/json": (200, {"Id": IMAGE_ID, "Config": {}}),
    "GET /info": (200, {"MemTotal": 8 << 30}),
    "GET /containers/json": (200, []),
}


@pytest.fixture(autouse=True)
def forgotten(runtime: Path, root: Path) -> Iterator[None]:
    """Leave nothing behind that would make the end of a test ask an engine that is gone."""
    yield
    for folder in runtime.glob("docker-*"):
        shutil.rmtree(folder)
    assert root.is_dir()


@pytest.mark.parametrize(
    ("reference", "name", "tag", "digest"),
    [
        ("postgres", "postgres", "latest", None),
        ("postgres:17", "postgres", "17", None),
        ("postgis/postgis:17-3.5", "postgis/postgis", "17-3.5", None),
        ("localhost:5000/pg", "localhost:5000/pg", "latest", None),
        ("ghcr.io/org/pg_x:16.1-Alpine", "ghcr.io/org/pg_x", "16.1-Alpine", None),
        (f"ghcr.io/org/pg:16@{SHA}", "ghcr.io/org/pg", None, SHA),
        (f"postgres@{SHA}", "postgres", None, SHA),
    ],
)
def test_an_image_is_named_as_docker_names_it(
    tmp_path: Path, reference: str, name: str, tag: str | None, digest: str | None
) -> None:
    spec = parse_spec(f"docker://{reference}", tmp_path)
    assert spec == DockerSpec(name, tag, digest)
    assert isinstance(spec, DockerSpec)
    assert parse_spec(f"docker://{spec.image}", tmp_path) == spec


@pytest.mark.parametrize(
    "reference", ["", "Postgres:17", "postgres:", "postgres:17 ", "a//b", "postgres@sha256:12", "pg?user=me"]
)
def test_what_is_no_image_name_is_an_input_error(root: Path, reference: str) -> None:
    assert failure(f"docker://{reference}", root, InputError) == (
        f"{reference!r} in dev = ... is not the name of an image\n"
        'hint: write it as docker pull takes it: dev = "docker://postgres:17",'
        ' or dev = "docker://registry.example.com/team/postgres:17"'
    )


def test_without_the_sdk_the_install_command_is_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    assert failure(SPEC, root, InputError) == (
        'dev = "docker://..." needs Docker\'s Python SDK, which is not installed\n'
        "hint: pip install 'pgsluice[docker]'"
    )


def test_other_servers_never_import_the_sdk(root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pgsluice.pipeline.devdb import open_dev, stop_dev\n"
        f"root = Path({str(root)!r})\n"
        "with open_dev('embedded', root=root): pass\n"
        "stop_dev(root); sys.exit('docker' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_engine_that_is_not_there_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{root}/docker.sock")
    assert failure(SPEC, root, UnreachableError) == (
        f"no Docker engine answers at unix://{root}/docker.sock: No such file or directory\n{NAMING}"
    )
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
    assert failure(SPEC, root, UnreachableError) == (
        f"no Docker engine answers at tcp://127.0.0.1:{port}: Connection refused\n{NAMING}"
    )


def test_the_engine_of_docker_s_current_context_is_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(root))
    (root / "config.json").write_text(json.dumps({"currentContext": "there"}))
    context = root / "contexts/meta" / hashlib.sha256(b"there").hexdigest() / "meta.json"
    context.parent.mkdir(parents=True)
    endpoints = {"docker": {"Host": f"unix://{root}/there.sock"}}
    context.write_text(json.dumps({"Name": "there", "Metadata": {}, "Endpoints": endpoints}))
    assert failure(SPEC, root, UnreachableError) == (
        f"no Docker engine answers at unix://{root}/there.sock: No such file or directory\n{NAMING}"
    )
    context.write_text("{")
    text = failure(SPEC, root, InputError)
    assert text.startswith(
        "cannot tell which Docker engine to use: Detected corrupted meta file for context there"
    )
    assert text.endswith(NAMING)


def test_an_address_that_is_none_is_an_input_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://nowhere")
    assert (
        failure(SPEC, root, InputError) == f"'tcp://nowhere' is not the address of a Docker engine\n{NAMING}"
    )


@needs_root
def test_an_account_without_the_right_learns_the_group(root: Path) -> None:
    python = ordinary_python()
    if python is None:
        pytest.skip("no interpreter that an ordinary user can run")
    root.chmod(0o755)
    with engine(root / "docker.sock", {}) as address:
        (root / "docker.sock").chmod(0o600)
        program = (
            f"import sys; sys.path.extend({sys.path!r})\n"
            "from pgsluice.errors import UnreachableError\n"
            "from pgsluice.pipeline.devdb.docker_engine import open_engine\n"
            "try:\n    with open_engine(): pass\n"
            "except UnreachableError as exc: print(exc)"
        )
        done = subprocess.run(
            [*AS_NOBODY, python, "-c", program],
            env={**os.environ, "DOCKER_HOST": address},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == (
        f"this account may not use the Docker engine at {address}\n"
        'hint: add it to the group, and log in again: sudo usermod -aG docker "$USER"\n'
    )


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("unix:///var/run/docker.sock", ("127.0.0.1", "127.0.0.1")),
        ("tcp://127.0.0.1:2375", ("127.0.0.1", "127.0.0.1")),
        ("tcp://docker:2375", ("docker", "0.0.0.0")),
        ("https://10.0.0.5:2376", ("10.0.0.5", "0.0.0.0")),
        ("ssh://me@builder", ("builder", "0.0.0.0")),
    ],
)
def test_ports_are_open_to_others_only_on_another_machine(url: str, place: tuple[str, str]) -> None:
    assert place_of_ports(url) == place


def test_the_image_s_own_entry_point_is_kept_when_it_is_the_official_one() -> None:
    config = {"Entrypoint": ["/usr/bin/docker-entrypoint.sh"], "Cmd": ["postgres", "-c", "a=b"], "User": "70"}
    assert read_image("x", "1", config).command == (
        "/usr/bin/docker-entrypoint.sh",
        "postgres",
        "-c",
        "a=b",
    )
    assert read_image("x", "1", {"Entrypoint": ["docker-entrypoint.sh"]}).command == (
        "docker-entrypoint.sh",
        "postgres",
    )
    assert read_image("x", "1", {"Cmd": ["bash"], "User": ""}).command is None
    for user, wanted in (("", "postgres"), ("root", "postgres"), ("0:0", "postgres"), ("1001", "1001")):
        assert read_image("x", "1", {"Cmd": ["bash"], "User": user}).user == wanted


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            {"GET /images/postgres:17/json": (500, {"message": "disk is\nbroken"})},
            "cannot look for image postgres:17: disk is broken\nhint: docker info",
        ),
        (
            {"POST /images/create": (404, {"message": "manifest unknown"})},
            "cannot pull image postgres:17: manifest unknown\n"
            "hint: see what docker itself says: docker pull postgres:17",
        ),
        (
            {"POST /images/create": (200, b'{"status": "Pulling"}\n{"error": "dial tcp: no such host"}\n')},
            "cannot pull image postgres:17: dial tcp: no such host\n"
            "hint: see what docker itself says: docker pull postgres:17",
        ),
        (
            {**HAS_IMAGE, "GET /containers/json": (500, {"message": "busy"})},
            "cannot list containers: busy\nhint: docker info",
        ),
        (
            {**HAS_IMAGE, "POST /containers/create": (409, {"message": "no space left"})},
            "cannot start a container of image postgres:17: no space left\nhint: docker info",
        ),
    ],
    ids=["look", "pull refused", "pull broken off", "list", "create"],
)
def test_the_engine_s_words_are_passed_on(
    root: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, Any]], expected: str
) -> None:
    with engine(root / "docker.sock", answers) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        assert failure(SPEC, root, UnreachableError) == expected


def running(root: Path, *, key: str, **state: object) -> dict[str, tuple[int, Any]]:
    """The answers of an engine on which a container of ours runs whose port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = str(closed.getsockname()[1])
    labels = {
        IMAGE_LABEL: IMAGE_ID,
        SETTINGS_LABEL: Order(key, root, 300, "auto").settings,
    }
    container = {
        "Id": ID,
        "Name": "/pgsluice-shop-1",
        "State": {"Status": "running", **state},
        "Config": {"Tty": False, "Labels": labels, "Env": ["POSTGRES_PASSWORD=secret"]},
        "HostConfig": {"LogConfig": {"Type": "json-file", "Config": {}}},
        "NetworkSettings": {"Ports": {"5432/tcp": [{"HostIp": "127.0.0.1", "HostPort": port}]}},
    }
    return {
        **HAS_IMAGE,
        "GET /containers/json": (200, [{"Id": ID}]),
        f"GET /containers/{ID}/json": (200, container),
        f"GET /containers/{ID}/logs": (200, b""),
    }


def test_a_server_that_does_not_get_ready_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_server, "READY_TIMEOUT_S", 0.6)
    monkeypatch.setattr(docker_server, "TELL_EVERY_S", 0.2)
    answers = running(root, key="x")
    port = answers[f"GET /containers/{ID}/json"][1]["NetworkSettings"]["Ports"]["5432/tcp"][0]["HostPort"]
    messages: list[str] = []
    with engine(root / "docker.sock", answers) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(UnreachableError) as caught, open_dev(SPEC, root=root, progress=messages.append):
            pytest.fail("opened")
    assert str(caught.value).splitlines() == [
        "the server in container pgsluice-shop-1 is not ready after 1 s",
        f'  connection failed: connection to server at "127.0.0.1", port {port} failed: Connection refused',
        "  \tIs the server running on that host and accepting TCP/IP connections?",
        "hint: see what it says: docker logs pgsluice-shop-1",
    ]
    assert messages[0] == "waiting for the server in container pgsluice-shop-1"


def test_a_container_that_is_gone_at_once_has_no_last_words(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        **running(root, key="x"),
        "GET /containers/json": (200, []),
        "POST /containers/create": (201, {"Id": ID}),
        f"POST /containers/{ID}/start": (200, {}),
        f"GET /containers/{ID}/logs": (404, {"message": "no such container"}),
    }
    with engine(root / "docker.sock", answers) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        assert failure(SPEC, root, UnreachableError) == (
            "the server in a container of image postgres:17 ended\n"
            "hint: try it alone: docker run --rm --env POSTGRES_PASSWORD=secret postgres:17"
        )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (f"GET /containers/{ID}/logs", "cannot look at container pgsluice-shop-1: out of order"),
        (f"DELETE /containers/{ID}", "cannot remove container pgsluice-shop-1: out of order"),
    ],
)
def test_an_engine_that_fails_later_is_quoted_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch, answer: str, expected: str
) -> None:
    status = {"Status": "exited"} if answer.startswith("DELETE") else {}
    answers = {**running(root, key="x", **status), answer: (500, {"message": "out of order"})}
    with engine(root / "docker.sock", answers) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        assert failure(SPEC, root, UnreachableError) == f"{expected}\nhint: docker info"


def test_stopping_asks_the_engine_only_for_projects_that_used_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{root}/docker.sock")
    assert not stop_dev(root)
    used = {**HAS_IMAGE, "POST /containers/create": (500, {"message": "no space left"})}
    with engine(root / "docker.sock", used):
        failure(SPEC, root, UnreachableError)
    with pytest.raises(UnreachableError, match="no Docker engine answers at"):
        stop_dev(root)
    with engine(root / "docker.sock", HAS_IMAGE):
        assert not stop_dev(root)
    assert not stop_dev(root)
