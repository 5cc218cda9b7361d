"""What was found before, by everything that the finding depends on: `.pgsluice/lint/cache.json`.

A cache and nothing else: it may be deleted at any time, a damaged one counts as empty, and of two runs at
once the later one's stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from pgsluice import __version__
from pgsluice.errors import InputError, Location
from pgsluice.pipeline.lint.model import Engine, LintFinding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

FOLDER: Final = "lint"
FILE: Final = "cache.json"
ENTRIES: Final = 5000


class LintCache:
    """Findings by key; without a root nothing is kept."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._old: dict[str, Any] = _read(root)
        self._used: dict[str, Any] = {}
        self._is_new = False

    def get(self, key: str) -> tuple[LintFinding, ...] | None:
        """What is known, or None."""
        entry = self._used.get(key, self._old.get(key))
        if entry is None:
            return None
        try:
            findings = tuple(map(_from_json, entry))
        except (TypeError, ValueError):  # damaged
            return None
        self._used[key] = entry
        return findings

    def put(self, key: str, findings: Iterable[LintFinding]) -> None:
        """Remember."""
        self._used[key] = [_to_json(finding) for finding in findings]
        self._is_new = True

    def save(self) -> None:
        """Write what is new, the entries of this run first; a folder that cannot be written is left alone."""
        if self._root is None or not self._is_new:
            return
        rest = [(key, entry) for key, entry in self._old.items() if key not in self._used]
        kept = {**self._used, **dict(rest[: max(ENTRIES - len(self._used), 0)])}
        # the next run does the work again, which is all that is lost
        with contextlib.suppress(OSError, InputError):
            _write(self._root, json.dumps(kept, separators=(",", ":")))


def cache_key(parts: Sequence[str]) -> str:
    """One key for the versions of this program and of what it reads with, and everything else that counts."""
    digest = hashlib.sha256(_versions().encode())
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


@lru_cache
def _versions() -> str:
    return " ".join([__version__, version("pglast"), version("jinja2")])


def _read(root: Path | None) -> dict[str, Any]:
    if root is None:
        return {}
    from pgsluice.pipeline.publish import STATE_DIR

    try:
        table = json.loads((root / STATE_DIR / FOLDER / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _write(root: Path, text: str) -> None:
    from pgsluice.pipeline.publish import state_folder

    folder = state_folder(root) / FOLDER
    folder.mkdir(exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=folder, prefix=".cache-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, folder / FILE)
    except OSError:
        os.unlink(draft)
        raise


def _to_json(finding: LintFinding) -> list[object]:
    place = finding.location
    return [
        finding.engine,
        finding.rule,
        finding.severity,
        finding.message,
        place.file,
        place.line,
        place.column,
        finding.recipe,
        finding.end_line,
        finding.is_fixable,
    ]


def _from_json(values: list[Any]) -> LintFinding:
    engine, rule, severity, message, file, line, column, recipe, end_line, is_fixable = values
    return LintFinding(
        Engine(engine),
        rule,
        Severity(severity),
        message,
        Location(file, line, column),
        recipe,
        end_line,
        is_fixable,
    )
