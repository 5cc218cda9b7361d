"""The checksum of a migrations folder, `atlas.sum`, byte for byte as Atlas writes it.

One running SHA-256 goes through the names and contents of all migrations in byte order; a file's digest is
its state after that file, so it depends on every earlier one. The total is a second hash over the list.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SUM_NAME: Final = "atlas.sum"
SUFFIX: Final = ".sql"

_CHUNK_BYTES: Final = 1 << 20
_FIRST_LINE_BYTES: Final = 1 << 16
_IGNORE: Final = re.compile(rb"\A[ -~]*atlas:sum +ignore(\r?)(?:\n|\Z)")
_DIGEST: Final = re.compile(r"[A-Za-z0-9+/]{43}=")
_CONFLICT: Final = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)")
_NOTHING: Final[Mapping[str, bytes | None]] = MappingProxyType({})


class ConflictMarkersError(InputError):
    """A file holds `<<<<<<<`, `=======` or `>>>>>>>`: two branches met in it."""


class SumFormatError(InputError):
    """`atlas.sum` is not in Atlas's format."""


class CarriageReturnError(InputError):
    """The ignore directive of a file ends in CR: releases of Atlas disagree on what it means."""


@dataclass(frozen=True, slots=True)
class SumEntry:
    """One listed file; `digest` is base64 without `h1:`."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class SumFile:
    """The content of an `atlas.sum`; `total` is base64 without `h1:`."""

    total: str
    entries: tuple[SumEntry, ...]

    def render(self) -> bytes:
        """The file's bytes."""
        lines = [f"h1:{self.total}", *(f"{entry.name} h1:{entry.digest}" for entry in self.entries)]
        return b"".join(os.fsencode(line) + b"\n" for line in lines)

    def is_consistent(self) -> bool:
        """Whether the total is the one of the entries; if not, the file was edited or merged badly."""
        return self.total == _total(self.entries)


def compute_sum(folder: Path, *, replace: Mapping[str, bytes | None] = _NOTHING) -> SumFile:
    """The sum of a folder as it is, or as it will be.

    Args:
        folder: A migrations folder; one that does not exist counts as empty.
        replace: New contents by file name, None for a file to be deleted; names without `.sql` do not count.

    Raises:
        CarriageReturnError: An ignore directive ends in CR.
        InputError: A file cannot be read, or its name cannot be recorded.
    """
    running = hashlib.sha256()
    entries = []
    for name in sorted({*list_sql(folder), *filter(is_sql, replace)}, key=os.fsencode):
        path = os.path.join(folder, name)
        content = replace.get(name, b"")
        if content is None:
            continue
        chunks = iter([content]) if name in replace else _read(path)
        head = next(chunks, b"")
        running.update(os.fsencode(name))
        if _is_ignored(head, path=path):
            continue
        running.update(head)
        for chunk in chunks:
            running.update(chunk)
        entries.append(SumEntry(_recordable(name), _base64(running.digest())))
    return SumFile(_total(entries), tuple(entries))


def read_sum(path: Path) -> SumFile | None:
    """Read an `atlas.sum`; None when there is none.

    Raises:
        ConflictMarkersError: It holds conflict markers.
        SumFormatError: A line is not in the format, or a name stands twice; with the line.
    """
    try:
        text = os.fsdecode(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise InputError(f"cannot read: {exc.strerror}", location=locate(path)) from exc
    return parse_sum(text, path=path)


def parse_sum(text: str, *, path: Path) -> SumFile:
    """An `atlas.sum` from its text; `path` is for messages.

    Raises:
        ConflictMarkersError: It holds conflict markers.
        SumFormatError: A line is not in the format, or a name stands twice; with the line.
    """
    lines = text.split("\n")
    refuse_conflict_markers(lines, path=path)
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise SumFormatError("the file is empty", location=locate(path, 1))
    total = _parse_line(lines[0], number=1, path=path)
    entries = tuple(_parse_line(line, number=number, path=path) for number, line in enumerate(lines[1:], 2))
    _refuse_repeated(entries, path=path)
    return SumFile(total.digest, entries)


def refuse_conflict_markers(lines: Iterable[str], *, path: Path) -> None:
    """Raise for the first line that git left behind in a conflict."""
    for number, line in enumerate(lines, start=1):
        if _CONFLICT.match(line):
            raise ConflictMarkersError(
                f"conflict marker {line[:7]} from a merge",
                location=locate(path, number),
                hint="pgsluice rebase",
            )


def list_sql(folder: Path) -> tuple[str, ...]:
    """The names directly inside `folder` that end in `.sql`, in byte order; none when it does not exist."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return ()
    except OSError as exc:
        raise InputError(f"cannot read: {exc.strerror}", location=locate(folder)) from exc
    return tuple(sorted(filter(is_sql, names), key=os.fsencode))


def is_sql(name: str) -> bool:
    """Whether a file of this name is part of a migrations folder."""
    return name.endswith(SUFFIX)


def is_ignored(path: Path) -> bool:
    """Whether a file's first line says `atlas:sum ignore`."""
    return _is_ignored(next(_read(str(path), size_bytes=_FIRST_LINE_BYTES), b""), path=str(path))


def locate(path: Path | str, line: int | None = None, *, source: str | None = None) -> Location:
    """A place in `path`, shown relative to the current folder where it lies below it."""
    here = os.getcwd() + os.sep
    return Location(str(path).removeprefix(here).replace(os.sep, "/"), line, None, source)


def _is_ignored(head: bytes, *, path: str) -> bool:
    match = _IGNORE.match(head)
    if match is not None and match[1]:
        raise CarriageReturnError(
            "CR found after atlas:sum ignore",
            location=locate(path, 1),
            details=("releases of Atlas disagree on whether such a file is ignored",),
        )
    return match is not None


def _read(path: str, *, size_bytes: int = _CHUNK_BYTES) -> Iterator[bytes]:
    """A file's content in pieces; the first one is larger than any line that a directive stands in."""
    try:
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(size_bytes):
                yield chunk
    except OSError as exc:
        raise InputError(f"cannot read: {exc.strerror}", location=locate(path)) from exc


def _recordable(name: str) -> str:
    """`name`, if a line of the sum file gives it back when read."""
    if "h1:" in name or "\n" in name or name != name.strip():
        raise InputError(f"{name!r} cannot be recorded in {SUM_NAME}: rename the file")
    return name


def _parse_line(line: str, *, number: int, path: Path) -> SumEntry:
    name, mark, digest = (part.strip() for part in line.rstrip("\r").partition("h1:"))
    problem = None
    if not mark:
        problem = "a line without h1:"
    elif bool(name) != (number > 1):
        problem = "the first line is the total and has no name" if name else "a digest without a file's name"
    elif _DIGEST.fullmatch(digest) is None:
        problem = f"{digest or 'nothing'} is not a digest of 44 characters"
    if problem is not None:
        raise SumFormatError(problem, location=locate(path, number, source=line))
    return SumEntry(name, digest)


def _refuse_repeated(entries: Iterable[SumEntry], *, path: Path) -> None:
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries, start=2):
        if entry.name in seen:
            raise SumFormatError(
                f"{entry.name} is listed again, first on line {seen[entry.name]}",
                location=locate(path, number),
            )
        seen[entry.name] = number


def _total(entries: Iterable[SumEntry]) -> str:
    running = hashlib.sha256()
    for entry in entries:
        running.update(os.fsencode(entry.name) + entry.digest.encode())
    return _base64(running.digest())


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
