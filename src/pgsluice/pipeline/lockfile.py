"""`pgsluice.lock`: what a migrations folder was proved against, as of the last build.

TOML, sorted, without a clock: the same build writes the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.checksum import locate, refuse_conflict_markers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOCK_NAME: Final = "pgsluice.lock"
TEMPLATE_SUFFIX: Final = ".sql.j2"

_HEADER: Final = "# Written by `pgsluice build`; do not edit.\n"
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "history": (str,),
    "made": (str,),
    "online": (bool,),
    "open": (str, list),
    "postgres": (int,),
    "schema": (str,),
    "tool": (str,),
    "templates": (dict,),
}
_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"\\]')


@dataclass(frozen=True, slots=True)
class Lock:
    """One target's lock.

    `schema` is the digest of the schema folder, `templates` the digests of the target's templates by file
    name, `tool` the version of pgsluice, `postgres` the major version that the last build ran on, `open`
    the file names of the migration that the next build regenerates: one, or several when it is `online`;
    `made` is the digest of the schema from which the newest migration was made; `history` is the total of
    `atlas.sum`, so the migrations that were proved. Empty: not known.
    """

    schema: str
    templates: Mapping[str, str] = field(default_factory=dict)
    tool: str = ""
    postgres: int = 0
    open: tuple[str, ...] = ()
    online: bool = False
    made: str = ""
    history: str = ""

    def render(self) -> bytes:
        """The file's bytes."""
        lines = [_HEADER]
        if self.history:
            lines.append(f"history = {_quote(self.history)}\n")
        if self.made:
            lines.append(f"made = {_quote(self.made)}\n")
        if self.online:
            lines.append("online = true\n")
        if self.open:
            lines.append(f"open = {_names(self.open)}\n")
        lines.append(f"postgres = {self.postgres}\n")
        lines.append(f"schema = {_quote(self.schema)}\n")
        lines.append(f"tool = {_quote(self.tool)}\n")
        if self.templates:
            lines.append("\n[templates]\n")
            lines.extend(
                f"{_quote(name)} = {_quote(self.templates[name])}\n" for name in sorted(self.templates)
            )
        return "".join(lines).encode()


def read_lock(folder: Path) -> Lock | None:
    """The lock of a migrations folder; None when there is none.

    Raises:
        ConflictMarkersError: It holds conflict markers.
        InputError: It is not what `build` writes.
    """
    path = folder / LOCK_NAME
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise InputError(f"cannot read: {exc.strerror}", location=locate(path)) from exc
    except UnicodeDecodeError as exc:
        raise InputError("the file is not valid UTF-8", location=locate(path)) from exc
    return parse_lock(text, path=path)


def parse_lock(text: str, *, path: Path) -> Lock:
    """A lock from its text; `path` is for messages.

    Raises:
        ConflictMarkersError: It holds conflict markers.
        InputError: It is not what `build` writes.
    """
    refuse_conflict_markers(text.split("\n"), path=path)
    try:
        table = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as exc:
        raise _unreadable(path, str(exc)) from exc
    return _from_table(table, path=path)


def digest_templates(folder: Path) -> dict[str, str]:
    """SHA-256 of every `.sql.j2` file of a target's templates folder, by path relative to it with `/`."""
    digests = {}
    for path in sorted(folder.rglob(f"*{TEMPLATE_SUFFIX}")):
        name = path.relative_to(folder).as_posix()
        try:
            name.encode()
            if path.is_file():
                digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        except UnicodeEncodeError as exc:
            raise InputError(
                f"the file's name is not valid UTF-8: {name!r}", location=locate(folder)
            ) from exc
        except OSError as exc:
            raise InputError(f"cannot read: {exc.strerror}", location=locate(path)) from exc
    return digests


def _from_table(table: Mapping[str, object], *, path: Path) -> Lock:
    for key, value in table.items():
        if key not in _TYPES:
            raise _unreadable(path, f"unknown key {key}")
        if type(value) not in _TYPES[key]:
            raise _unreadable(path, f"{key} has the wrong type")
    templates = table.get("templates", {})
    assert isinstance(templates, dict)
    if not all(isinstance(digest, str) for digest in templates.values()):
        raise _unreadable(path, "templates has the wrong type")
    if missing := [key for key in ("postgres", "schema", "tool") if key not in table]:
        raise _unreadable(path, f"{missing[0]} is missing")
    opened, major = table.get("open", []), table["postgres"]
    assert isinstance(major, int)
    names = (opened,) if isinstance(opened, str) else tuple(opened) if isinstance(opened, list) else ()
    if not all(isinstance(name, str) for name in names):
        raise _unreadable(path, "open has the wrong type")
    return Lock(
        schema=str(table["schema"]),
        templates=templates,
        tool=str(table["tool"]),
        postgres=major,
        open=names,
        online=table.get("online") is True,
        made=str(table.get("made", "")),
        history=str(table.get("history", "")),
    )


def _unreadable(path: Path, reason: str) -> InputError:
    return InputError(f"not a lock that this version of pgsluice wrote: {reason}", location=locate(path))


def _names(names: tuple[str, ...]) -> str:
    """One name, or a list with a name a line."""
    if len(names) == 1:
        return _quote(names[0])
    return "[\n" + "".join(f"  {_quote(name)},\n" for name in names) + "]"


def _quote(text: str) -> str:
    """A TOML basic string."""
    return '"' + _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + '"'
