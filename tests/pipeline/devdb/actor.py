"""A command of its own process, steered line by line: `python actor.py ACTION SPEC ROOT [DIGEST]`.

It prints JSON lines, and goes on when it reads a line.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psycopg

from pgsluice.pipeline.devdb import DevServer, open_dev, stop_dev


def say(**values: object) -> None:
    """Tell the test where we are."""
    print(json.dumps(values), flush=True)  # noqa: T201 - this is how it speaks


def wait() -> None:
    """Go on when the test says so."""
    if not sys.stdin.readline():
        os._exit(1)  # the test is gone


def started_at(server: DevServer) -> str:
    """When the server started, which tells servers apart."""
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        row = conn.execute("select pg_postmaster_start_time()::text").fetchone()
    assert row is not None
    return str(row[0])


def open_once(spec: str, root: Path) -> None:
    """Open and close."""
    say(at="loaded")
    wait()
    with open_dev(spec, root=root) as server:
        say(at="open", started_at=started_at(server), version_num=server.version_num)
        wait()


def stop(_spec: str, root: Path) -> None:
    """Stop the project's servers."""
    say(at="stopped", stopped=stop_dev(root))


def hold_scratch(spec: str, root: Path) -> None:
    """Keep a scratch database, with a session in it."""
    with (
        open_dev(spec, root=root) as server,
        server.clone(None) as conninfo,
        psycopg.connect(conninfo) as conn,
    ):
        say(at="scratch", name=conn.info.dbname, started_at=started_at_of(conn))
        wait()
        say(at="alive", answer=conn.execute("select 42").fetchone())
        wait()


def started_at_of(conn: psycopg.Connection[tuple[object, ...]]) -> str:
    """When the server of a connection started."""
    row = conn.execute("select pg_postmaster_start_time()::text").fetchone()
    assert row is not None
    return str(row[0])


def fill_template(spec: str, root: Path, digest: str) -> None:
    """Get a template; say when we are the one that fills it."""

    def fill(conninfo: str) -> None:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute("create table half (n int)")
            say(at="filling", name=conn.info.dbname)
            wait()
            conn.execute("create table whole (n int)")

    with open_dev(spec, root=root) as server:
        say(at="open")
        wait()
        say(at="done", name=server.template(digest, parent=None, fill=fill))


if __name__ == "__main__":
    action, spec, root, *rest = sys.argv[1:]
    actions = {"open": open_once, "hold": hold_scratch, "stop": stop}
    if action == "fill":
        fill_template(spec, Path(root), rest[0])
    else:
        actions[action](spec, Path(root))
