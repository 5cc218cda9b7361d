"""Servers in containers, on a real engine: the image is PGSLUICE_TEST_DOCKER_IMAGE, else postgres:17."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from pgsluice.errors import InputError, PipelineError, UnreachableError
from pgsluice.pipeline.devdb import open_dev, stop_dev
from pgsluice.pipeline.devdb.docker_container import ROOT_LABEL, SERVER_LABEL
from pgsluice.pipeline.devdb.docker_engine import open_engine
from pgsluice.pipeline.devdb.folders import runtime_base
from tests.e2e.project import SEQUENCE, Project

from .actor import started_at
from .processes import actor, wait_until
from .test_session import failure
from .test_templates import creates, refuses, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.docker

IMAGE_VARIABLE: Final = "PGSLUICE_TEST_DOCKER_IMAGE"
DEFAULT_IMAGE: Final = "postgres:17"
TEST_LABEL: Final = "pgsluice.test"
ENTRYPOINT: Final = Path(__file__).with_name("docker-entrypoint.sh")
# Any of them: the SDK carries no types.
Client = Any
Container = Any


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """The engine that answers here."""
    with ExitStack() as stack:
        try:
            engine = stack.enter_context(open_engine())
        except PipelineError as exc:
            pytest.skip(exc.message)
        yield engine.client


@pytest.fixture(scope="session")
def base(client: Client) -> str:
    """An image with a PostgreSQL server."""
    import docker.errors

    name = os.environ.get(IMAGE_VARIABLE, DEFAULT_IMAGE)
    try:
        client.images.get(name)
    except docker.errors.NotFound:
        try:
            client.images.pull(name)
        except docker.errors.DockerException as exc:
            pytest.skip(f"cannot pull {name}, set {IMAGE_VARIABLE} to an image that is there: {exc}")
    return name


@pytest.fixture
def tag(client: Client, root: Path) -> Iterator[str]:
    """A name for an image of this test."""
    import docker.errors

    name = f"localhost/pgsluice-test-{secrets.token_hex(4)}:1"
    yield name
    stop_dev(root)
    for image in client.images.list(filters={"label": f"{TEST_LABEL}={name}"}):
        client.images.remove(image.id, force=True)
    with suppress(docker.errors.NotFound):
        client.images.remove(name, force=True)


@pytest.fixture
def derive(client: Client, base: str) -> Callable[..., None]:
    """Make an image from the base by a script, with an entry point of its own."""

    def make(tag: str, *changes: str, script: str = "true") -> None:
        made = client.containers.create(base, entrypoint=["sh", "-c", script], user="root")
        made.start()
        assert made.wait()["StatusCode"] == 0
        repository, _, version = tag.partition(":")
        made.commit(repository=repository, tag=version, changes=[*changes, f"LABEL {TEST_LABEL}={tag}"])
        made.remove(v=True)

    return make


@pytest.fixture
def move(client: Client, base: str, derive: Callable[..., None]) -> Callable[[str], None]:
    """Make a tag mean another image that runs the same."""

    def make(tag: str) -> None:
        config = client.images.get(base).attrs["Config"]
        entrypoint, command = (json.dumps(config[key] or []) for key in ("Entrypoint", "Cmd"))
        derive(tag, f"ENTRYPOINT {entrypoint}", f"CMD {command}", "LABEL moved=yes")

    return make


@pytest.fixture
def containers(client: Client, root: Path) -> Callable[[], list[Container]]:
    """The containers of the test's project."""

    def find() -> list[Container]:
        found: list[Container] = client.containers.list(
            all=True, filters={"label": f"{ROOT_LABEL}={root.resolve()}"}, ignore_removed=True
        )
        return found

    return find


def install(script: str) -> str:
    """The command that makes a text the official entry point."""
    place = "/usr/local/bin/docker-entrypoint.sh"
    return f"printf %s {shlex.quote(script)} >{place} && chmod 755 {place}"


def test_a_second_command_finds_the_container_running(
    root: Path, base: str, containers: Callable[[], list[Container]]
) -> None:
    messages: list[str] = []
    with open_dev(f"docker://{base}", root=root, progress=messages.append) as server:
        first = started_at(server)
        assert server.description.endswith(f"in a container of {base}")
        assert server.bin_dir is None
        template = server.template("one", parent=None, fill=creates("a"))
    assert messages == [f"starting a container of image {base}"]
    messages.clear()
    with open_dev(f"docker://{base}", root=root, progress=messages.append) as server:
        assert started_at(server) == first
        assert server.template("one", parent=None, fill=refuses) == template
        assert tables(server, template) == ["a"]
    assert messages == []
    (container,) = containers()
    ports = container.attrs["NetworkSettings"]["Ports"]["5432/tcp"]
    assert [port["HostIp"] for port in ports] == ["127.0.0.1"]


@pytest.mark.parametrize("kind", ["official", "plain"])
def test_an_image_runs_with_and_without_the_official_entry_point(
    root: Path, tag: str, derive: Callable[..., None], client: Client, kind: str
) -> None:
    if kind == "official":
        programs = "PATH=$(echo /usr/lib/postgresql/*/bin):$PATH\n"
        shebang, _, rest = ENTRYPOINT.read_text().partition("\n")
        init = "mkdir -p /docker-entrypoint-initdb.d && echo 'create role of_the_image; select pg_sleep(1)'"
        derive(
            tag,
            'ENTRYPOINT ["docker-entrypoint.sh"]',
            'CMD ["postgres", "-c", "work_mem=7MB"]',
            script=install(f"{shebang}\n{programs}{rest}") + f" && {init} >/docker-entrypoint-initdb.d/a.sql",
        )
    else:
        derive(tag, "ENTRYPOINT []", 'CMD ["bash"]')
    with (
        open_dev(f"docker://{tag}", root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo, autocommit=True) as conn,
    ):

        def setting(name: str) -> str:
            row = conn.execute("select current_setting(%s)", [name]).fetchone()
            assert row is not None
            return str(row[0])

        assert setting("fsync") == "off"
        assert setting("max_locks_per_transaction") == "1024"
        assert setting("lc_collate" if server.major < 16 else "lc_messages") == "C"
        assert setting("work_mem") == ("7MB" if kind == "official" else "4MB")
        roles = conn.execute("select count(*) from pg_roles where rolname = 'of_the_image'").fetchone()
        assert roles == (int(kind == "official"),)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(conninfo, password="guessed")


def test_a_container_removed_by_hand_is_replaced(
    root: Path, base: str, containers: Callable[[], list[Container]]
) -> None:
    with open_dev(f"docker://{base}", root=root) as server:
        first = started_at(server)
    containers()[0].remove(force=True, v=True)
    with open_dev(f"docker://{base}", root=root) as server:
        assert started_at(server) != first


def test_a_server_that_crashed_is_replaced(
    root: Path, base: str, containers: Callable[[], list[Container]]
) -> None:
    with open_dev(f"docker://{base}", root=root) as server:
        first = started_at(server)
    containers()[0].exec_run(["sh", "-c", "kill -9 $(head -n 1 /tmp/pgsluice/data/postmaster.pid)"])
    with open_dev(f"docker://{base}", root=root) as server:
        assert started_at(server) != first
    assert len(containers()) == 1


def test_a_tag_that_moved_to_another_image_is_followed(
    root: Path, tag: str, move: Callable[[str], None], containers: Callable[[], list[Container]]
) -> None:
    move(tag)
    with open_dev(f"docker://{tag}", root=root) as server:
        (old,) = containers()
    move(tag)
    with open_dev(f"docker://{tag}", root=root) as server:
        assert tables(server, None) == []
    (new,) = containers()
    assert new.image.id != old.image.id


def test_a_command_that_uses_the_old_image_is_left_in_peace(
    root: Path, tag: str, move: Callable[[str], None]
) -> None:
    move(tag)
    spec = f"docker://{tag}"
    with actor("hold", spec, root) as holder:
        held = holder.hears("scratch")
        move(tag)
        with open_dev(spec, root=root) as server:
            assert started_at(server) != held["started_at"]
        holder.go()
        assert holder.hears("alive")["answer"] == [42]
        holder.go()
        holder.ends()


def test_settings_of_another_version_are_replaced(
    root: Path, base: str, monkeypatch: pytest.MonkeyPatch, containers: Callable[[], list[Container]]
) -> None:
    with open_dev(f"docker://{base}", root=root):
        (first,) = containers()
    monkeypatch.setenv("PGSLUICE_DEV_STORAGE", "disk")
    with open_dev(f"docker://{base}", root=root) as server:
        (second,) = containers()
        assert tables(server, None) == []
    assert second.id != first.id
    assert not second.attrs["HostConfig"].get("Tmpfs")


def test_two_commands_at_once_start_one_container(
    root: Path, base: str, containers: Callable[[], list[Container]]
) -> None:
    with actor("open", f"docker://{base}", root) as one, actor("open", f"docker://{base}", root) as two:
        for each in (one, two):
            each.hears("loaded")
        for each in (one, two):
            each.go()
        assert one.hears("open")["started_at"] == two.hears("open")["started_at"]
        assert len(containers()) == 1
        for each in (one, two):
            each.go()
            each.ends()


def test_a_container_whose_command_was_killed_while_it_started_is_adopted(
    root: Path, base: str, containers: Callable[[], list[Container]]
) -> None:
    spec = f"docker://{base}"
    with actor("open", spec, root) as starter:
        starter.hears("loaded")
        starter.go()
        wait_until(lambda: any(one.status == "running" for one in containers()), "a container runs")
        starter.kill()
    (left,) = containers()
    with open_dev(spec, root=root) as server:
        assert tables(server, None) == []
    assert [one.id for one in containers()] == [left.id]


def test_a_container_that_was_never_started_is_removed(
    root: Path, base: str, client: Client, containers: Callable[[], list[Container]]
) -> None:
    with open_dev(f"docker://{base}", root=root):
        (running,) = containers()
    running.remove(force=True, v=True)
    labels = {SERVER_LABEL: running.labels[SERVER_LABEL], ROOT_LABEL: running.labels[ROOT_LABEL]}
    left = client.containers.create(base, ["true"], labels=labels)
    with open_dev(f"docker://{base}", root=root):
        assert left.id not in [one.id for one in containers()]
    assert len(containers()) == 1


def test_stopping_removes_the_containers_of_the_project_alone(
    root: Path, base: str, tmp_path: Path, containers: Callable[[], list[Container]]
) -> None:
    spec = f"docker://{base}"
    with open_dev(spec, root=tmp_path) as other:
        with open_dev(spec, root=root):
            pass
        assert stop_dev(root)
        assert containers() == []
        assert not stop_dev(root)
        assert tables(other, None) == []
    assert stop_dev(tmp_path)


def test_a_container_ends_by_itself_after_its_last_use_and_not_before(
    root: Path, base: str, monkeypatch: pytest.MonkeyPatch, containers: Callable[[], list[Container]]
) -> None:
    monkeypatch.setenv("PGSLUICE_DEV_IDLE_S", "1")
    with (
        open_dev(f"docker://{base}", root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        conn.execute("select pg_sleep(4)")
        (container,) = containers()
        assert container.status == "running"
    wait_until(lambda: containers() == [], "the container is gone")
    assert not stop_dev(root)


def test_a_container_that_ends_just_as_a_command_comes_is_replaced(
    root: Path, base: str, monkeypatch: pytest.MonkeyPatch, containers: Callable[[], list[Container]]
) -> None:
    with open_dev(f"docker://{base}", root=root):
        (old,) = containers()
    for lock in runtime_base().glob("docker-*/use.lock"):
        os.utime(lock, (0, 0))  # as after a long pause

    sleep = time.sleep

    def end_it(_seconds: float) -> None:
        monkeypatch.setattr(time, "sleep", sleep)
        old.remove(force=True, v=True)

    monkeypatch.setattr(time, "sleep", end_it)
    with open_dev(f"docker://{base}", root=root) as server:
        assert tables(server, None) == []
    assert old.id not in [one.id for one in containers()]


def test_a_server_that_does_not_start_shows_its_last_words(
    root: Path, tag: str, derive: Callable[..., None], containers: Callable[[], list[Container]]
) -> None:
    derive(
        tag,
        'ENTRYPOINT ["docker-entrypoint.sh"]',
        'CMD ["postgres"]',
        script=install('#!/bin/sh\necho "FATAL:  out of luck" >&2; exit 3\n'),
    )
    assert failure(f"docker://{tag}", root, UnreachableError) == (
        f"the server in a container of image {tag} ended with status 3\n"
        "  FATAL:  out of luck\n"
        f"hint: try it alone: docker run --rm --env POSTGRES_PASSWORD=secret {tag}"
    )
    assert containers() == []


def test_an_image_without_a_server_is_an_input_error(
    root: Path, tag: str, derive: Callable[..., None], containers: Callable[[], list[Container]]
) -> None:
    remove = "rm -f $(find / -xdev -name initdb -not -path '/proc/*')"
    derive(tag, "ENTRYPOINT []", 'CMD ["bash"]', script=remove)
    assert failure(f"docker://{tag}", root, InputError) == (
        f"image {tag} holds no PostgreSQL server: neither docker-entrypoint.sh nor initdb and postgres\n"
        'hint: name an image of a server, such as dev = "docker://postgres:17"'
    )
    assert containers() == []


def test_an_image_that_cannot_run_anything_leaves_no_container(
    root: Path, tag: str, derive: Callable[..., None], containers: Callable[[], list[Container]]
) -> None:
    derive(tag, "ENTRYPOINT []", 'CMD ["bash"]', script="rm -f /bin/sh /usr/bin/sh")
    text = failure(f"docker://{tag}", root, UnreachableError)
    assert text.startswith(f"cannot start a container of image {tag}: ")
    assert text.endswith("hint: docker info")
    assert containers() == []


def test_an_image_that_is_nowhere_is_named_with_the_engine_s_words(root: Path, client: Client) -> None:
    image = "127.0.0.1:9/nothing:1"
    text = failure(f"docker://{image}", root, UnreachableError)
    assert text.startswith(f"cannot pull image {image}: ")
    assert "refused" in text
    assert text.endswith(f"hint: see what docker itself says: docker pull {image}")


def test_a_missing_extension_names_the_image(root: Path, base: str) -> None:
    with open_dev(f"docker://{base}", root=root) as server:
        error = server.extensions.missing("vector")
    assert str(error) == (
        f"extension vector is not available on PostgreSQL in image {base}\n"
        'hint: name an image that has it, such as dev = "docker://pgvector/pgvector:pg17" for vector'
    )


def test_build_and_check_run_on_a_container(root: Path, base: str) -> None:
    with open_dev(f"docker://{base}", root=root) as server:
        major = server.major
    project = Project(root, f"docker://{base}")
    project.write("pgsluice.toml", f'postgres = ["{major}", "{major}"]\n{SEQUENCE}')
    project.write("schema/app/t.sql", "create table t (n int not null);\n")
    project.ok("build", "first")
    project.write("schema/app/t.sql", "create table t (n int not null, m text);\n")
    project.ok("release")
    project.ok("build", "second")
    assert "add column" in project.newest().lower()
    assert f"in a container of {base}" in project.ok("check")
    assert project.ok("dev", "stop") == "stopped the development server\n"
