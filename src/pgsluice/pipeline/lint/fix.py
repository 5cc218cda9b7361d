"""`--fix`: sqlfluff's rewriting of schema files and templates, taken only where it changes nothing but looks.

A rewritten schema file must have the parse tree of the old one, every comment, and each directive beside the
same words. A rewritten template must print that, and keep its Jinja tags. Else the file stays.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.digest import BrokenTextError, TokenKind, tokens
from pgsluice.pipeline.lint.model import FileKind, LintFile, LintFinding
from pgsluice.pipeline.lint.script import decode, read_script
from pgsluice.pipeline.lint.style import StyleJob, check_style
from pgsluice.pipeline.lint.templates import check_template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SPACING: Final = ("LT01",)
CHANGED_MEANING: Final = "what sqlfluff made of it means something else"
CHANGED_SPACING: Final = (
    "with the spaces that sqlfluff wants it means something else, so those are yours to set"
)

_BOUND: Final = frozenset({TokenKind.ALLOWANCE, TokenKind.DIRECTIVE})
"""Comments that speak of what they stand beside."""
_PLACES: Final = ("location", "list_start", "list_end", "stmt_len")
_TAGS: Final = re.compile(r"\{[%{#].*?[%}#]\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fixed:
    """New contents by path, what they replace, and the files that were left with the reason."""

    files: dict[Path, bytes]
    before: dict[Path, bytes]
    left: tuple[tuple[str, str], ...]


def plan_fixes(files: Sequence[LintFile], *, root: Path, config_root: Path | None) -> Fixed:
    """What `--fix` would write; nothing is written here.

    Raises:
        InputError: sqlfluff refuses a configuration.
    """
    jobs: dict[str, StyleJob] = {}
    before: dict[Path, bytes] = {}
    left: list[tuple[str, str]] = []
    for file in files:
        if file.kind is FileKind.MIGRATION:
            continue
        data = file.path.read_bytes()
        job = _job(file, data, root=root, config_root=config_root)
        if job is not None:
            jobs[file.name] = job
            before[file.path] = data
    rewritten, changed = _rewrite(jobs, root=root)
    if changed:
        # such as an operator's signs, between which sqlfluff puts spaces
        without = {name: replace(jobs[name], left_out=SPACING) for name in changed}
        more, again = _rewrite(without, root=root)
        rewritten |= more
        left += [(name, CHANGED_MEANING if name in again else CHANGED_SPACING) for name in changed]
    kept = {path: data for path, data in before.items() if path in rewritten}
    return Fixed(rewritten, kept, tuple(sorted(left)))


def _rewrite(jobs: Mapping[str, StyleJob], *, root: Path) -> tuple[dict[Path, bytes], list[str]]:
    """New contents by path, and the names of the files that would mean something else."""
    rewritten: dict[Path, bytes] = {}
    changed: list[str] = []
    for styled in check_style(tuple(jobs.values()), fix=True):
        job = jobs[styled.name]
        if styled.text is None or styled.text == job.text:
            continue
        if _means_the_same(job, styled.text, root=root):
            rewritten[job.file.path] = styled.text.encode()
        else:
            changed.append(styled.name)
    return rewritten, changed


def _job(file: LintFile, data: bytes, *, root: Path, config_root: Path | None) -> StyleJob | None:
    """What sqlfluff gets; None for a file with errors, which are reported elsewhere, and for a blank one."""
    text = decode(data, file.name)
    if isinstance(text, LintFinding) or "\r" in text or not text.strip():
        return None
    if file.kind is FileKind.TEMPLATE:
        template, _, problems = check_template(file, root)
        return StyleJob(file, text, config_root, template) if not problems else None
    script = read_script(file.name, text)
    return StyleJob(file, text, config_root) if script.is_valid and not script.problems else None


def _means_the_same(job: StyleJob, text: str, *, root: Path) -> bool:
    if job.file.kind is FileKind.SCHEMA:
        return same_sql(job.text, text)
    if _TAGS.findall(job.text) != _TAGS.findall(text):
        return False
    return _same_template(job, text, root=root)


def _same_template(job: StyleJob, text: str, *, root: Path) -> bool:
    """Whether both texts print SQL of the same meaning; the new one is read without being written."""
    from pgsluice.pipeline.lint.templates import print_text

    try:
        return same_sql(print_text(job.file, job.text, root=root), print_text(job.file, text, root=root))
    except InputError:
        return False


def same_sql(before: str, after: str) -> bool:
    """Whether two texts have one parse tree, the same comments, and directives beside the same words."""
    one, other = read_script("before", before), read_script("after", after)
    if not one.is_valid or not other.is_valid:
        return False
    trees = [
        [(statement.kind, without_places(statement.node)) for statement in script.statements]
        for script in (one, other)
    ]
    return trees[0] == trees[1] and _comments(before) == _comments(after)


def without_places(value: Any) -> Any:  # Any: JSON
    """A tree without the offsets of its parts."""
    if isinstance(value, dict):
        return {key: without_places(item) for key, item in value.items() if not key.endswith(_PLACES)}
    if isinstance(value, list):
        return [without_places(item) for item in value]
    return value


def _comments(text: str) -> tuple[Counter[str], list[tuple[str, str, str, bool]]] | None:
    """The comments, and for each directive the words beside it and whether it ends a line of code."""
    try:
        found = list(tokens(text))
    except BrokenTextError:
        return None
    comments = Counter(
        re.sub(r"\s+", " ", token.text) for token in found if token.kind is not TokenKind.OTHER
    )
    directives = []
    for number, token in enumerate(found):
        if token.kind in _BOUND:
            before = next((one for one in reversed(found[:number]) if one.kind is TokenKind.OTHER), None)
            after = next((one for one in found[number:] if one.kind is TokenKind.OTHER), None)
            is_behind = before is not None and "\n" not in text[before.start : token.start]
            directives.append(
                (
                    token.text,
                    before.text.lower() if before else "",
                    after.text.lower() if after else "",
                    is_behind,
                )
            )
    return comments, directives
