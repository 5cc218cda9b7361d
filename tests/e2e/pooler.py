"""A pooler in transaction mode, as small as can be: each transaction gets another session."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, suppress
from itertools import cycle
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

SESSIONS: Final = 2
ENDS_BATCH: Final = (b"Q", b"S")
TIMEOUT_S: Final = 30.0


class TransactionPooler:
    """Listens on a port of this machine while the `with` block runs, before a server's socket."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        """The database through the pooler."""
        port = self._listener.getsockname()[1]
        return f"host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable gssencmode=disable"

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, ExitStack() as stack, suppress(ConnectionError):
            self._pass_on(client, stack)

    def _pass_on(self, client: socket.socket, stack: ExitStack) -> None:
        size = _read(client, 4)
        startup = size + _read(client, int.from_bytes(size) - 4)
        sessions = []
        for number in range(SESSIONS):
            session = stack.enter_context(socket.socket(socket.AF_UNIX))
            session.settimeout(TIMEOUT_S)
            session.connect(str(self._server))
            session.sendall(startup)
            _relay(session, client if number == 0 else None)
            sessions.append(session)
        turns = cycle(sessions)
        session = next(turns)
        while True:
            kind, message = _message(client)
            session.sendall(message)
            if kind in ENDS_BATCH and _relay(session, client) == b"I":
                session = next(turns)


def _relay(session: socket.socket, client: socket.socket | None) -> bytes:
    """Pass on what the server says until it is ready; gives the state of its transaction."""
    while True:
        kind, message = _message(session)
        if client is not None:
            client.sendall(message)
        if kind == b"Z":
            return message[-1:]


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _read(source, 5)
    return head[:1], head + _read(source, int.from_bytes(head[1:]) - 4)


def _read(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data
