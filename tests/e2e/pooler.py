"""A pooler in transaction mode, as small as can be: each transaction gets the next free session."""

from __future__ import annotations

import queue
import socket
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

SESSIONS: Final = 2
ENDS_BATCH: Final = (b"Q", b"S")
ENDS_CLIENT: Final = b"X"
TIMEOUT_S: Final = 30.0
OWN_PID: Final = (1).to_bytes(4)

Sessions = queue.Queue[socket.socket]


class TransactionPooler:
    """Listens on a port of this machine while the `with` block runs, before a server's socket.

    Which session is the next one is the queue's choice: first in, first out changes it each time; last in,
    first out keeps to one while only one client is busy, as PgBouncer does.
    """

    def __init__(self, server: Path, sessions: Sessions) -> None:
        self._server = server
        self._free = sessions
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stack = ExitStack()
        self._starting = threading.Lock()
        self._greeting = b""

    @property
    def url(self) -> str:
        """The database through the pooler."""
        port = self._listener.getsockname()[1]
        return (
            f"host=127.0.0.1 port={port} user=pgsluice_dev dbname=postgres sslmode=disable gssencmode=disable"
        )

    def __enter__(self) -> Self:
        self._stack.enter_context(self._listener)
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _listen(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(ConnectionError):
            size = _read(client, 4)
            startup = size + _read(client, int.from_bytes(size) - 4)
            with self._starting:
                if not self._greeting:
                    self._open_sessions(startup)
            client.sendall(self._greeting)
            while (start := _message(client))[0] != ENDS_CLIENT:
                self._pass_on(client, *start)

    def _open_sessions(self, startup: bytes) -> None:
        for _ in range(SESSIONS):
            session = self._stack.enter_context(socket.socket(socket.AF_UNIX))
            session.settimeout(TIMEOUT_S)
            session.connect(str(self._server))
            session.sendall(startup)
            self._greeting = b"".join(_answers(session))
            self._free.put(session)
        at = self._greeting.index(b"K\0\0\0") + 5
        self._greeting = self._greeting[:at] + OWN_PID + self._greeting[at + 4 :]

    def _pass_on(self, client: socket.socket, kind: bytes, message: bytes) -> None:
        """One transaction, on one session, which is free again before the client has its last answer."""
        session = self._free.get(timeout=TIMEOUT_S)
        with ExitStack() as stack:
            stack.callback(self._free.put, session)
            while True:
                session.sendall(message)
                if kind in ENDS_BATCH:
                    answers = _answers(session)
                    if answers[-1][-1:] == b"I":
                        stack.close()
                        client.sendall(b"".join(answers))
                        return
                    client.sendall(b"".join(answers))
                kind, message = _message(client)


def _answers(session: socket.socket) -> list[bytes]:
    """What the server says until it is ready; the last byte is the state of its transaction."""
    answers = list[bytes]()
    while not answers or answers[-1][:1] != b"Z":
        answers.append(_message(session)[1])
    return answers


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
