"""What is asked of an adoption, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgsluice.pipeline.adopt.secrets import LeftOut

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user asks for: the database, and what of it becomes which target."""

    url: str
    target: str = "app"
    schemas: tuple[str, ...] = ("*",)
    ignore: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    dev: str = "embedded"
    postgres: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an adoption makes.

    `files` are contents by path relative to the project; `server` is what the proof ran on; `place` names the
    database without a password.
    """

    files: dict[str, bytes]
    migration: str
    runner: str
    server: str
    place: str
    objects: int
    requires: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
