"""The pages of the error catalogue: their entries, and which messages a line of text is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.errors.messages import Message

HEADING: Final = re.compile(r"^### (.+)$")
CODED: Final = re.compile(r"^(`+) ?(.+?) ?\1$")
EXIT_CODE: Final = re.compile(r"^Exit code (\d)(?: or (\d))?\.")
FINDING_ROW: Final = re.compile(r"^\| `[a-z-]+` \|.*\| (`[^|]+`) \|$")
PLACEHOLDER: Final = re.compile(r"<[^<>]+>")
UNKNOWN: Final = "\N{OBJECT REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; `anchor` leads to it from other pages, `codes` are its exit codes."""

    page: str
    line: int
    text: str
    anchor: str | None
    codes: frozenset[int]
    says: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def read_page(path: Path, *, root: Path) -> Iterator[Entry]:
    """The entries of a page: each third-level heading in code font, and what stands below it."""
    page = path.relative_to(root).as_posix()
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if (heading := HEADING.match(line)) and (coded := CODED.match(heading[1])):
            body = _body(lines[number:])
            codes = EXIT_CODE.match(body)
            found = frozenset(int(code) for code in codes.groups() if code) if codes else frozenset[int]()
            yield Entry(page, number, coded[2], slug(coded[2]), found, EXIT_CODE.sub("", body).strip())


def read_findings(path: Path, *, root: Path) -> Iterator[Entry]:
    """The messages in the last column of the table of `verify`'s findings."""
    page = path.relative_to(root).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if row := FINDING_ROW.match(line):
            for text in re.findall(r"`([^`]+)`", row[1]):
                yield Entry(page, number, text, None, frozenset({1}), line)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def of_entry(text: str, messages: Iterable[Message]) -> list[Message]:
    """The messages that an entry is about; its placeholders may stand for words that the sources know."""
    known = list(messages)
    parts = PLACEHOLDER.sub(UNKNOWN, text)
    if same := [one for one in known if _example(one) == parts]:
        return same
    if special := _outermost(one for one in known if one.pattern.fullmatch(text)):
        return special
    general = ".+?".join(re.escape(piece) for piece in PLACEHOLDER.split(text))
    return [one for one in known if re.fullmatch(general, _example(one))] if parts != text else []


def of_line(line: str, messages: Iterable[Message]) -> list[Message]:
    """The messages that a line of a test is about."""
    return _outermost(
        one for one in messages if all(word in line for word in one.words) and one.pattern.search(line)
    )


def _outermost(found: Iterable[Message]) -> list[Message]:
    """Without those whose words are a part of another's: `… is not a folder` is none of the longer ones."""
    every = list(found)
    if len(every) < 2:
        return every
    return [
        one
        for one in every
        if not any(_covers(other, one) and not _covers(one, other) for other in every if other is not one)
    ]


def _covers(one: Message, other: Message) -> bool:
    """Whether each text of the other stands in one of the first, blanks and colons at its ends aside."""
    return all(any(word.strip(" :") in text for text in one.words) for word in other.words)


def _example(message: Message) -> str:
    return "".join(UNKNOWN if part is None else part for part in message.parts)


def _body(lines: list[str]) -> str:
    """The text below a heading, up to the next one."""
    taken: list[str] = []
    for line in lines:
        if line.startswith("#"):
            break
        taken.append(line)
    return "\n".join(taken).strip()
