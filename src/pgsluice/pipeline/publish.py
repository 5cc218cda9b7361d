"""Writing files all or none, also when the process is killed.

New contents are staged under `.pgsluice/`, then a journal is put in place in one rename: that is the commit
point. Before it, nothing of the tree was touched; after it, `recover` finishes what was begun.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STATE_DIR: Final = ".pgsluice"

_JOURNAL: Final = "journal.json"
_STAGING: Final = "staging"
_held = threading.local()


class StaleError(InputError):
    """The tree moved underneath: a file is not what the command started from."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One file of a journal: paths are relative to the root; digests are None where there is no file.

    `backup` is a copy of the old content, kept for a write that fails half-way.
    """

    path: str
    staged: str | None
    backup: str | None
    before: str | None
    after: str | None


@contextmanager
def project_lock(root: Path) -> Iterator[None]:
    """Hold the project's write lock; waits for another process or thread, and nests within one thread."""
    root = root.resolve()
    held: set[Path] = _held.__dict__.setdefault("roots", set())
    if root in held:
        yield
        return
    descriptor = os.open(state_folder(root) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        held.add(root)
        yield
    finally:
        held.discard(root)
        os.close(descriptor)


def state_folder(root: Path) -> Path:
    """The project's folder of pgsluice's own, made on first use and ignored by git."""
    folder = root / STATE_DIR
    ignore = folder / ".gitignore"
    try:
        folder.mkdir(exist_ok=True)
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as exc:
        raise _cannot_write(root, folder, exc) from exc
    return folder


def publish_files(
    root: Path, files: Mapping[Path, bytes | None], *, expect: Mapping[Path, bytes | None] | None = None
) -> None:
    """Write all of `files` or none of them.

    Args:
        root: The project's folder; every file lies inside it.
        files: New contents by path; None deletes.
        expect: What the caller worked from, None for a file that must not exist.

    Raises:
        StaleError: A file is not as `expect` says; nothing was written.
        InputError: A file lies outside of the root, is a symbolic link, or cannot be written.
    """
    root = root.resolve()
    paths = {_checked(root, path): content for path, content in files.items()}
    with project_lock(root):
        recover(root)
        _refuse_stale(root, expect or {})
        if not paths:
            return
        staging = _make_staging(root)
        try:
            entries = [
                _stage(root, path, content=content, number=number, staging=staging)
                for number, (path, content) in enumerate(paths.items())
            ]
            _write_journal(root, entries, staging=staging)
        except OSError as exc:
            shutil.rmtree(staging)
            raise InputError(f"cannot write into {STATE_DIR}: {exc.strerror}") from exc
        _apply(root, entries)


def recover(root: Path) -> None:
    """Finish a publication that a killed process had begun, or remove what it had only prepared.

    When the user changed one of its files since, the tree is left as it is.
    """
    root = root.resolve()
    state = root / STATE_DIR
    if not (state / _JOURNAL).exists() and not (state / _STAGING).exists():
        return
    with project_lock(root):
        entries = _read_journal(root)
        if entries and all(_can_finish(root, entry) for entry in entries):
            _apply(root, entries)
        else:
            _forget(root)


def _checked(root: Path, path: Path) -> Path:
    """`path` with its folder resolved, if it may be written."""
    real = Path(os.path.normpath(path.parent)).resolve() / path.name
    if not real.is_relative_to(root) or real.is_relative_to(root / STATE_DIR):
        raise InputError(f"{path} lies outside of the project {root}")
    if real.is_symlink() or (real.exists() and not real.is_file()):
        raise InputError("not a regular file, so it is not replaced", location=_location(root, real))
    return real


def _refuse_stale(root: Path, expect: Mapping[Path, bytes | None]) -> None:
    for path, content in expect.items():
        try:
            current = path.read_bytes() if path.exists() else None
        except OSError as exc:
            raise InputError(f"cannot read: {exc.strerror}", location=_location(root, path)) from exc
        if current != content:
            raise StaleError(
                "the file changed while this command ran",
                location=_location(root, path),
                hint="run the command again",
            )


def _make_staging(root: Path) -> Path:
    """An empty staging folder; `recover` has removed an earlier one, and the lock keeps others away."""
    folder = state_folder(root) / _STAGING
    try:
        folder.mkdir()
    except OSError as exc:
        raise _cannot_write(root, folder, exc) from exc
    return folder


def _stage(root: Path, path: Path, *, content: bytes | None, number: int, staging: Path) -> _Entry:
    """Put the new content, and a copy of the old one, where one rename reaches the destination."""
    before = path.read_bytes() if path.exists() else None
    near = _same_device(path, staging)
    staged = near / f".pgsluice.{number}.new"
    backup = near / f".pgsluice.{number}.old"
    if content is not None:
        _write_synced(staged, content, like=path)
    if before is not None:
        _write_synced(backup, before, like=path)
    return _Entry(
        path=path.relative_to(root).as_posix(),
        staged=None if content is None else staged.relative_to(root).as_posix(),
        backup=None if before is None else backup.relative_to(root).as_posix(),
        before=_digest(before),
        after=_digest(content),
    )


def _same_device(path: Path, staging: Path) -> Path:
    """The staging folder, or the destination's own when that is another file system."""
    parent = next(folder for folder in path.parents if folder.exists())
    return staging if parent.stat().st_dev == staging.stat().st_dev else parent


def _write_synced(path: Path, content: bytes, *, like: Path) -> None:
    """Write a new file to disk, with the mode and owner of `like` if that exists."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        if like.exists():
            status = like.stat()
            os.fchmod(file.fileno(), status.st_mode & 0o7777)
            if os.geteuid() == 0:
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _write_journal(root: Path, entries: Sequence[_Entry], *, staging: Path) -> None:
    """The commit point: from here on the publication is finished, not undone."""
    draft = staging / _JOURNAL
    text = json.dumps([asdict(entry) for entry in entries])
    _write_synced(draft, text.encode(), like=root / STATE_DIR / _JOURNAL)
    _sync_folder(staging)
    os.replace(draft, root / STATE_DIR / _JOURNAL)
    _sync_folder(root / STATE_DIR)


def _read_journal(root: Path) -> list[_Entry]:
    path = root / STATE_DIR / _JOURNAL
    try:
        return [_Entry(**entry) for entry in json.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as exc:
        raise InputError(
            "the journal of an interrupted command cannot be read",
            location=_location(root, path),
            hint=f"rm {_location(root, path)}",
        ) from exc


def _can_finish(root: Path, entry: _Entry) -> bool:
    """Whether a file is in its new state, or in its old one with the new at hand."""
    path = root / entry.path
    current = _digest(path.read_bytes() if path.is_file() else None)
    at_hand = entry.staged is None or (root / entry.staged).exists()
    return current == entry.after or (current == entry.before and at_hand)


def _apply(root: Path, entries: Sequence[_Entry]) -> None:
    """Bring every file into its new state, skipping what is done; back to the old one if one fails."""
    for entry in entries:
        path = root / entry.path
        try:
            if entry.staged is None:
                path.unlink(missing_ok=True)
            elif (root / entry.staged).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(root / entry.staged, path)
            _sync_folder(path.parent)
        except OSError as exc:
            _undo(root, entries)
            _forget(root)
            raise _cannot_write(root, path, exc) from exc
    _forget(root)


def _undo(root: Path, entries: Sequence[_Entry]) -> None:
    """Put the old contents back over the files that are no longer in their old state."""
    for entry in entries:
        path = root / entry.path
        if _digest(path.read_bytes() if path.is_file() else None) == entry.before:
            continue
        if entry.backup is None:
            path.unlink(missing_ok=True)
        else:
            os.replace(root / entry.backup, path)


def _forget(root: Path) -> None:
    """Remove the journal first, then what was staged."""
    state = root / STATE_DIR
    entries = _read_journal(root)
    (state / _JOURNAL).unlink(missing_ok=True)
    _sync_folder(state)
    for name in (name for entry in entries for name in (entry.staged, entry.backup) if name is not None):
        (root / name).unlink(missing_ok=True)
    if (state / _STAGING).exists():
        shutil.rmtree(state / _STAGING)


def _sync_folder(folder: Path) -> None:
    if folder.is_dir():
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def _location(root: Path, path: Path) -> Location:
    return Location(path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path))


def _cannot_write(root: Path, path: Path, exc: OSError) -> InputError:
    return InputError(f"cannot write: {exc.strerror}", location=_location(root, path))
