"""Connections to a server's maintenance database."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import psycopg
from psycopg.conninfo import make_conninfo

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.devdb.folders import STORAGE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Row: TypeAlias = tuple[object, ...]

# What a role, a database or the environment may have set otherwise, and what shapes printed definitions.
SESSION_SETTINGS: Final = {
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "search_path": '"$user", public',
    "client_min_messages": "notice",
    "check_function_bodies": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_text_search_config": "pg_catalog.english",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "jit": "off",
}
ADVISORY_LOCK: Final = "select pg_advisory_lock(%s)"
END_SESSIONS: Final = (
    "select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity"
    " where datname = %s and backend_type = 'client backend'"
)
LEAVE_TIMEOUT_S: Final = 2.0
LEAVE_PAUSE_S: Final = 0.002
HINTS_BY_SQLSTATE: Final = {
    "53100": f"free some space, or export {STORAGE_VARIABLE}=disk and run: pgsluice dev stop",
    "53300": "other commands use up the connections of the dev server; wait for them to end",
    "42501": "give the role the right to create databases: alter role <name> createdb",
}


def session_options() -> str:
    """The settings above as libpq's `options`."""
    escaped = {
        name: value.replace("\\", "\\\\").replace(" ", "\\ ") for name, value in SESSION_SETTINGS.items()
    }
    return " ".join(f"-c {name}={value}" for name, value in escaped.items())


def unreachable(exc: psycopg.Error, what: str) -> UnreachableError:
    """The error for a server that refuses or does not answer."""
    lines = str(exc).strip().splitlines() or [type(exc).__name__]
    hint = HINTS_BY_SQLSTATE.get(
        exc.sqlstate or "", "run the command again; if that does not help: pgsluice dev stop"
    )
    return UnreachableError(f"{what}: {lines[0]}", details=tuple(lines[1:]), hint=hint)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn what the driver raises in the `with` block into an `UnreachableError` that begins with `what`."""
    try:
        yield
    except psycopg.Error as exc:
        raise unreachable(exc, what) from exc


def end_sessions(connection: psycopg.Connection[Row], dbname: str) -> None:
    """End every session of a database, and wait for the processes of closed ones to be gone.

    The server itself would do so as well, but looks only ten times a second.
    """
    deadline = time.monotonic() + LEAVE_TIMEOUT_S
    while connection.execute(END_SESSIONS, [dbname]).rowcount and time.monotonic() < deadline:
        time.sleep(LEAVE_PAUSE_S)


class Admin:
    """Connections of one use of one server.

    `control` stays open for as long as the server is used: its session advisory locks tell other processes
    what is alive. `nonce` is the lock that stands for this use itself.
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = dict(parameters)
        self.nonce: Final = secrets.randbits(62)
        self._idle: list[psycopg.Connection[Row]] = []
        self._lock = threading.Lock()
        self.control: Final = self._connect()
        try:
            self.control.execute(ADVISORY_LOCK, [self.nonce])
        except BaseException:
            self.control.close()
            raise

    @property
    def version_num(self) -> int:
        """The server's version, such as 180003."""
        return self.control.info.server_version

    def conninfo(self, dbname: str) -> str:
        """A complete connection string for a database of this server."""
        return make_conninfo(**{**self._parameters, "dbname": dbname})

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Row]]:
        """An autocommit connection for the `with` block, other than `control`; reused afterwards."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                if not connection.closed:
                    self._idle.append(connection)

    def close(self) -> None:
        """Close every connection, and with them let go all locks."""
        with self._lock:
            for connection in (*self._idle, self.control):
                connection.close()
            self._idle.clear()

    def _connect(self) -> psycopg.Connection[Row]:
        return psycopg.connect(self.conninfo(self._parameters["dbname"]), autocommit=True)
