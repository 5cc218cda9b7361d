"""The layout of adopted files: what `lint --fix` would do, so that a new project starts without findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pgsluice.pipeline.digest import schema_digest
from pgsluice.pipeline.lint.fix import plan_fixes
from pgsluice.pipeline.lint.model import FileKind, LintFile

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.config import Target
    from pgsluice.pipeline.lockfile import Lock


def lay_out(target: Target, *, root: Path) -> None:
    """Rewrite the schema files where that changes nothing but looks; the others stay as they are."""
    files = [
        LintFile(path, path.relative_to(root).as_posix(), FileKind.SCHEMA, target)
        for path in sorted(target.schema_dir.rglob("*.sql"))
    ]
    for path, content in plan_fixes(files, root=root, config_root=None).files.items():
        path.write_bytes(content)


def with_layout(lock: Lock, target: Target) -> Lock:
    """The lock of the same schema as it is spelled now."""
    digest = schema_digest(target.schema_dir)
    return replace(lock, schema=digest, made=digest if lock.made else "")
