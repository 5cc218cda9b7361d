"""One run over all chosen files: what is not in the cache goes to each engine once, together."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.lint.cache import LintCache, cache_key
from pgsluice.pipeline.lint.model import FileKind, LintFile, LintFinding, LintReport, Severity
from pgsluice.pipeline.lint.sqlfluff_config import config_key
from pgsluice.pipeline.lint.squawk import SquawkConfig, squawk_config
from pgsluice.pipeline.lint.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

LOWEST_POSTGRES: Final = 15


@dataclass(frozen=True, slots=True)
class Linting:
    """What a run needs to know.

    `root` is what names are relative to; without a project no settings are looked for in it and nothing is
    cached. `postgres` is the lowest major version; `allowed` are rules that are left out.
    """

    root: Path
    has_project: bool = True
    postgres: int = LOWEST_POSTGRES
    allowed: frozenset[str] = frozenset()

    @property
    def config_root(self) -> Path | None:
        """Where settings and the cache are, if anywhere."""
        return self.root if self.has_project else None

    def run(self, files: Sequence[LintFile], *, outside: tuple[str, ...] = ()) -> LintReport:
        """Lint the files.

        Raises:
            InputError: A setting of sqlfluff's or squawk's is wrong, or a file cannot be read.
        """
        cache = LintCache(self.config_root)
        squawk = squawk_config(self.config_root, postgres=self.postgres)
        surroundings = Surroundings(self.root)
        found: list[tuple[LintFile, LintFinding]] = []
        unknown: dict[LintFile, str] = {}
        for file in files:
            data = _read(file)
            key = cache_key([*self._settings(file, squawk), surroundings.key(file, data), _digest(data)])
            known = cache.get(key)
            if known is None:
                unknown[file] = key
            else:
                found += [(file, finding) for finding in known]
        if unknown:
            # the parser and the engines are imported where the cache does not know it all
            from pgsluice.pipeline.lint.engines import Engines

            for file, findings in Engines(self.root, self.config_root, squawk).lint(tuple(unknown)):
                cache.put(unknown[file], findings)
                found += [(file, finding) for finding in findings]
            cache.save()
        return self._report(files, found, outside=outside)

    def _settings(self, file: LintFile, squawk: SquawkConfig) -> tuple[str, ...]:
        """What a file's findings depend on besides texts."""
        settings = (file.name, file.kind, config_key(file.path.parent, file.kind, self.config_root))
        if file.kind is FileKind.MIGRATION:
            return (*settings, squawk.key, str(squawk.leaves_out(file.name)), str(file.is_closed))
        if file.target is not None:
            return (*settings, file.target.name, *file.target.lock_order)
        return settings

    def _report(
        self,
        files: Sequence[LintFile],
        found: Iterable[tuple[LintFile, LintFinding]],
        *,
        outside: tuple[str, ...],
    ) -> LintReport:
        kept = [
            (file, finding) for file, finding in found if not {finding.rule, finding.rule_id} & self.allowed
        ]
        opened = [finding for file, finding in kept if not file.is_closed]
        closed = [replace(finding, severity=Severity.NOTE) for file, finding in kept if file.is_closed]
        return LintReport(
            files=tuple(files),
            findings=tuple(sorted(opened, key=lambda finding: finding.order)),
            closed=tuple(sorted(closed, key=lambda finding: finding.order)),
            outside=outside,
        )


def _read(file: LintFile) -> bytes:
    try:
        return file.path.read_bytes()
    except OSError as exc:
        raise InputError(f"cannot read: {exc.strerror}", location=Location(file.name)) from exc


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
