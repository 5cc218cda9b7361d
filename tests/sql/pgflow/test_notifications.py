"""Events as listeners of the channel get them: the identity alone, once it is committed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import psycopg

from .engine import Step, claim, complete, define, events, install_realtime, start

if TYPE_CHECKING:
    from .engine import Conn

LISTEN: Final = "listen pgflow_events"
END: Final = "the end"
LIMIT_S: Final = 30.0


def listen(conninfo: str) -> Conn:
    """A connection that hears of events."""
    conn = psycopg.connect(conninfo, autocommit=True)
    conn.execute(LISTEN)
    return conn


def heard(listener: Conn, conn: Conn) -> list[dict[str, Any]]:
    """All that the listener was told until now."""
    conn.execute("select pg_notify('pgflow_events', %s)", [END])
    conn.commit()
    told: list[dict[str, Any]] = []
    for notification in listener.notifies(timeout=LIMIT_S):
        assert notification.channel == "pgflow_events"
        if notification.payload == END:
            return told
        told.append(json.loads(notification.payload))
    raise AssertionError(f"no notification came within {LIMIT_S:g} s")


def test_listeners_hear_the_identity_of_what_was_committed(database: str) -> None:
    with psycopg.connect(database) as conn, listen(database) as listener:
        define(conn, "f", "a", Step("b", ["a"]))
        run = start(conn, "f", {"secret": 1})
        assert list(listener.notifies(timeout=0)) == []
        root = {"run_id": str(run)}
        first = {**root, "event_type": "step:started", "step_slug": "a"}
        assert heard(listener, conn) == [{**root, "event_type": "run:started"}, first]
        complete(conn, claim(conn, "f")[0], {"secret": 2})
        conn.rollback()
        assert heard(listener, conn) == []
        complete(conn, claim(conn, "f")[0], {"secret": 2})
        assert heard(listener, conn) == [
            {**root, "event_type": "step:completed", "step_slug": "a"},
            {**root, "event_type": "step:started", "step_slug": "b"},
        ]


def test_payloads_beyond_a_notification_and_the_longest_names_pass(database: str) -> None:
    flow, step = "f" * 47, "s" * 128
    value = ["x" * 1000] * 5000
    with psycopg.connect(database) as conn, listen(database) as listener:
        install_realtime(conn)
        define(conn, flow, step)
        run = start(conn, flow, value)
        complete(conn, claim(conn, flow)[0], value)
        told = [(event["event_type"], event.get("step_slug")) for event in heard(listener, conn)]
        assert told == [
            ("run:started", None),
            ("step:started", step),
            ("step:completed", step),
            ("run:completed", None),
        ]
        sent = events(conn, run)
        assert sent[0]["payload"]["input"] == sent[2]["payload"]["output"] == value
        assert sent[3]["payload"]["output"] == {step: value}
