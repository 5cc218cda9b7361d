"""Upgrade fixtures that start from a migration whose version changes: their folder's name changes with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.history import split_stem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pgsluice.pipeline.branches.layout import Layout

THROUGH: Final = re.compile(rb"^(-- through:[ \t]*)([^\r\n]*?)([ \t]*\r?)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MovedFixture:
    """One fixture: `old` and `new` are its paths, which may be equal; `before` and `content` its bytes."""

    old: Path
    new: Path
    before: bytes
    content: bytes


def move_fixtures(folder: Path, layout: Layout, *, shared: frozenset[str] | None) -> tuple[MovedFixture, ...]:
    """The fixtures below `folder` that name a renamed migration of yours.

    Args:
        shared: The shared fixtures by path below the folder, which are left as they are; None when nobody
            knows: then those stay that name what is also a shared migration's version or name.
    """
    renamed = dict(_renamed(layout))
    if shared is None:
        for words in (_words(name) for name in layout.shared):
            for word in words:
                renamed.pop(word, None)
    found = []
    for path in sorted(folder.rglob("*.sql")) if renamed else ():
        name = path.relative_to(folder).as_posix()
        if shared is not None and name in shared:
            continue
        first, _, rest = name.partition("/")
        content = path.read_bytes()
        place = folder / renamed.get(first, first) / rest
        moved = MovedFixture(path, place, content, _through(content, renamed))
        if moved.new != path or moved.content != content:
            found.append(moved)
    return tuple(found)


def _renamed(layout: Layout) -> Iterator[tuple[str, str]]:
    """Each word that a fixture may call a migration by, with the word for it from now on."""
    for one in layout.closed:
        yield one.old.version, one.new.version
        yield one.old.path.stem, one.new.path.stem
        if one.old.name:
            yield one.old.name, one.new.name
    if layout.old_name is not None and layout.open_name is not None:
        yield layout.old_name, layout.open_name


def _words(filename: str) -> tuple[str, ...]:
    stem = filename.removesuffix(".sql")
    return (stem, *split_stem(stem))


def _through(content: bytes, renamed: Mapping[str, str]) -> bytes:
    def replaced(match: re.Match[bytes]) -> bytes:
        word = match[2].decode(errors="surrogateescape")
        new = renamed.get(word, word).encode(errors="surrogateescape")
        return match[1] + new + match[3]

    return THROUGH.sub(replaced, content, count=1)
