"""An engine of tests without Docker: answers what it is told, so that its refusals can be provoked."""

from __future__ import annotations

import json
import re
import socketserver
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VERSION = re.compile(r"^/v[0-9.]+")
ALIVE: dict[str, tuple[int, Any]] = {"GET /version": (200, {"ApiVersion": "1.41"})}  # Any: JSON


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Listens on a socket in a file."""

    daemon_threads = True
    answers: Mapping[str, tuple[int, Any]]  # Any: JSON, or lines to stream


class Handler(BaseHTTPRequestHandler):
    """Answers `METHOD /path` without the version and the query."""

    server: Server
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """Send what the test said; an engine knows nothing else."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = VERSION.sub("", self.path.split("?")[0])
        unknown = (404, {"message": f"no such path: {path}"})
        status, body = self.server.answers.get(f"{self.command} {path}", unknown)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        if isinstance(body, bytes):
            self.send_header("Transfer-Encoding", "chunked")
            sent = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*sent.splitlines(True), b""))
        else:
            self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 - names of the base class

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def engine(socket: Path, answers: Mapping[str, tuple[int, Any]]) -> Iterator[str]:  # Any: JSON
    """Its address, for DOCKER_HOST."""
    with Server(str(socket), Handler) as server:
        server.answers = {**ALIVE, **answers}
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"unix://{socket}"
        finally:
            server.shutdown()
            thread.join()
            socket.unlink()
