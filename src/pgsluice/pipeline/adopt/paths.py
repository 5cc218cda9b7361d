"""Files named after objects: safe on every file system, and no two alike where case does not count."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pgsluice.pipeline.adopt.homes import Home

UNSAFE: Final = re.compile(r"[^\w.\-]")
# Device names of Windows, which no extension makes safe.
RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)
SUFFIX: Final = ".sql"


def file_paths(homes: Iterable[Home]) -> dict[Home, str]:
    """The file of each home, relative to the schema folder.

    With several PostgreSQL schemas each has a folder of its own; with one, its files lie at the top.
    """
    ordered = sorted(set(homes))
    several = len({home.schema for home in ordered if home.schema}) > 1
    taken: set[str] = set()
    paths: dict[Home, str] = {}
    for home in ordered:
        parts = [home.schema] if several and home.schema else []
        folders = [safe_name(part) for part in (*parts, home.folder) if part]
        stem = "/".join((*folders, safe_name(home.name)))
        paths[home] = _free(stem, taken)
    return paths


def safe_name(name: str) -> str:
    """A name as part of a path: letters, digits, `_`, `-` and dots that do not lead."""
    safe = UNSAFE.sub("_", unicodedata.normalize("NFC", name))
    if safe.startswith((".", "-")):
        safe = f"_{safe[1:]}"
    safe = safe.rstrip(".") or "_"
    return f"{safe}_" if RESERVED.match(safe) else safe


def _free(stem: str, taken: set[str]) -> str:
    """`stem.sql`, numbered where another file has that name but for case."""
    number, candidate = 1, stem
    while _folded(candidate) in taken:
        number += 1
        candidate = f"{stem}-{number}"
    taken.add(_folded(candidate))
    return f"{candidate}{SUFFIX}"


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()
