"""What happened to a folder since its `atlas.sum` was written, file by file.

A digest depends on all earlier files, so a file can be judged only while the contents before it are known:
as they are, under another name, without what changed since, or as git has them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pgsluice.pipeline.checksum import SumEntry


class Change(StrEnum):
    """What happened to one migration."""

    NEW = "new"
    IN_FRONT = "new, before a recorded one"
    EDITED = "edited"
    LINE_ENDS = "line ends"
    RENAMED = "renamed"
    REMOVED = "removed"
    UNKNOWN = "not to be judged"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One migration that is not as it was recorded; `old` is the name of a renamed one until now."""

    name: str
    change: Change
    old: str | None = None


def judge(
    entries: Sequence[SumEntry],
    present: Mapping[str, bytes],
    *,
    ignored: Sequence[str] = (),
    committed: Mapping[str, bytes],
) -> tuple[FileChange, ...]:
    """Compare a folder with what was recorded of it.

    Args:
        entries: The recorded files.
        present: The migrations as they are now.
        ignored: Names of files that say `atlas:sum ignore`: names count in digests, contents do not.
        committed: Contents that git has, tried where the present ones are not the recorded ones.
    """
    run = _Run(present, ignored=ignored, committed=committed, names={entry.name for entry in entries})
    found = [run.judge(entry) for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name))]
    last = max((os.fsencode(entry.name) for entry in entries), default=b"")
    for name in (one for one in run.new if one not in run.moved):
        found.append(FileChange(name, Change.IN_FRONT if os.fsencode(name) < last else Change.NEW))
    kept = (one for one in found if one is not None)
    return tuple(sorted(kept, key=lambda one: os.fsencode(one.name)))


class _Run:
    """One walk through the recorded files, with the running hash of their recorded contents."""

    def __init__(
        self,
        present: Mapping[str, bytes],
        *,
        ignored: Sequence[str],
        committed: Mapping[str, bytes],
        names: set[str],
    ) -> None:
        self.present = present
        self.committed = committed
        self.new = [name for name in present if name not in names]
        self.moved: set[str] = set()
        self._ignored = sorted((os.fsencode(name) for name in ignored), reverse=True)
        self._running = hashlib.sha256()
        self._is_lost = False

    def judge(self, entry: SumEntry) -> FileChange | None:
        """What happened to one recorded file, None when nothing did."""
        if self._is_lost:
            gone = entry.name not in self.present
            return FileChange(entry.name, Change.REMOVED if gone else Change.UNKNOWN)
        skipped = [*self._ignored_before(entry.name)]
        for change, source, content in self._guesses(entry.name):
            for names in (skipped, []) if skipped else ([],):
                running = self._running.copy()
                running.update(b"".join((*names, os.fsencode(entry.name), content)))
                if base64.b64encode(running.digest()).decode() == entry.digest:
                    self._running = running
                    return self._result(entry.name, change, source)
        self._is_lost = True
        return FileChange(entry.name, Change.EDITED if entry.name in self.present else Change.REMOVED)

    def _result(self, name: str, change: Change | None, source: str) -> FileChange | None:
        if change is None:
            return None
        if change is Change.RENAMED:
            self.moved.add(source)
            return FileChange(source, change, old=name)
        return FileChange(name, change)

    def _guesses(self, name: str) -> Iterator[tuple[Change | None, str, bytes]]:
        """Contents that the file may have had, with what that would mean."""
        content = self.present.get(name)
        if content is not None:
            yield None, name, content
            if b"\r\n" in content:
                yield Change.LINE_ENDS, name, content.replace(b"\r\n", b"\n")
            else:
                yield Change.EDITED, name, content.replace(b"\n", b"\r\n")
        else:
            for new in self.new:
                if new not in self.moved:
                    yield Change.RENAMED, new, self.present[new]
        if name in self.committed:
            gone = name not in self.present
            yield Change.REMOVED if gone else Change.EDITED, name, self.committed[name]

    def _ignored_before(self, name: str) -> Iterator[bytes]:
        """Names of ignored files between the last recorded file and this one."""
        while self._ignored and self._ignored[-1] < os.fsencode(name):
            yield self._ignored.pop()
