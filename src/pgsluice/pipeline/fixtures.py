"""Upgrade fixtures: old data, the migrations that follow, and what must hold afterwards.

`tests/upgrades/<target>/<from-version>/<name>.sql` begins with `-- expect: accepted`, or with
`-- expect: refused <SQLSTATE>` and `-- message: <text or /regex/>`, and may say `-- through: <version>`.
The old data follow, then `-- then:` and queries that each return one `true`. The folder names the last
migration before the data by its version, its name or both; `0` or `empty` stand for none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pglast.parser import ParseError

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.written import split_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgsluice.pipeline.history import Migration

NO_MIGRATION: Final = frozenset({"0", "empty"})
KEYS: Final = ("expect", "message", "through")
THEN: Final = re.compile(r"^[ \t]*--[ \t]*then:[ \t]*$", re.MULTILINE)

_HEAD: Final = re.compile(r"--[ \t]*([A-Za-z_-]+):[ \t]*(.*?)[ \t]*")
_SQLSTATE: Final = re.compile(r"[0-9A-Z]{5}")
_EXAMPLE: Final = "-- expect: accepted, or -- expect: refused SL100 and -- message: rows have no name"


class Expectation(StrEnum):
    """What shall happen to the data."""

    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Query:
    """A query that must return one `true`, and its line in the fixture."""

    sql: str
    line: int


@dataclass(frozen=True, slots=True)
class Fixture:
    """One upgrade fixture; `file` is what messages show.

    `message` is the server's whole message, or a regular expression between slashes; only a refusal has it.
    """

    file: str
    name: str
    from_version: str
    expectation: Expectation
    sqlstate: str | None
    message: str | None
    through: str | None
    data: str
    queries: tuple[Query, ...]

    def location(self, line: int | None = None) -> Location:
        """A place in the fixture's file."""
        return Location(self.file, line)

    def accepts_message(self, message: str) -> bool:
        """Whether the server's message is the expected one."""
        if self.message is None:
            return True
        if pattern := _pattern(self.message):
            return re.search(pattern, message) is not None
        return message == self.message


def read_fixtures(folder: Path, *, root: Path | None = None) -> tuple[Fixture, ...]:
    """The fixtures of one target in the order of their files; none when the folder does not exist.

    Raises:
        InputError: A file is malformed, or stands outside a version's folder.
    """
    paths = sorted(folder.rglob("*.sql"), key=lambda path: path.relative_to(folder).as_posix())
    return tuple(_read(path, folder=folder, root=root or folder.parent) for path in paths)


def split_history(
    fixture: Fixture, history: Sequence[Migration]
) -> tuple[tuple[Migration, ...], tuple[Migration, ...]]:
    """The migrations before the fixture's data, and those to run on it.

    Raises:
        InputError: The history has no such version, or `through` is not after it.
    """
    start = 0
    if fixture.from_version not in NO_MIGRATION:
        start = _place(fixture, fixture.from_version, history) + 1
    end = len(history) if fixture.through is None else _place(fixture, fixture.through, history) + 1
    if end <= start:
        last = fixture.through or fixture.from_version
        raise InputError(
            f"no migration is left to run on this data: {last} is the last one",
            location=fixture.location(),
            hint="move the fixture to the folder of an earlier version",
        )
    return tuple(history[:start]), tuple(history[start:end])


def _place(fixture: Fixture, version: str, history: Sequence[Migration]) -> int:
    found = [
        place
        for place, migration in enumerate(history)
        if version in (migration.version, migration.name, migration.path.stem)
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(migration.version for migration in history) or "none"
    raise InputError(
        f"{'no migration is' if not found else f'{len(found)} migrations are'} called {version}",
        location=fixture.location(),
        hint=f"the versions are {known}",
    )


def _read(path: Path, *, folder: Path, root: Path) -> Fixture:
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    parts = path.relative_to(folder).parts
    if len(parts) != 2:
        raise InputError(
            "a fixture stands in the folder of its version",
            location=Location(file),
            hint=f"{folder.name}/<from-version>/{path.name}",
        )
    text = _text(path, file)
    head, rest = _head(text, file)
    expectation, sqlstate = _expectation(head, file)
    data, queries = _split_then(text, file, start=rest)
    return Fixture(
        file=file,
        name=path.stem,
        from_version=parts[0],
        expectation=expectation,
        sqlstate=sqlstate,
        message=_message(head, file, expectation=expectation),
        through=head["through"][0] if "through" in head else None,
        data=data,
        queries=queries,
    )


def _text(path: Path, file: str) -> str:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise InputError("the fixture is not valid UTF-8", location=Location(file, line)) from exc
    if text.startswith("\ufeff"):
        raise InputError("the fixture starts with a byte order mark", location=Location(file, 1, 1))
    return text.replace("\r\n", "\n")


def _head(text: str, file: str) -> tuple[dict[str, tuple[str, int]], int]:
    """The directives with their lines, and where the text goes on after them."""
    head: dict[str, tuple[str, int]] = {}
    offset = 0
    for number, line in enumerate(text.split("\n"), start=1):
        match = _HEAD.fullmatch(line)
        if match is None or match[1] == "then":
            break
        key, value = match.groups()
        if key not in KEYS:
            raise InputError(
                f"unknown directive {key}",
                location=Location(file, number, None, line),
                hint=f"the directives are {', '.join(KEYS)}, then",
            )
        if key in head:
            raise InputError(f"directive {key} is given twice", location=Location(file, number, None, line))
        if not value:
            raise InputError(f"directive {key} is empty", location=Location(file, number, None, line))
        head[key] = (value, number)
        offset += len(line) + 1
    return head, min(offset, len(text))


def _expectation(head: dict[str, tuple[str, int]], file: str) -> tuple[Expectation, str | None]:
    if "expect" not in head:
        raise InputError("the fixture does not say what to expect", location=Location(file, 1), hint=_EXAMPLE)
    value, line = head["expect"]
    word, _, sqlstate = value.partition(" ")
    if word == Expectation.ACCEPTED and not sqlstate:
        return Expectation.ACCEPTED, None
    if word == Expectation.REFUSED and _SQLSTATE.fullmatch(sqlstate):
        return Expectation.REFUSED, sqlstate
    raise InputError(f"cannot expect {value}", location=Location(file, line), hint=_EXAMPLE)


def _message(head: dict[str, tuple[str, int]], file: str, *, expectation: Expectation) -> str | None:
    if expectation is Expectation.ACCEPTED:
        if "message" in head:
            raise InputError(
                "data that are accepted have no message", location=Location(file, head["message"][1])
            )
        return None
    if "message" not in head:
        raise InputError(
            "a refusal needs its message", location=Location(file, head["expect"][1]), hint=_EXAMPLE
        )
    message, line = head["message"]
    try:
        re.compile(_pattern(message) or "")
    except re.error as exc:
        raise InputError(f"not a regular expression: {exc}", location=Location(file, line)) from exc
    return message


def _pattern(message: str) -> str | None:
    is_regex = len(message) > 2 and message.startswith("/") and message.endswith("/")
    return message[1:-1] if is_regex else None


def _split_then(text: str, file: str, *, start: int) -> tuple[str, tuple[Query, ...]]:
    """The data, with empty lines before it so that error positions are the file's, and the queries."""
    marks = [match for match in THEN.finditer(text) if match.start() >= start]
    if len(marks) > 1:
        line = text[: marks[1].start()].count("\n") + 1
        raise InputError("then: is given twice", location=Location(file, line))
    end = marks[0].start() if marks else len(text)
    data = "\n" * text[:start].count("\n") + text[start:end]
    if not marks:
        return data, ()
    rest = "\n" * text[: marks[0].end()].count("\n") + text[marks[0].end() :]
    try:
        found = split_text(rest)
    except ParseError as exc:
        offset = int(exc.args[1]) if len(exc.args) > 1 else 0
        raise InputError(str(exc.args[0]), location=Location(file, rest[:offset].count("\n") + 1)) from exc
    queries = tuple(
        Query(statement.sql, rest[: statement.offset].count("\n") + 1) for statement in found if statement.sql
    )
    if not queries:
        line = text[: marks[0].start()].count("\n") + 1
        raise InputError("then: is followed by no query", location=Location(file, line))
    return data, queries
