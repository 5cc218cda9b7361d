"""Comments by which a file allows what a rule forbids.

`-- pgsluice: allow drop-cascade` speaks for the statement below it, beside it or around it, and
`-- pgsluice: allow-file drop-cascade` for the whole file; several rules stand with commas between them, and a
reason may follow. It reads so in every file: migrations, templates and schema files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pgsluice.errors import Location
from pgsluice.pipeline.lint.rules import RULES, found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgsluice.pipeline.lint.model import LintFinding, LintText
    from pgsluice.pipeline.lint.script import Script

_COMMENT: Final = re.compile(
    r"--[ \t]*pgsluice:[ \t]*allow(?P<file>-file)?(?![\w-])"
    r"(?:[ \t:]+(?P<rules>[\w/-]+(?:[ \t]*,[ \t]*[\w/-]+)*))?"
)
_WORDS: Final = re.compile(r"[\w/-]+")
_NAMELESS: Final = ""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A rule that is allowed from a line to a line; the last is None for the whole file.

    The rule is empty where a comment names none.
    """

    rule: str
    first: int
    last: int | None

    def covers(self, finding: LintFinding) -> bool:
        """Whether it speaks of a finding."""
        if self.rule not in {finding.rule, finding.rule_id}:
            return False
        return self.last is None or self.first <= (finding.location.line or 1) <= self.last


def read_allowances(text: LintText, script: Script | None) -> tuple[Allowance, ...]:
    """What a file's comments allow; `script` is its statements where it has some."""
    if "pgsluice" not in text.text:
        return ()
    return tuple(
        Allowance(rule, *_lines(match, text, script))
        for match in _COMMENT.finditer(text.text)
        for rule in _WORDS.findall(match["rules"] or "") or [_NAMELESS]
    )


def apply_allowances(
    findings: Iterable[LintFinding], allowances: Sequence[Allowance]
) -> tuple[LintFinding, ...]:
    """The findings that nothing allows."""
    return tuple(one for one in findings if not any(allowed.covers(one) for allowed in allowances))


def unknown_rules(text: LintText, allowances: Iterable[Allowance]) -> Iterator[LintFinding]:
    """Names that are nearly a rule's, and none at all: they allow nothing."""
    for allowance in allowances:
        if allowance.rule == _NAMELESS:
            yield found(
                "unknown-rule",
                "the comment allows no rule, because it names none",
                Location(text.name, allowance.first),
                recipe="-- pgsluice: allow drop-cascade: the reason",
            )
            continue
        near = get_close_matches(allowance.rule, RULES, n=1, cutoff=0.75)
        if near and near[0] != allowance.rule:
            yield found(
                "unknown-rule",
                f"no rule is called {allowance.rule}, did you mean {near[0]}?",
                Location(text.name, allowance.first),
            )


def _lines(match: re.Match[str], text: LintText, script: Script | None) -> tuple[int, int | None]:
    line = text.line_of(match.start())
    if match["file"]:
        return line, None
    for statement in script.statements if script is not None else ():
        first, last = text.line_of(statement.start), text.line_of(max(statement.end - 1, statement.start))
        if last == line and statement.end <= match.start():
            return first, last
        if statement.end > match.start():
            return min(first, line), max(last, line)
    return line, line + 1
