"""Keeps the caller's PG* variables away from dev databases."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# libpq sends these to the server, whatever the connection string says.
SHAPES_SESSIONS: Final = frozenset(
    {"PGTZ", "PGDATESTYLE", "PGGEQO", "PGOPTIONS", "PGCLIENTENCODING", "PGAPPNAME"}
)

_lock: Final = threading.Lock()
_scopes: Final[list[dict[str, str]]] = []


def shapes_sessions(name: str) -> bool:
    """Whether libpq turns this variable into a session setting."""
    return name in SHAPES_SESSIONS


def is_libpq_variable(name: str) -> bool:
    """Whether libpq may read this variable: PGHOST, PGSERVICE, PGSSLMODE, PGCONNECT_TIMEOUT and so on."""
    return name == "PGCONNECT_TIMEOUT" or (name.startswith("PG") and "_" not in name)


@contextmanager
def hidden_variables(is_hidden: Callable[[str], bool]) -> Iterator[None]:
    """Take the variables that `is_hidden` accepts out of this process's environment, and put them back.

    A connection string cannot override PGTZ or PGSERVICE; only their absence can. Uses may overlap: one that
    ends before a younger one leaves it to that to put things back.
    """
    hidden: dict[str, str] = {}
    with _lock:
        _scopes.append(hidden)
        for name in [name for name in os.environ if is_hidden(name)]:
            hidden[name] = os.environ.pop(name)
    try:
        yield
    finally:
        with _lock:
            place = next(index for index, scope in enumerate(_scopes) if scope is hidden)
            del _scopes[place]
            heir = _scopes[place] if place < len(_scopes) else os.environ
            for name, value in hidden.items():
                heir.setdefault(name, value)
