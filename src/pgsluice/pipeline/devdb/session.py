"""Opens and stops dev servers."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb.binaries import find_binaries
from pgsluice.pipeline.devdb.environment import hidden_variables, is_libpq_variable, shapes_sessions
from pgsluice.pipeline.devdb.launcher import ServerUse, live_state, stop_servers, use_server
from pgsluice.pipeline.devdb.server import DevServer
from pgsluice.pipeline.devdb.spec import DockerSpec, EmbeddedSpec, LocalSpec, Spec, UrlSpec, parse_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgsluice.pipeline.devdb.admin import Admin
    from pgsluice.pipeline.devdb.folders import ServerFolder

OLDEST_VERSION_NUM: Final = 150000
CONNECT_TIMEOUT_S: Final = 10.0
CONNECT_PAUSE_S: Final = 0.02
RIGHTS: Final = (
    "select rolname::text, rolcreatedb or rolsuper, pg_catalog.pg_is_in_recovery()"
    " from pg_catalog.pg_roles where rolname = current_user"
)


def _silent(_message: str) -> None:
    """Drop progress messages."""


@contextmanager
def open_dev(spec: str, *, root: Path, progress: Callable[[str], None] = _silent) -> Iterator[DevServer]:
    """Use the dev server of a project, starting it when it does not run.

    In the `with` block the PG* variables of this process's environment are put aside: they would reach every
    session.

    Args:
        spec: `embedded`, `local:<folder with postgres and initdb>`, `docker://<image>`, or a `postgresql://`
            URL.
        root: The project's root folder; the server stops when it disappears.
        progress: Called with a line of text before anything that may take a second.

    Raises:
        InputError: The specification is wrong, or not installed here.
        UnreachableError: The server cannot be started or reached, or refuses the right to create databases.
    """
    parsed = parse_spec(spec, root)
    with ExitStack() as stack:
        if isinstance(parsed, UrlSpec):
            stack.enter_context(hidden_variables(shapes_sessions))
            admin = _connect_url(parsed)
        else:
            stack.enter_context(hidden_variables(is_libpq_variable))
            use, admin = _connect_own(parsed, root, progress=progress)
            stack.callback(use.end)
        stack.callback(admin.close)
        yield stack.enter_context(_served(admin, parsed))


def stop_dev(root: Path) -> bool:
    """Stop the project's own servers, and remove their data; a server behind a URL is left alone.

    Returns:
        Whether any was running.

    Raises:
        UnreachableError: One of them does not stop.
    """
    from pgsluice.pipeline.devdb.docker_server import stop_containers

    stopped = stop_servers(root)
    return stop_containers(root) or stopped


@contextmanager
def _served(admin: Admin, spec: Spec) -> Iterator[DevServer]:
    import psycopg

    from pgsluice.pipeline.devdb.admin import translated
    from pgsluice.pipeline.devdb.extensions import Extensions
    from pgsluice.pipeline.devdb.scratch import ScratchDatabases
    from pgsluice.pipeline.devdb.templates import TemplateCache

    scratch = ScratchDatabases(admin)
    with translated("cannot use the dev server"):
        role = _check_rights(admin)
        scratch.drop_dead()
    templates = TemplateCache(admin, scratch, role)
    yield DevServer(
        admin.version_num,
        _describe(admin, spec),
        Extensions(admin, spec),
        templates,
        scratch,
        find_binaries(spec).bin_dir if isinstance(spec, EmbeddedSpec | LocalSpec) else None,
    )
    # Book-keeping alone, which the next use makes up for: no reason to fail a command that has succeeded.
    with suppress(psycopg.Error, UnreachableError):
        scratch.drop_dead()
        templates.finish()


def _check_rights(admin: Admin) -> str:
    """The name of our role on the server, which may create databases."""
    version = admin.version_num
    if version < OLDEST_VERSION_NUM:
        raise InputError(
            f"the dev server is PostgreSQL {version // 10000}; 15 is the oldest that works",
            hint='dev = "embedded"',
        )
    row = admin.control.execute(RIGHTS).fetchone()
    assert row is not None
    role, may_create, is_replica = row
    if is_replica:
        raise UnreachableError("the dev server is a read-only replica", hint="name its primary in dev = ...")
    if not may_create:
        raise UnreachableError(
            f"role {role} of the dev server may not create databases",
            hint=f'have a superuser run: alter role "{role}" createdb',
        )
    return str(role)


def _describe(admin: Admin, spec: Spec) -> str:
    version = admin.control.info.parameter_status("server_version") or str(admin.version_num)
    match spec:
        case EmbeddedSpec():
            return f"embedded PostgreSQL {version}"
        case LocalSpec():
            return f"PostgreSQL {version} of {spec.bin_dir}"
        case DockerSpec():
            return f"PostgreSQL {version} in a container of {spec.image}"
        case UrlSpec():
            return f"PostgreSQL {version} at {admin.control.info.host}:{admin.control.info.port}"


def _connect_own(
    spec: EmbeddedSpec | LocalSpec | DockerSpec, root: Path, *, progress: Callable[[str], None]
) -> tuple[ServerUse, Admin]:
    """Use a server that we start ourselves."""
    if isinstance(spec, DockerSpec):
        from pgsluice.pipeline.devdb.docker_server import use_container

        return use_container(spec, root, progress=progress)
    return _connect_local(spec, root, progress=progress)


def _connect_local(
    spec: EmbeddedSpec | LocalSpec, root: Path, *, progress: Callable[[str], None]
) -> tuple[ServerUse, Admin]:
    """Use the project's server and connect to it; one that is just dying is replaced."""
    import psycopg

    from pgsluice.pipeline.devdb.admin import unreachable

    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        use = use_server(spec, root, progress=progress)
        try:
            return use, _connect_socket(use.folder, deadline)
        except psycopg.OperationalError as exc:
            use.end()
            if time.monotonic() > deadline:
                raise unreachable(exc, "cannot connect to the dev server") from exc
        except BaseException:
            use.end()
            raise


def _connect_socket(folder: ServerFolder, deadline: float) -> Admin:
    """Connect to a server of ours, waiting while it recovers from a crash of one of its processes."""
    import psycopg

    from pgsluice.pipeline.devdb.admin import Admin, session_options
    from pgsluice.pipeline.devdb.cluster import SUPERUSER

    parameters = {
        "host": str(folder.socket_dir),
        "port": "5432",
        "user": SUPERUSER,
        "dbname": "postgres",
        "client_encoding": "UTF8",
        "application_name": "pgsluice",
        "options": session_options(),
    }
    while True:
        try:
            return Admin(parameters)
        except psycopg.OperationalError:
            if time.monotonic() > deadline or live_state(folder) is None:
                raise
        time.sleep(CONNECT_PAUSE_S)


def _connect_url(spec: UrlSpec) -> Admin:
    """Connect to the server behind a URL; its password appears in no message."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from pgsluice.pipeline.devdb.admin import Admin, session_options

    try:
        given = {key: str(value) for key, value in conninfo_to_dict(spec.url).items() if value is not None}
    except psycopg.Error as exc:
        raise InputError(
            "the dev URL is not valid",  # the driver's message may hold parts of the password
            hint='dev = "postgresql://user:password@host:5432/postgres", with %40 for an @ in the password',
        ) from exc
    parameters = {
        "connect_timeout": "10",
        "dbname": "postgres",
        "application_name": "pgsluice",
        **given,
        "client_encoding": "UTF8",
        "options": f"{given.get('options', '')} {session_options()}".strip(),
    }
    where = f"{given.get('host', 'local socket')}:{given.get('port', '5432')}"
    try:
        return Admin(parameters)
    except psycopg.OperationalError as exc:
        lines = str(exc).strip().splitlines()
        raise UnreachableError(
            f"cannot reach the dev server at {where}",
            details=tuple(lines),
            hint='start it, correct the URL, or use dev = "embedded"',
        ) from exc
