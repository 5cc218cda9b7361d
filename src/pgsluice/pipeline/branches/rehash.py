"""Record a migrations folder in `atlas.sum` as it is, and say what that changes.

What was recorded before is never overwritten in silence: an edit, a removal, another name or a place before
a recorded migration has to be agreed to by name.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location, RefusedError
from pgsluice.pipeline.branches.conflict import split_conflict
from pgsluice.pipeline.branches.git import find_repository
from pgsluice.pipeline.branches.judge import Change, FileChange, judge
from pgsluice.pipeline.branches.sides import locks_here, present_migrations
from pgsluice.pipeline.checksum import SUM_NAME, SumFormatError, compute_sum, list_sql, parse_sum
from pgsluice.pipeline.finding import TargetFiles, quoted
from pgsluice.pipeline.history import order_history
from pgsluice.pipeline.publish import publish_files
from pgsluice.pipeline.sum_check import order_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pgsluice.config import Project, Target
    from pgsluice.pipeline.checksum import SumFile

MOST: Final = 20
HARMLESS: Final = frozenset({Change.NEW})
REASONS: Final[Mapping[Change, str]] = {
    Change.EDITED: "it was edited",
    Change.REMOVED: "it was removed",
    Change.RENAMED: "it had another name",
    Change.IN_FRONT: "it is new and comes before a recorded one",
    Change.UNKNOWN: "an earlier one changed, so nothing tells whether this one did",
}
BOTH_WAYS: Final = re.compile(
    rb"^--\s*(\+goose Down|\+migrate Down|migrate:down|Down Migration)\b", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that is no error and must be known, with what to do about it."""

    text: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Rehashed:
    """What `atlas.sum` records now, or would record when it was not written.

    `sum` is its path and `then` the next command; paths are relative to the project, `changes` name files.
    """

    target: str
    sum: str
    count: int
    changes: tuple[FileChange, ...]
    warnings: tuple[Warned, ...]
    differs: bool
    written: bool
    then: str


@dataclass(frozen=True, slots=True)
class _Record:
    """What was recorded: no side where nothing was, two in a merge conflict; `note` says where it is from."""

    sides: tuple[SumFile, ...]
    note: str | None = None


def rehash_target(
    project: Project, target: Target, *, accept: Sequence[str] = (), check: bool = False
) -> Rehashed:
    """Write the `atlas.sum` of a folder, exactly as Atlas does, or only compare.

    Args:
        accept: Names of migrations, or patterns such as `0007_*`, whose change after they were recorded is
            agreed to.
        check: Compare only.

    Raises:
        InputError: A file's name has no version, a file has other line ends than it was recorded with, or
            the old record cannot be read.
        RefusedError: A recorded migration changed and that was not agreed to.
    """
    files, folder = TargetFiles(project, target), target.migrations_dir
    path = folder / SUM_NAME
    before = path.read_bytes() if path.exists() else None
    present = present_migrations(target)
    order_history(folder / name for name in present)
    committed = _committed(project, target)
    record = _read_record(files, before, committed)
    changes = _judge(record, target, present, committed=committed)
    _refuse_line_ends(files, changes)
    if not check:
        committed_so = [name for name, content in present.items() if committed.get(name) == content]
        _refuse_changes(files, changes, accept=accept, committed=committed_so)
        _refuse_interleaved(files, record, accept=accept)
    recorded = compute_sum(folder)
    rendered = recorded.render()
    warnings = (*_record_warnings(files, record), *_file_warnings(files, present, changes))
    differs = rendered != before
    if differs and not check:
        seen = {folder / name: content for name, content in present.items()}
        publish_files(project.root, {path: rendered}, expect={path: before, **seen})
    return Rehashed(
        target.name,
        files.path(SUM_NAME),
        len(present),
        changes,
        warnings,
        differs=differs,
        written=differs and not check,
        then=files.command(_next_command(target, recorded.total)),
    )


def _next_command(target: Target, total: str) -> str:
    """What comes after: a folder that was not proved needs a build, a lock in conflict a rebase."""
    sides = locks_here(target)
    if len(sides) > 1:
        return "rebase"
    return "verify" if [side.history for side in sides] == [total] else "build"


def _committed(project: Project, target: Target) -> Mapping[str, bytes]:
    """The folder as the last commit has it; nothing where there is none."""
    repository = find_repository(project.root)
    if repository is None or repository.commit("HEAD") is None:
        return {}
    return repository.read_folder("HEAD", target.migrations_dir)


def _read_record(files: TargetFiles, content: bytes | None, committed: Mapping[str, bytes]) -> _Record:
    """The old `atlas.sum`, or where it is of no use the one of the last commit."""
    path = files.folder / SUM_NAME
    if content is not None:
        try:
            sides = split_conflict(os.fsdecode(content))
            return _Record(tuple(parse_sum(side, path=path) for side in sides))
        except SumFormatError as exc:
            if SUM_NAME not in committed:
                raise InputError(
                    f"the old record cannot be read: {exc.message}",
                    location=Location(files.path(SUM_NAME), exc.location.line if exc.location else None),
                    details=("so nothing tells whether a migration was edited since",),
                    hint=f"rm {quoted(files.path(SUM_NAME))} && {files.command('rehash')}",
                ) from exc
    if SUM_NAME not in committed:
        return _Record(())
    what = "was missing" if content is None else "could not be read"
    note = f"{files.path(SUM_NAME)} {what}: compared with the one of the last commit"
    return _Record((parse_sum(os.fsdecode(committed[SUM_NAME]), path=path),), note)


def _judge(
    record: _Record, target: Target, present: Mapping[str, bytes], *, committed: Mapping[str, bytes]
) -> tuple[FileChange, ...]:
    """What changed against the record; in a conflict, what changed against both of its sides."""
    ignored = [name for name in list_sql(target.migrations_dir) if name not in present]
    entries = [side.entries for side in record.sides] or [()]
    judged = [judge(one, present, ignored=ignored, committed=committed) for one in entries]
    recorded = [{entry.name for entry in one} for one in entries]
    told = [{one.name: one for one in changes} for changes in judged]
    found: dict[str, FileChange] = {}
    for name in {name for side in told for name in side}:
        knowing = [place for place, names in enumerate(recorded) if name in names]
        if any(name not in told[place] for place in knowing):
            continue
        says = [side[name] for side in told if name in side]
        found[name] = max(says, key=lambda one: (one.change is not Change.NEW, one.old is not None))
    return tuple(found[name] for name in sorted(found, key=os.fsencode))


def _refuse_line_ends(files: TargetFiles, changes: Sequence[FileChange]) -> None:
    paths = [files.path(one.name) for one in changes if one.change is Change.LINE_ENDS]
    if paths:
        raise InputError(
            "the migration has other line ends than it was recorded with",
            location=Location(paths[0]),
            details=(
                *(f"{path} too" for path in paths[1:MOST]),
                "git's core.autocrlf is the usual cause, .gitattributes the cure: *.sql text eol=lf",
            ),
            hint=f"sed -i 's/\\r$//' {' '.join(map(quoted, paths[:MOST]))}",
        )


def _refuse_changes(
    files: TargetFiles, changes: Sequence[FileChange], *, accept: Sequence[str], committed: Sequence[str]
) -> None:
    wrong = [one for one in changes if one.change not in HARMLESS and not _is_accepted(one, accept)]
    if not wrong:
        return
    first = wrong[0]
    names = " ".join(f"--accept {quoted(one.name)}" for one in wrong[:MOST])
    raise RefusedError(
        f"the migration is not what {SUM_NAME} recorded: {_reason(first)}",
        location=Location(files.path(first.name)),
        details=(
            *(f"{files.path(one.name)} neither: {_reason(one)}" for one in wrong[1:MOST]),
            *((f"and {len(wrong) - MOST} more",) if len(wrong) > MOST else ()),
            "databases that ran a migration keep what it did then, and apply refuses what changed",
            _way_back(files, first, is_committed=first.name in committed),
        ),
        hint=f"{files.command('rehash')} {names}, if no database that you keep has run it",
    )


def _reason(change: FileChange) -> str:
    """Why a file is not what was recorded."""
    return f"it was called {change.old}" if change.old is not None else REASONS[change.change]


def _way_back(files: TargetFiles, change: FileChange, *, is_committed: bool) -> str:
    path = quoted(files.path(change.name))
    if change.change is Change.IN_FRONT:
        return f"to put it after the others: {files.command('rebase')} {path}"
    if change.old is not None:
        return f"to undo it: mv {path} {quoted(files.path(change.old))}"
    if is_committed:
        return f"the last commit has it so, to see who changed it: git log -p -- {path}"
    return f"to undo it: git checkout -- {path}"


def _is_accepted(change: FileChange, accept: Sequence[str]) -> bool:
    names = [name for name in (change.name, change.old) if name is not None]
    return any(fnmatchcase(name, os.path.basename(pattern)) for name in names for pattern in accept)


def _refuse_interleaved(files: TargetFiles, record: _Record, *, accept: Sequence[str]) -> None:
    """Two branches' migrations that run in turns are in nobody's order."""
    if len(record.sides) < 2:
        return
    upper, lower = _exclusive(record)
    if not upper or not lower or upper[-1] < lower[0] or lower[-1] < upper[0]:
        return
    late = sorted(name for name in upper if name < lower[-1])
    if all(_is_accepted(FileChange(os.fsdecode(name), Change.IN_FRONT), accept) for name in late):
        return
    raise RefusedError(
        "two branches met, and their migrations run in turns",
        location=Location(files.path(SUM_NAME)),
        details=(
            f"one side recorded {', '.join(map(os.fsdecode, upper[:5]))}",
            f"the other side recorded {', '.join(map(os.fsdecode, lower[:5]))}",
        ),
        hint=files.command("rebase"),
    )


def _exclusive(record: _Record) -> tuple[list[bytes], list[bytes]]:
    """What only one side recorded, for each side in order."""
    upper, lower = ({os.fsencode(entry.name) for entry in side.entries} for side in record.sides[:2])
    return sorted(upper - lower), sorted(lower - upper)


def _record_warnings(files: TargetFiles, record: _Record) -> Iterator[Warned]:
    if record.note is not None:
        yield Warned(record.note)
    if any(not side.is_consistent() for side in record.sides):
        yield Warned(f"{files.path(SUM_NAME)} was edited: its total was not the one of its lines")
    if len(record.sides) == 2:
        upper, lower = _exclusive(record)
        if upper and lower:
            first, second = sorted((upper, lower))
            yield Warned(
                f"two branches met: {os.fsdecode(second[0])} runs after {os.fsdecode(first[-1])}",
                f"if it is the other way round in a database that you keep: {files.command('rebase')}",
            )


def _file_warnings(
    files: TargetFiles, present: Mapping[str, bytes], changes: Sequence[FileChange]
) -> Iterator[Warned]:
    for one in order_warnings(files):
        yield Warned("\n  ".join((one.message, *one.details)), one.hint)
    for change in changes:
        if change.change is not Change.NEW:
            if change.change is not Change.LINE_ENDS:
                yield Warned(f"{files.path(change.name)} is not what {SUM_NAME} recorded: {_reason(change)}")
            continue
        content = present[change.name]
        if b"\r" in content:
            yield Warned(
                f"CR found in {files.path(change.name)}: git may change its line ends, and with them its sum",
                f"sed -i 's/\\r$//' {quoted(files.path(change.name))}",
            )
        if both := BOTH_WAYS.search(content):
            yield Warned(
                f"{files.path(change.name)} holds the way back too, after -- {both[1].decode()}: "
                "the whole file would run",
                "keep the part that goes forward",
            )
