"""What `atlas.sum` says about a migrations folder, and why it does not fit when it does not."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import Location
from pgsluice.pipeline import checksum
from pgsluice.pipeline.checksum import SUM_NAME, SumFile
from pgsluice.pipeline.finding import Finding, FindingCode, TargetFiles, migration_name, quoted
from pgsluice.pipeline.history import Migration, out_of_number, pad_numbers, split_stem, suggest_name
from pgsluice.pipeline.lockfile import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_MOVES: Final = 5

_AUTOCRLF: Final = "it was recorded with LF; git's core.autocrlf is the usual cause, .gitattributes the cure"


def verify_sum(files: TargetFiles, *, opened: tuple[str, ...]) -> Iterator[Finding]:
    """What `atlas.sum` says about the folder."""
    place = Location(files.path(SUM_NAME))
    recorded = (files.folder / LOCK_NAME).exists()
    try:
        stored = checksum.read_sum(files.folder / SUM_NAME)
    except checksum.ConflictMarkersError as exc:
        yield files.conflict(SUM_NAME, exc)
        return
    except checksum.SumFormatError as exc:
        place = replace(place, line=exc.location.line if exc.location else None)
        yield Finding(
            FindingCode.SUM_FORMAT,
            f"{place} is not readable: {exc.message}",
            place,
            files.checkout(place.file),
        )
        return
    try:
        actual = checksum.compute_sum(files.folder)
    except checksum.CarriageReturnError as exc:
        yield _carriage_return(files, Path(exc.location.file if exc.location else "").name, exc.details[0])
        return
    if stored is None:
        if actual.entries:
            yield Finding(
                FindingCode.MISSING_SUM,
                f"{place} is missing, but there {_migrations(len(actual.entries))}",
                place,
                files.checkout(place.file) if recorded else files.command("rehash"),
            )
    elif not stored.is_consistent():
        yield Finding(
            FindingCode.SUM_TAMPERED,
            f"{place} was edited: its total on line 1 is not the total of its own lines",
            Location(place.file, 1),
            files.checkout(place.file),
        )
    elif stored != actual:
        yield from _explain(files, stored, actual=actual, opened=opened)


def order_warnings(files: TargetFiles) -> tuple[Finding, ...]:
    """Whether byte order runs migrations in another order than their numbers say."""
    history = _named(checksum.list_sql(files.folder), files)
    if out_of_number(history):
        listed = (one.filename for one in history if not checksum.is_ignored(one.path))
        history = _named(listed, files)
    wrong = out_of_number(history)
    if not wrong:
        return ()
    first, second = wrong[0]
    padded = pad_numbers(history)
    moves = [f"mv {quoted(files.path(old))} {quoted(files.path(new))}" for old, new in padded.items()]
    rest = (f"{len(wrong) - 1} more pairs of neighbours run so",) if len(wrong) > 1 else ()
    more = (f"{len(moves) - MOST_MOVES} more files need leading zeros",) if len(moves) > MOST_MOVES else ()
    return (
        Finding(
            FindingCode.NUMBER_ORDER,
            f"{files.path(first.filename)} runs before {second.filename}: the order is the one of bytes",
            Location(files.path(first.filename)),
            " && ".join((*moves[:MOST_MOVES], files.command("rehash"))),
            (*rest, *more, "rename only what no database has run under its present name"),
        ),
    )


def _named(names: Iterable[str], files: TargetFiles) -> list[Migration]:
    """Files by their names alone: what is wrong with one is told elsewhere."""
    return [Migration(*split_stem(name.removesuffix(checksum.SUFFIX)), files.folder / name) for name in names]


def _explain(
    files: TargetFiles, stored: SumFile, *, actual: SumFile, opened: tuple[str, ...]
) -> Iterator[Finding]:
    """Why the folder does not have the sum that is stored."""
    recorded = {entry.name: number for number, entry in enumerate(stored.entries, start=2)}
    present = {entry.name for entry in actual.entries}
    on_disk = {*checksum.list_sql(files.folder)}
    yield from (reordered := tuple(_reordered(files, recorded)))
    for name, line in recorded.items():
        if name not in on_disk:
            path = files.path(name)
            yield Finding(
                FindingCode.REMOVED,
                f"{path} was removed after it was recorded",
                Location(files.path(SUM_NAME), line),
                files.checkout(path),
                (f"{SUM_NAME} line {line} records it",),
            )
    last = max(recorded, key=os.fsencode, default="")
    for name in sorted(present - recorded.keys(), key=os.fsencode):
        yield _added(files, name, last=last, line=recorded.get(last, 1))
    if not reordered:
        yield from _edited(files, stored, opened=opened)


def _reordered(files: TargetFiles, recorded: Mapping[str, int]) -> Iterator[Finding]:
    names = list(recorded)
    for before, name in itertools.pairwise(names):
        if os.fsencode(name) < os.fsencode(before):
            place = Location(files.path(SUM_NAME), recorded[name])
            yield Finding(
                FindingCode.REORDERED,
                f"{place} lists {name} after {before}, which runs later",
                place,
                files.checkout(place.file),
            )


def _added(files: TargetFiles, name: str, *, last: str, line: int) -> Finding:
    path = files.path(name)
    if os.fsencode(name) < os.fsencode(last):
        return Finding(
            FindingCode.OUT_OF_ORDER,
            f"{path} was added before {last}, which is already recorded",
            Location(files.path(SUM_NAME), line),
            f"{files.command('rebase')} {quoted(path)}",
            (f"{SUM_NAME} line {line} records {last}: a database that ran it would run this file late",),
        )
    return Finding(
        FindingCode.ADDED,
        f"{path} is not recorded in {SUM_NAME}",
        Location(path),
        f"pgsluice new {suggest_name(migration_name(name))}",
        (
            f"migrations are generated: move its SQL into {files.template_of(name)}, then remove the file",
            f"or record it as it is: {files.command('rehash')}",
        ),
    )


def _edited(files: TargetFiles, stored: SumFile, *, opened: tuple[str, ...]) -> Iterator[Finding]:
    """The first file whose digest differs; later digests depend on it, so they tell nothing."""
    added = {*checksum.list_sql(files.folder)} - {entry.name for entry in stored.entries}
    ignored = {name for name in added if checksum.is_ignored(files.folder / name)}
    digests = _digests(files, left_out=added - ignored)
    for line, entry in enumerate(stored.entries, start=2):
        now = digests.get(entry.name)
        if now == entry.digest:
            continue
        if not (files.folder / entry.name).exists():
            return
        for guess in ({name} for name in sorted(ignored)):
            if _digests(files, left_out=(added - ignored) | guess).get(entry.name) == entry.digest:
                yield _added(files, *guess, last=stored.entries[-1].name, line=len(stored.entries) + 1)
                return
        yield from _mismatch(files, stored, name=entry.name, line=line, now=now, opened=opened)
        return


def _digests(files: TargetFiles, *, left_out: set[str]) -> dict[str, str]:
    """The folder's digests by name, as if some files were not there."""
    actual = checksum.compute_sum(files.folder, replace=dict.fromkeys(left_out))
    return {entry.name: entry.digest for entry in actual.entries}


def _mismatch(
    files: TargetFiles, stored: SumFile, *, name: str, line: int, now: str | None, opened: tuple[str, ...]
) -> Iterator[Finding]:
    """One file that does not have the digest of its line."""
    path = files.path(name)
    if _is_equal_without_cr(files, stored):
        for culprit in checksum.list_sql(files.folder):
            if b"\r" in (files.folder / culprit).read_bytes():
                yield _carriage_return(files, culprit, _AUTOCRLF)
        return
    found = f"the file now hashes to h1:{_short(now)}" if now else "the file now says atlas:sum ignore"
    details = [f"{SUM_NAME} line {line} records h1:{_short(stored.entries[line - 2].digest)}, {found}"]
    if line - 1 < len(stored.entries):
        details.append("later files cannot be judged until this one is back")
    if name in opened:
        details.append(f"hand-written SQL belongs into {files.template_of(opened[0])}")
    yield Finding(
        FindingCode.EDITED,
        f"{path} was edited after it was recorded",
        Location(files.path(SUM_NAME), line),
        files.build if name in opened else files.checkout(path),
        tuple(details),
    )


def _is_equal_without_cr(files: TargetFiles, stored: SumFile) -> bool:
    contents = {name: (files.folder / name).read_bytes() for name in checksum.list_sql(files.folder)}
    stripped: dict[str, bytes | None] = {
        name: content.replace(b"\r\n", b"\n") for name, content in contents.items() if b"\r\n" in content
    }
    return bool(stripped) and checksum.compute_sum(files.folder, replace=stripped) == stored


def _carriage_return(files: TargetFiles, name: str, detail: str) -> Finding:
    path = files.path(name)
    return Finding(
        FindingCode.CR_FOUND,
        f"CR found in {path}",
        Location(path, 1),
        f"sed -i 's/\\r$//' {quoted(path)}",
        (detail,),
    )


def _short(digest: str) -> str:
    return f"{digest[:4]}…"


def _migrations(count: int) -> str:
    return "is 1 migration" if count == 1 else f"are {count} migrations"
