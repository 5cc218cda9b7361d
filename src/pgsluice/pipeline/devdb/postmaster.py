"""Reads the file in which a PostgreSQL server tells its process id and state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def postmaster_pid(data_dir: Path) -> int | None:
    """The process id of the server on this data folder, or None before it has written it."""
    lines = _lines(data_dir)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def is_ready(data_dir: Path) -> bool:
    """Whether the server accepts connections."""
    lines = _lines(data_dir)
    return len(lines) >= 8 and lines[7].strip() == "ready"


def _lines(data_dir: Path) -> list[str]:
    try:
        return (data_dir / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
