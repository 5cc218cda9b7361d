"""Files in which two branches met: both sides of one, and which are not settled yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.finding import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.branches.git import Repository

OURS: Final = "<<<<<<<"
BASE: Final = "|||||||"
BETWEEN: Final = "======="
THEIRS: Final = ">>>>>>>"
SETTLED_BY_HAND: Final = (".sql", ".j2")


def split_conflict(text: str) -> tuple[str, ...]:
    """The text as each side has it: one without markers, else git's two, the upper one first."""
    sides: tuple[list[str], list[str]] = ([], [])
    open_sides, found = [0, 1], False
    for line in text.splitlines(keepends=True):
        mark = line[:7]
        if mark == OURS:
            open_sides, found = [0], True
        elif mark == BASE and open_sides == [0]:
            open_sides = []
        elif mark == BETWEEN and open_sides != [0, 1]:
            open_sides = [1]
        elif mark == THEIRS and open_sides != [0, 1]:
            open_sides = [0, 1]
        else:
            for side in open_sides:
                sides[side].append(line)
    upper, lower = ("".join(side) for side in sides)
    return (upper, lower) if found else (text,)


def refuse_unsettled(project: Project, target: Target, repository: Repository | None) -> None:
    """Refuse to go on while files that people write are in conflict.

    Raises:
        InputError: A schema file, template or fixture holds markers, or git waits for a decision about it.
    """
    folders = written_folders(project, target)
    for path in (path for folder in folders for path in _written(folder)):
        _refuse_markers(project, path)
    if repository is None:
        return
    for name, stages in sorted(repository.unmerged(folders).items()):
        if len(stages) < 2:
            shown = quoted(project.relative(repository.top / name))
            raise InputError(
                "changed on one branch and removed on the other: git waits for your decision",
                location=Location(project.relative(repository.top / name)),
                hint=f"git add {shown}, or git rm {shown}",
            )


def written_folders(project: Project, target: Target) -> tuple[Path, ...]:
    """The folders of a target that people write."""
    return (target.schema_dir, target.templates_dir, project.root / "tests/upgrades" / target.name)


def _written(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SETTLED_BY_HAND and path.is_file():
            yield path


def _refuse_markers(project: Project, path: Path) -> None:
    """Only the outer markers count: a line of `=` may be the text's own."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line.startswith((f"{OURS} ".encode(), f"{THEIRS} ".encode())):
            raise InputError(
                "the file holds a merge conflict",
                location=Location(project.relative(path), number, None, line.decode(errors="replace")),
                hint="settle it in your editor, then run the command again",
            )
