"""Digests of what a file's findings depend on besides its own text."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.checksum import list_sql
from pgsluice.pipeline.digest import schema_files
from pgsluice.pipeline.lint.model import FileKind
from pgsluice.pipeline.lockfile import TEMPLATE_SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.lint.model import LintFile

TEMPLATES: Final = "templates"
ASKING: Final = (b"public", b"alter")


class Surroundings:
    """Computes each folder's digests once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before: dict[Path, dict[str, str]] = {}
        self._whole: dict[Path, str] = {}

    def key(self, file: LintFile, data: bytes) -> str:
        """The earlier migrations; all templates; the schema, of which grants and alterations may speak."""
        if file.kind is FileKind.MIGRATION:
            return self._migrations(file.path.parent).get(file.path.name, "")
        if file.kind is FileKind.TEMPLATE:
            folders = [self._root / TEMPLATES]
            if file.target is not None:
                folders.append(file.target.templates_dir)
            return "".join(self._folder(folder, f"**/*{TEMPLATE_SUFFIX}") for folder in folders)
        if file.target is not None and any(word in data.lower() for word in ASKING):
            return self._schema(file.target.schema_dir)
        return ""

    def _migrations(self, folder: Path) -> dict[str, str]:
        """For each migration the digest of those before it."""
        if folder not in self._before:
            running = hashlib.sha256()
            digests: dict[str, str] = {}
            for name in list_sql(folder):
                digests[name] = running.hexdigest()
                running.update(os.fsencode(name) + b"\0")
                running.update(hashlib.sha256((folder / name).read_bytes()).digest())
            self._before[folder] = digests
        return self._before[folder]

    def _schema(self, folder: Path) -> str:
        if folder not in self._whole:
            digest = hashlib.sha256()
            for name, path in schema_files(folder):
                digest.update(os.fsencode(name) + b"\0" + hashlib.sha256(path.read_bytes()).digest())
            self._whole[folder] = digest.hexdigest()
        return self._whole[folder]

    def _folder(self, folder: Path, pattern: str) -> str:
        if folder not in self._whole:
            digest = hashlib.sha256()
            for path in sorted(folder.glob(pattern)):
                digest.update(os.fsencode(path) + b"\0" + hashlib.sha256(path.read_bytes()).digest())
            self._whole[folder] = digest.hexdigest()
        return self._whole[folder]
