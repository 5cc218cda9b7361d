"""What `verify` finds, and how it names a target's files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pgsluice.errors import Location
from pgsluice.pipeline.checksum import SUFFIX
from pgsluice.pipeline.history import split_stem
from pgsluice.pipeline.lockfile import TEMPLATE_SUFFIX

if TYPE_CHECKING:
    from pgsluice.config import Project, Target
    from pgsluice.errors import InputError


class FindingCode(StrEnum):
    """What `verify` can find."""

    EDITED = "edited"
    ADDED = "added"
    REMOVED = "removed"
    REORDERED = "reordered"
    OUT_OF_ORDER = "out-of-order"
    CONFLICT_MARKERS = "conflict-markers"
    MISSING_SUM = "missing-sum"
    SUM_FORMAT = "sum-format"
    SUM_TAMPERED = "sum-tampered"
    CR_FOUND = "cr-found"
    NUMBER_ORDER = "number-order"
    MISSING_LOCK = "missing-lock"
    STALE_HISTORY = "stale-history"
    STALE_SCHEMA = "stale-schema"
    STALE_TEMPLATE = "stale-template"
    TEMPLATE_WITHOUT_MIGRATION = "template-without-migration"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `message` names the file, `hint` is a command to paste."""

    code: FindingCode
    message: str
    location: Location
    hint: str
    details: tuple[str, ...] = ()


class TargetFiles:
    """A target's folders as messages and hints show them."""

    def __init__(self, project: Project, target: Target) -> None:
        self.project = project
        self.target = target
        self.folder = target.migrations_dir
        self.build = self.command("build")

    def command(self, name: str) -> str:
        """A command of pgsluice's for this target."""
        return f"pgsluice {name}" + (f" --target {self.target.name}" if len(self.project.targets) > 1 else "")

    def path(self, name: str) -> str:
        """A file of the migrations folder, relative to the root."""
        return self.project.relative(self.folder / name)

    def template(self, name: str) -> str:
        """A file of the templates folder, relative to the root."""
        return self.project.relative(self.target.templates_dir / name)

    def template_of(self, migration: str) -> str:
        """The template that holds the hand-written SQL of a migration's file."""
        return self.template(migration_name(migration) + TEMPLATE_SUFFIX)

    def checkout(self, path: str) -> str:
        """The command that takes a file back to what git has."""
        return f"git checkout -- {quoted(path)}"

    def conflict(self, name: str, exc: InputError) -> Finding:
        """Conflict markers in `atlas.sum` or the lock."""
        place = Location(self.path(name), exc.location.line if exc.location else None)
        return Finding(
            FindingCode.CONFLICT_MARKERS,
            f"{place} holds a merge conflict",
            place,
            self.command("rebase"),
            ("two branches added migrations: yours come after the ones that are already shared",),
        )


def migration_name(filename: str) -> str:
    """A migration's name, also of a file without a version."""
    return split_stem(filename.removesuffix(SUFFIX))[1]


def quoted(path: str) -> str:
    """A path as a shell takes it."""
    return path if re.fullmatch(r"[\w@%+=:,./-]+", path) else "'" + path.replace("'", "'\"'\"'") + "'"
