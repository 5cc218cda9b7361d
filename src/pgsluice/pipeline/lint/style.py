"""sqlfluff over schema files, templates and the hand-written parts of migrations, here or in processes."""

from __future__ import annotations

import gc
import os
from bisect import bisect_right
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import Location
from pgsluice.pipeline.digest import TokenKind, tokens
from pgsluice.pipeline.lint.model import Engine, FileKind, LintFinding, LintText, Severity
from pgsluice.pipeline.lint.rules import found
from pgsluice.pipeline.lint.sqlfluff_config import NOT_FIXED, load_config, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pgsluice.pipeline.digest import Token
    from pgsluice.pipeline.lint.model import LintFile
    from pgsluice.pipeline.lint.templates import OpenTemplate

PROCESSES: Final = 4
WORTH_CHARS: Final = 20_000
FIX: Final = "pgsluice lint --fix"
LENGTH: Final = "LT05"
RECIPES: Final = {LENGTH: "break the line", "AM04": "name the columns"}
OF_PIECES: Final = frozenset({"CP05", "LT01"})
GAPS: Final = frozenset({"PRS", "LXR"})


@dataclass(frozen=True, slots=True)
class StyleJob:
    """One text for sqlfluff; `template` is set where Jinja comes first, `left_out` are rules not used."""

    file: LintFile
    text: str
    root: Path | None
    template: OpenTemplate | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Styled:
    """What sqlfluff said; `text` is the rewritten text, where that was asked for and it changed something."""

    name: str
    findings: tuple[LintFinding, ...]
    text: str | None = None


def check_style(jobs: Sequence[StyleJob], *, fix: bool = False) -> Iterator[Styled]:
    """Lint texts; several processes share the work where it is worth their start.

    Raises:
        InputError: sqlfluff refuses a configuration.
    """
    size = sum(len(job.text) for job in jobs)
    workers = min(os.cpu_count() or 1, PROCESSES, len(jobs))
    if workers < 2 or size < WORTH_CHARS:
        for job in jobs:
            yield check_one(job, fix=fix)
        return
    largest_first = sorted(jobs, key=lambda job: -len(job.text))
    with ProcessPoolExecutor(workers, get_context("spawn"), _collect_less) as pool:
        for pending in [pool.submit(check_one, job, fix=fix) for job in largest_first]:
            yield pending.result()


def _collect_less() -> None:
    """Run the collector seldom: sqlfluff's trees live as long as their file, and it costs an eighth."""
    gc.set_threshold(100_000, 50, 1000)


def check_one(job: StyleJob, *, fix: bool = False) -> Styled:
    """Lint one text; with `fix` also rewrite it."""
    linter = _linter(job, for_fix=fix)
    try:
        linted = linter.lint_string(job.text, fname=job.file.name, fix=fix, config=linter.config)
    except RecursionError:  # sqlfluff's parser is recursive, PostgreSQL's takes what nests deeper
        return Styled(job.file.name, (_gap(Location(job.file.name, 1, 1)),))
    violations = linted.get_violations(filter_ignore=True, filter_warning=False)
    findings = tuple(_finding(violation, job) for violation in violations)
    if job.template is not None:
        findings = tuple(_without_tags(findings, job.text))
    else:
        findings = tuple(_without_pieces(findings, job.text))
    if not fix:
        return Styled(job.file.name, findings)
    text, is_changed = linted.fix_string()
    return Styled(job.file.name, findings, text if is_changed else None)


def _linter(job: StyleJob, *, for_fix: bool) -> Any:  # Any: sqlfluff's linter, typed loosely
    from sqlfluff.core import Linter
    from sqlfluff.core.errors import SQLFluffUserError

    left_out = (*job.left_out, *NOT_FIXED) if for_fix else job.left_out
    config = load_config(job.file.path.parent, job.file.kind, job.root, left_out=left_out)
    try:
        linter = Linter(config=config)
        linter.get_rulepack(config=config)
    except (SQLFluffUserError, ValueError) as exc:
        raise refused(exc) from exc
    if job.template is not None:
        from pgsluice.pipeline.lint.templater import MigrationTemplater

        linter.templater = MigrationTemplater(job.template)
    return linter


def _gap(location: Location) -> LintFinding:
    return found("sqlfluff-cannot-parse", "sqlfluff cannot parse this, PostgreSQL can", location)


def _without_tags(findings: Sequence[LintFinding], text: str) -> Iterator[LintFinding]:
    """Without complaints about the length of lines that hold Jinja: the calls of macros are no SQL."""
    from pgsluice.pipeline.lint.templater import is_jinja

    places = LintText("", text)
    for finding in findings:
        if finding.rule != LENGTH or not is_jinja(text, places.offset(finding.location.line or 1)):
            yield finding


def _without_pieces(findings: Sequence[LintFinding], text: str) -> Iterator[LintFinding]:
    """Without complaints about pieces of one word of PostgreSQL's: the signs of `===`, the N of `N''`."""
    if not any(finding.rule in OF_PIECES for finding in findings):
        yield from findings
        return
    places = LintText("", text)
    words = [token for token in tokens(text) if token.kind is TokenKind.OTHER]
    starts = [word.start for word in words]
    for finding in findings:
        position = places.offset(finding.location.line or 1, finding.location.column or 1)
        number = bisect_right(starts, position) - 1
        if finding.rule not in OF_PIECES or number < 0 or not _is_piece(words[number], position):
            yield finding


def _is_piece(word: Token, position: int) -> bool:
    """Whether a place is inside of a word, or is where a string begins, which is no type."""
    if position >= word.start + len(word.text):
        return False
    return position > word.start or word.text.endswith("'")


def _finding(violation: Any, job: StyleJob) -> LintFinding:  # Any: sqlfluff's violations
    code = str(violation.rule_code())
    location = Location(job.file.name, violation.line_no, violation.line_pos)
    if code in GAPS:
        return _gap(location)
    message = " ".join(str(violation.desc()).split()).rstrip(".")
    if code == "TMP":
        return found("template-error", message, location)
    is_fixable = bool(violation.fixable) and code not in NOT_FIXED and job.file.kind is not FileKind.MIGRATION
    return LintFinding(
        engine=Engine.SQLFLUFF,
        rule=code,
        severity=Severity.WARNING if violation.warning else Severity.ERROR,
        message=message[:1].lower() + message[1:],
        location=location,
        recipe=FIX if is_fixable else RECIPES.get(code, ""),
        is_fixable=is_fixable,
    )
