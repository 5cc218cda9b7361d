"""The migrations of a folder in the order in which they run, and the next one's version."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.checksum import is_ignored, list_sql, locate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pgsluice.config import Target

TIMESTAMP_FORMAT: Final = "%Y%m%d%H%M%S"
SEQUENCE_WIDTH: Final = 4
NAME_LENGTH: Final = 100
RESERVED_NAMES: Final = frozenset({"migration", "macros"})

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_]*")
_VERSION: Final = re.compile(r"[0-9A-Za-z.-]*[0-9][0-9A-Za-z.-]*")
_NO_TRANSACTION: Final = "-- atlas:txmode none\n\n"

# How the files of others read: each gives version and name.
_STRANGERS: Final = (
    re.compile(r"(V[0-9]+(?:[._][0-9]+)*)__(.*)"),  # Flyway: V1_2__name
    re.compile(r"([vV]?[0-9]+(?:\.[0-9]+)+_[0-9]+)(?:_(.*))?"),  # a release and a number: 00.05.00_01_name
    re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]+)[.-]([^0-9_.-].*)"),  # 0001.name, 001-name
)
_ALL_NUMBERS: Final = re.compile(r"([A-Za-z]*)([0-9]+(?:[._-][0-9]+)*)")
_WAY_BACK: Final = re.compile(r".*\.(?:down|rollback|undo)|U[0-9][0-9._]*__.*")


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file, `<version>_<name>.sql`; `name` may be empty in a folder that others wrote."""

    version: str
    name: str
    path: Path

    @property
    def filename(self) -> str:
        """The file's name without its folder."""
        return self.path.name


def read_history(folder: Path) -> tuple[Migration, ...]:
    """The migrations of `folder` in byte order of their names, without files that say `atlas:sum ignore`.

    Raises:
        InputError: A file's name has no version or says that it goes back, or two have one version.
    """
    return order_history(folder / name for name in list_sql(folder) if not is_ignored(folder / name))


def order_history(paths: Iterable[Path]) -> tuple[Migration, ...]:
    """Migrations in byte order of their names.

    Raises:
        InputError: A file's name has no version or says that it goes back, or two have one version.
    """
    history = tuple(split_filename(path) for path in sorted(paths, key=lambda path: os.fsencode(path.name)))
    by_version: dict[str, Migration] = {}
    for migration in history:
        if (first := by_version.setdefault(migration.version, migration)) is not migration:
            raise InputError(
                f"{first.filename} and {migration.filename} have the same version {migration.version}",
                location=locate(migration.path),
                hint="pgsluice rebase, when two branches took the same version",
            )
    return history


def split_filename(path: Path) -> Migration:
    """Version and name of a migration's file.

    The version is what stands before the first `_`, and further numbers that belong to it in the names of
    other tools.

    Raises:
        InputError: The name starts with no version, or says that the file takes a migration back.
    """
    stem = path.name.removesuffix(".sql")
    if _WAY_BACK.fullmatch(stem) is not None:
        raise InputError(
            "the file takes a migration back, and would run with all others",
            location=locate(path),
            hint=f"sed -i '1i -- atlas:sum ignore' {locate(path).file}, or move it to another folder",
        )
    version, name = split_stem(stem)
    if not version:
        raise InputError(
            "the file's name does not start with a version",
            location=locate(path),
            hint=f"mv {path.name} 0001_{path.name.lstrip('_')}",
        )
    return Migration(version, name, path)


def split_stem(stem: str) -> tuple[str, str]:
    """Version and name of a file's name without `.sql`; the version is empty when there is none."""
    stem = stem.removesuffix(".up")
    for pattern in _STRANGERS:
        if found := pattern.fullmatch(stem):
            return found[1], (found[2] or "").lstrip("_")
    version, _, name = stem.partition("_")
    if _VERSION.fullmatch(version) is None:
        return "", name or stem
    return version, name.lstrip("_")


def out_of_number(history: Sequence[Migration]) -> tuple[tuple[Migration, Migration], ...]:
    """Neighbours of which the first runs before the second and has the greater number.

    Byte order puts `10_` before `2_`, which no author means. Versions that are no numbers say nothing.
    """
    numbered = [(one, numbers) for one in history if (numbers := _numbers(one.version)) is not None]
    return tuple(
        (first, second)
        for (first, low), (second, high) in itertools.pairwise(numbered)
        if low[0] == high[0] and low[1] > high[1]
    )


def pad_numbers(history: Sequence[Migration]) -> dict[str, str]:
    """New file names by old ones, so that byte order becomes the order of the numbers."""
    found = {one.filename: numbers for one in history if (numbers := _numbers(one.version)) is not None}
    widths: dict[int, int] = {}
    for _, parts in found.values():
        for place, number in enumerate(parts):
            widths[place] = max(widths.get(place, 0), len(str(number)))
    padded = {name: _padded(name, list(widths.values())) for name in found}
    return {old: new for old, new in padded.items() if old != new}


def next_version(target: Target, history: Sequence[Migration], *, now: datetime) -> str:
    """The version of a migration to be added now; it sorts after all others, whatever the clock says.

    Raises:
        InputError: No version in the target's style sorts after the last one.
    """
    sequence = target.versioning == "sequence"
    version = _next_number(history) if sequence else _next_timestamp(history, now=now)
    if history and os.fsencode(f"{version}_") <= os.fsencode(history[-1].filename):
        raise InputError(
            f"version {version} would sort before the last migration, {history[-1].filename}",
            location=locate(history[-1].path),
            hint=f'versioning = "{"timestamp" if sequence else "sequence"}"',
        )
    return version


def check_name(name: str) -> str:
    """`name`, if a new migration may be called so.

    Raises:
        InputError: It has other characters than `a-z`, `0-9` and `_`, is too long, or is reserved.
    """
    if name in RESERVED_NAMES:
        raise InputError(f"a migration cannot be called {name}: a template of that name is built in")
    if len(name) > NAME_LENGTH:
        raise InputError(f"a migration's name has at most {NAME_LENGTH} characters, not {len(name)}")
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"a migration's name is made of a-z, 0-9 and _, not {name!r}", hint=suggest_name(name)
        )
    return name


def suggest_name(text: str) -> str:
    """The nearest name that a migration may have."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:NAME_LENGTH]
    return name if name and name not in RESERVED_NAMES else "add_users"


def is_transactional(text: str) -> bool:
    """Whether a file runs in one transaction: not with `-- atlas:txmode none` first, then an empty line."""
    return not text.startswith(_NO_TRANSACTION)


def _numbers(version: str) -> tuple[str, tuple[int, ...]] | None:
    """The letters and the numbers that a version consists of, if it consists of nothing else."""
    found = _ALL_NUMBERS.fullmatch(version)
    if found is None:
        return None
    return found[1], tuple(int(number) for number in re.findall("[0-9]+", found[2]))


def _padded(filename: str, widths: Sequence[int]) -> str:
    """A file's name with the leading numbers of its version as wide as told."""
    version = split_stem(filename.removesuffix(".sql"))[0]
    places = iter(widths)
    wide = re.sub(r"[0-9]+", lambda match: match[0].zfill(next(places)), version)
    return wide + filename.removeprefix(version)


def _next_number(history: Sequence[Migration]) -> str:
    if not history:
        return "1".zfill(SEQUENCE_WIDTH)
    last = history[-1]
    if not last.version.isascii() or not last.version.isdecimal():
        raise InputError(
            f"no number follows version {last.version}",
            location=locate(last.path),
            hint='versioning = "timestamp"',
        )
    return str(int(last.version) + 1).zfill(len(last.version))


def _next_timestamp(history: Sequence[Migration], *, now: datetime) -> str:
    version = now.astimezone(UTC).strftime(TIMESTAMP_FORMAT)
    if not history or history[-1].version < version or len(history[-1].version) != len(version):
        return version
    last = history[-1]
    try:
        after = datetime.strptime(last.version, TIMESTAMP_FORMAT).replace(tzinfo=UTC) + timedelta(seconds=1)
    except (ValueError, OverflowError) as exc:
        raise InputError(
            f"version {last.version} is not a time, so none follows it", location=locate(last.path)
        ) from exc
    return after.strftime(TIMESTAMP_FORMAT)
