"""Connections to a database that others use: reached with patience, with settings that nobody else chose."""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_exponential, wait_random

from pgsluice.errors import InputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import psycopg
    from tenacity import RetryCallState

DATABASE_VARIABLE: Final = "PGSLUICE_DATABASE"
APPLICATION: Final = "pgsluice"
CONNECT_S: Final = 30.0
ATTEMPT_S: Final = 10
FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 4.0
REFUSED_AGAIN: Final = 2
"""How often a server that is up is asked again: it may just have come up, or have no connection to spare."""
PLACE: Final = ("dbname", "host", "hostaddr", "port", "service", "sslmode", "user")
EXAMPLE_URL: Final = "postgresql://deploy@db.example.com/app"
BARE_NAME: Final = re.compile(r"[\w-]+")

# What roles, databases and the environment may have set otherwise; the proof of a migration ran under these.
SETTINGS: Final[Mapping[str, str]] = {
    "search_path": '"$user", public',
    "array_nulls": "on",
    "backslash_quote": "safe_encoding",
    "bytea_output": "hex",
    "check_function_bodies": "on",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "intervalstyle": "postgres",
    "lock_timeout": "0",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
    "transaction_timeout": "0",
    "transform_null_equals": "off",
    "xmlbinary": "base64",
    "xmloption": "content",
}
PIN_SETTINGS: Final = """
select pg_catalog.set_config(given.name, given.value, false)
from rows from (
  pg_catalog.unnest(%(names)s::text[]), pg_catalog.unnest(%(values)s::text[])
) as given (name, value)
join pg_catalog.pg_settings as known on pg_catalog.lower(known.name) = given.name
"""
RESET_SETTINGS: Final = "reset all"
BACKEND_PID: Final = "select pg_catalog.pg_backend_pid()"
READ_ONLY: Final = """
select
  pg_catalog.pg_is_in_recovery(),
  pg_catalog.current_setting('default_transaction_read_only')::boolean,
  pg_catalog.current_setting('session_replication_role')
"""
KEEPALIVES: Final[Mapping[str, str]] = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}


def _silent(_message: str) -> None:
    """Drop progress messages."""


def database_url(given: str | None, *, option: str = "--database ") -> str:
    """The database that a command works on.

    Args:
        given: A URL or libpq's words.
        option: What stands before it on the command line, for hints.

    Raises:
        InputError: None was named, or it is not what libpq understands.
    """
    if not given:
        raise InputError(
            f"no database is named: give --database, or set {DATABASE_VARIABLE}",
            hint=f"--database {EXAMPLE_URL}",
        )
    _parts(given, option=option)
    return given


def shown(url: str) -> str:
    """A database as messages name it: database, place and user, never a password."""
    parts = _parts(url)
    service = f" of service {parts['service']}" if "service" in parts else ""
    place = parts.get("host") or parts.get("hostaddr") or ("" if service else "the local socket")
    port = f":{parts['port']}" if "port" in parts else ""
    user = f" as {parts['user']}" if "user" in parts else ""
    where = f" at {place}{port}" if place else ""
    return f"{parts.get('dbname') or 'the default database'}{where}{service}{user}"


@contextmanager
def open_database(
    url: str, *, progress: Callable[[str], None] = _silent, application_name: str = APPLICATION
) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit mode; its settings are `SETTINGS`, whatever role and database say.

    A server that starts up, is about to stop or does not answer is asked again, for as long as the URL's
    `connect_timeout` says, or half a minute.

    Args:
        url: A URL, or libpq's `key=value` words.
        progress: Called with a line of text before each pause.
        application_name: As others see it in `pg_stat_activity`; one in the URL wins.

    Raises:
        InputError: The URL is not valid.
        UnreachableError: There is no connection; with what libpq said.
    """
    conn = connect(url, progress=progress, application_name=application_name)
    try:
        with losses_told(conn, url):
            yield conn
    finally:
        close(conn)


@contextmanager
def losses_told(conn: psycopg.Connection[Any], url: str) -> Iterator[None]:
    """Say that the connection is gone when the block fails for that.

    Raises:
        UnreachableError: The server or the network ended the session.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as exc:
        if not conn.closed:
            raise
        lines = tuple(line.strip() for line in str(exc).strip().splitlines() if line.strip())
        raise UnreachableError(
            f"the connection to {shown(url)} was lost", details=lines, hint="run the command again"
        ) from exc


def connect(
    url: str,
    *,
    progress: Callable[[str], None] = _silent,
    application_name: str = APPLICATION,
    within_s: float | None = None,
) -> psycopg.Connection[Any]:
    """What `open_database` opens, to be closed by the caller; `within_s` overrides the URL's patience."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    given = _parts(url)
    patience = within_s if within_s is not None else float(given.get("connect_timeout") or 0) or CONNECT_S
    attempt_s = max(2, min(ATTEMPT_S, round(patience)))
    parts = {"application_name": application_name, **KEEPALIVES, **given}
    conninfo = make_conninfo(**{**parts, "client_encoding": "UTF8", "connect_timeout": str(attempt_s)})
    refusals = 0

    def may_pass(exc: BaseException) -> bool:
        nonlocal refusals
        reason = _reason(exc, conninfo)
        refusals += reason is _Reason.REFUSED
        return reason is _Reason.AWAY or (reason is _Reason.REFUSED and refusals <= REFUSED_AGAIN)

    def say(state: RetryCallState) -> None:
        pause_s = state.next_action.sleep if state.next_action is not None else 0.0
        progress(f"{shown(url)} does not answer; trying again in {pause_s:.1f} s")

    retrying = Retrying(
        retry=retry_if_exception(may_pass),
        stop=stop_before_delay(patience),
        wait=wait_exponential(FIRST_PAUSE_S, max=LONGEST_PAUSE_S) + wait_random(0, FIRST_PAUSE_S),
        before_sleep=say,
        reraise=True,
    )
    try:
        return retrying(_connect_once, conninfo)
    except psycopg.OperationalError as exc:
        raise unreachable(url, exc) from exc


def close(conn: psycopg.Connection[Any]) -> None:
    """End a connection; a session that a pooler hands on to others is given back as it was."""
    import psycopg
    from psycopg.pq import TransactionStatus

    with suppress(psycopg.Error):  # a session that is gone has nothing to give back
        if conn.info.transaction_status is TransactionStatus.IDLE and is_pooled(conn):
            conn.execute(RESET_SETTINGS)
    conn.close()


def backend_pid(conn: psycopg.Connection[Any]) -> int:
    """The process that answers, which behind a pooler is not the one that the connection was greeted by."""
    row = conn.execute(BACKEND_PID).fetchone()
    assert row is not None
    return int(row[0])


def is_pooled(conn: psycopg.Connection[Any]) -> bool:
    """Whether a pooler answers instead of the server."""
    return backend_pid(conn) != conn.info.backend_pid


def require_writable(conn: psycopg.Connection[Any], url: str) -> None:
    """Refuse a standby, and a database or role whose transactions are read-only or fire no triggers.

    Raises:
        UnreachableError: Nothing can be written, or not as it should be; says why.
    """
    row = conn.execute(READ_ONLY).fetchone()
    assert row is not None
    is_standby, is_read_only, replication_role = row
    if is_standby:
        raise UnreachableError(
            f"{shown(url)} is a standby: nothing can be written there",
            hint="name the primary; with several hosts in the URL: target_session_attrs=read-write",
        )
    if is_read_only:
        raise UnreachableError(
            f"{shown(url)} is read-only: default_transaction_read_only is on",
            hint=f"alter database {quoted_name(conn)} reset default_transaction_read_only;"
            " it may also be set for the role, or in postgresql.conf",
        )
    if replication_role != "origin":
        raise UnreachableError(
            f"{shown(url)} checks no foreign keys: session_replication_role is {replication_role}",
            hint=f"alter database {quoted_name(conn)} reset session_replication_role;"
            " it may also be set for the role, or in postgresql.conf",
        )


def quoted_name(conn: psycopg.Connection[Any]) -> str:
    """The database's own name, as SQL spells it."""
    from psycopg import sql

    return sql.Identifier(conn.info.dbname).as_string(conn)


def unreachable(url: str, exc: psycopg.Error) -> UnreachableError:
    """The error for a database that cannot be reached, with what libpq said and a command that tells more."""
    lines = tuple(line.strip() for line in str(exc).strip().splitlines() if line.strip())
    parts = {key: value for key, value in _parts(url).items() if key in {"host", "port", "dbname", "user"}}
    words = " ".join(f"{key}={value}" for key, value in parts.items())
    return UnreachableError(
        f"cannot connect to {shown(url)}",
        details=lines,
        hint=f"psql {shlex.quote(words)} --command 'select 1'",
    )


def words(url: str) -> str:
    """The database as libpq's words for `psql`: place, name and user, never a password."""
    from psycopg.conninfo import make_conninfo

    parts = _parts(url)
    return make_conninfo("", **{key: parts[key] for key in PLACE if key in parts})


def _connect_once(conninfo: str) -> psycopg.Connection[Any]:
    import psycopg

    conn: psycopg.Connection[Any] = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
    try:
        conn.execute(PIN_SETTINGS, {"names": list(SETTINGS), "values": list(SETTINGS.values())})
    except BaseException:
        conn.close()
        raise
    return conn


class _Reason(Enum):
    """Why an attempt failed: the server is away, it refused us, or what we said is wrong."""

    AWAY = auto()
    REFUSED = auto()
    NOT_US = auto()


def _reason(exc: BaseException, conninfo: str) -> _Reason:
    """Asks the server whether it accepts connections: libpq gives no code for a failed one."""
    import psycopg
    from psycopg.pq import PGconn, Ping

    if not isinstance(exc, psycopg.OperationalError):
        return _Reason.NOT_US
    if exc.pgconn is not None and (exc.pgconn.used_password or exc.pgconn.needs_password):
        return _Reason.NOT_US
    match Ping(PGconn.ping(conninfo.encode())):
        case Ping.OK:
            return _Reason.REFUSED
        case Ping.NO_ATTEMPT:
            return _Reason.NOT_US
        case _:
            return _Reason.AWAY


def _parts(url: str, *, option: str = "--database ") -> dict[str, str]:
    """The parts of a URL or of libpq's words."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        parts = {"host": "@@"}  # the driver's message, and its traceback, may hold parts of the password
    # so may host and port, when a password is not escaped
    ports = [port for port in parts.get("port", "").split(",") if port]
    if "@" in parts.get("host", "")[1:] or not all(port.isdecimal() for port in ports):
        raise InputError("the database's URL is not valid", hint=f"{option}{_valid(url)}")
    return parts


def _valid(url: str) -> str:
    """What may have been meant: a name alone is a database here."""
    if BARE_NAME.fullmatch(url):
        return f"postgresql:///{url}, if that is the name of a database here"
    return f"{EXAMPLE_URL}; in a password @ is written %40, / is %2F, : is %3A"
