"""All engines over a set of files: each file read and parsed once, each engine started at most once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgsluice.pipeline.history import is_transactional
from pgsluice.pipeline.lint.allow import Allowance, apply_allowances, read_allowances, unknown_rules
from pgsluice.pipeline.lint.choose import earlier_migrations, other_schema_files
from pgsluice.pipeline.lint.false_alarms import without_false_alarms
from pgsluice.pipeline.lint.hand_written import hand_written
from pgsluice.pipeline.lint.hazards import Context, check_hazards
from pgsluice.pipeline.lint.model import FileKind, LintFile, LintFinding, LintText
from pgsluice.pipeline.lint.rules import found
from pgsluice.pipeline.lint.script import Script, decode, read_script
from pgsluice.pipeline.lint.squawk import SquawkConfig, run_squawk
from pgsluice.pipeline.lint.style import StyleJob, check_style
from pgsluice.pipeline.lint.templates import check_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(slots=True)
class _Reading:
    """A file on its way through the engines."""

    file: LintFile
    text: str
    context: Context | None = None
    job: StyleJob | None = None
    findings: list[LintFinding] = field(default_factory=list)
    allowances: tuple[Allowance, ...] = ()

    @property
    def is_for_squawk(self) -> bool:
        """Whether it is a migration that PostgreSQL can read."""
        return self.file.kind is FileKind.MIGRATION and self.context is not None


@dataclass(frozen=True, slots=True)
class Engines:
    """`root` is what templates are found in; `config_root` where settings of the project's may lie."""

    root: Path
    config_root: Path | None
    squawk: SquawkConfig

    def lint(self, files: Sequence[LintFile]) -> Iterator[tuple[LintFile, tuple[LintFinding, ...]]]:
        """The findings of each file, without those that its comments allow."""
        readings = [self.read(file) for file in files]
        by_name = {reading.file.name: reading for reading in readings}
        jobs = [reading.job for reading in readings if reading.job is not None]
        self._run_squawk(readings)
        for styled in check_style(jobs):
            by_name[styled.name].findings += styled.findings
        for reading in readings:
            yield reading.file, apply_allowances(reading.findings, reading.allowances)

    def read(self, file: LintFile) -> _Reading:
        """Parse one file and look for hazards; prepares what sqlfluff gets."""
        text = decode(file.path.read_bytes(), file.name)
        if isinstance(text, LintFinding):
            return _Reading(file, "", findings=[text])
        reading = _Reading(file, text)
        if file.kind is FileKind.TEMPLATE:
            self._read_template(reading)
        else:
            self._read_sql(reading)
        return reading

    def _read_template(self, reading: _Reading) -> None:
        file, text = reading.file, LintText(reading.file.name, reading.text)
        reading.allowances = read_allowances(text, None)
        template, _, problems = check_template(file, self.root)
        reading.findings += [*problems, *unknown_rules(text, reading.allowances)]
        if not problems:
            reading.job = StyleJob(file, reading.text, self.config_root, template)

    def _read_sql(self, reading: _Reading) -> None:
        file, text = reading.file, reading.text
        script = read_script(file.name, text, transactional=is_transactional(text))
        reading.allowances = read_allowances(script.file, script)
        reading.findings += [*script.problems, *unknown_rules(script.file, reading.allowances)]
        if file.kind is FileKind.MIGRATION and "\r" in text:
            place = script.file.location(text.index("\r"))
            reading.findings.append(found("carriage-return", "the file has carriage returns", place))
        if not script.is_valid:
            return
        others = earlier_migrations if file.kind is FileKind.MIGRATION else other_schema_files
        reading.context = Context(file.kind, script, lambda: others(file))
        reading.findings += check_hazards(reading.context)
        written = script.sql if file.kind is FileKind.SCHEMA else _to_style(script, file)
        if written.strip():
            reading.job = StyleJob(file, written, self.config_root)

    def _run_squawk(self, readings: Sequence[_Reading]) -> None:
        chosen = [
            reading
            for reading in readings
            if reading.is_for_squawk and not self.squawk.leaves_out(reading.file.name)
        ]
        scripts = [reading.context.script for reading in chosen if reading.context is not None]
        results = run_squawk(scripts, self.squawk)
        for reading in chosen:
            assert reading.context is not None
            reading.findings += without_false_alarms(results[reading.file.name], reading.context)


def _to_style(script: Script, file: LintFile) -> str:
    """What of a migration sqlfluff reads: nothing of one that can change no more."""
    return "" if file.is_closed else hand_written(script)
