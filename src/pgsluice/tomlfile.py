"""A TOML file that a user wrote: its table, and for messages the line of each key."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Final, NoReturn

from pgsluice.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER_LINE: Final = re.compile(rf"^\s*\[\[?\s*({_DOTTED})\s*\]")
_KEY_LINE: Final = re.compile(rf"^\s*({_DOTTED})\s*=")


class TomlFile:
    """One file, read as a whole; `prefix` is the table that the caller's key paths start from."""

    def __init__(self, path: Path, *, root: Path, prefix: tuple[str, ...] = ()) -> None:
        self.path = path
        self.prefix = prefix
        self.file = path.relative_to(root).as_posix()
        self.text = _read(path, self.file)

    def parse(self) -> Mapping[str, object]:
        """The whole document.

        Raises:
            InputError: It is not TOML; with line, column and a caret.
        """
        text = self.text.replace("\r\n", "\n")
        if text.startswith("\ufeff"):
            raise InputError("the file starts with a byte order mark", location=Location(self.file, 1))
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as exc:
            line, column, reason = _syntax_place(exc, text)
            location = Location(self.file, line, column, text.split("\n")[line - 1])
            raise InputError(f"not valid TOML: {reason}", location=location) from exc

    def fail(self, key: Sequence[str], message: str, *, hint: str | None = None) -> NoReturn:
        """Raise `InputError` at the deepest part of `key` that the file has."""
        raise InputError(message, location=Location(self.file, self._line(key)), hint=hint)

    def _line(self, key: Sequence[str]) -> int | None:
        lines = dict(reversed([*_key_lines(self.text)]))
        wanted = (*self.prefix, *key)
        for length in range(len(wanted), 0, -1):
            if (line := lines.get(wanted[:length])) is not None:
                return line
        return None


def _read(path: Path, file: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise InputError("the file is not valid UTF-8", location=Location(file, line)) from exc
    except OSError as exc:
        raise InputError(f"cannot read {file}: {exc.strerror}") from exc


def _syntax_place(exc: tomllib.TOMLDecodeError, text: str) -> tuple[int, int, str]:
    """Line, column and reason; before Python 3.14 only the message holds them."""
    reason = re.sub(r" \(at .*\)$", "", str(exc))
    reason = reason[:1].lower() + reason[1:]
    if match := re.search(r"\(at line (\d+), column (\d+)\)$", str(exc)):
        return int(match[1]), int(match[2]), reason
    body = text.rstrip("\n")
    return body.count("\n") + 1, len(body.rsplit("\n", 1)[-1]) + 1, reason


def _key_lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each key path with its line; for a key of an inline table the caller falls back to the table's line."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER_LINE.match(line):
            table = _split(header[1])
            for length in range(1, len(table) + 1):
                yield table[:length], number
        elif key := _KEY_LINE.match(line):
            yield table + _split(key[1]), number


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
