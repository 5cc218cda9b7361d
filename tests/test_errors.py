"""The error catalogue tells every message that the sources can give, and some test asserts each of them.

A failure names the place of the message, and which of the two is missing. `just accept` rewrites the index.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

from tests.errors.asserted import asserted_lines
from tests.errors.catalogue import Entry, of_entry, of_line, read_findings, read_page
from tests.errors.messages import ROOT, Message, read_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DOCS: Final = ROOT / "docs"
INDEX: Final = DOCS / "errors.md"
INDEX_PAGE: Final = "docs/errors.md"
PAGES: Final = tuple(sorted((DOCS / "errors").glob("*.md")))
FINDINGS: Final = DOCS / "reference/findings.md"
INDEX_MARKS: Final = ("<!-- index: written by `just accept` -->\n", "<!-- end of index -->\n")
PASSED_ON: Final[Mapping[str, str]] = {
    "src/pgsluice/cli/main.py main": "the operating system's words about a file",
    "src/pgsluice/cli/main.py _usage_error": "typer's words about the command line",
    "src/pgsluice/config.py _target": "the words of check_target_name, at a place in the file",
    "src/pgsluice/pipeline/devdb/launcher.py _wait_while_starting": "the supervisor's error, from a file",
    "src/pgsluice/pipeline/devdb/script.py _statements": "the parser's words about a required file",
    "src/pgsluice/pipeline/devdb/script.py _failure": "PostgreSQL's words about a required file",
    "src/pgsluice/pipeline/fixtures.py _split_then": "the parser's words about a fixture",
    "src/pgsluice/pipeline/live/apply.py refuse_broken_sum": "what verify finds",
    "src/pgsluice/pipeline/sources/advice.py load_error": "PostgreSQL's words about a schema file",
    "src/pgsluice/pipeline/sources/advice.py _not_offered": "PostgreSQL's words about a schema file",
    "src/pgsluice/pipeline/sources/advice.py _undefined": "PostgreSQL's words about a schema file",
    "src/pgsluice/pipeline/sources/bodies.py body_error": "PostgreSQL's words about a function's body",
    "src/pgsluice/pipeline/sources/parse.py _syntax_error": "the parser's words about a schema file",
    "src/pgsluice/pipeline/template_environment.py template_error": "Jinja's words about a template",
    "src/pgsluice/pipeline/template_environment.py _fail": "the words of a project's own macro",
}
"""Places whose message is somebody else's, with whose; the catalogue says so in prose."""

NOT_PROVOKED: Final[Mapping[str, str]] = {}
"""Messages that no test asserts, with the reason."""


SHORTEST_ENTRY: Final = 40
FEW: Final = 15
"""As many messages may go without a test."""


def test_every_message_has_words_of_its_own() -> None:
    missing = [
        f"{one}\n  say it where it is made, or add {place(one)!r} to PASSED_ON with whose words they are"
        for one in messages()
        if not one.is_fixed and place(one) not in PASSED_ON
    ]
    assert not missing, report("messages without a word of their own", missing)


def test_every_message_is_in_the_catalogue() -> None:
    known = {one for entry in entries() for one in about(entry)}
    missing = [
        f"{one}\n  add to a page of docs/errors/ (or findings.md): ### `{one.text}`"
        f"\n  Exit code {one.exit_code}. What it means. What to do."
        for one in fixed()
        if one not in known
    ]
    assert not missing, report("messages that the catalogue lacks", missing)


def test_every_message_is_asserted_by_a_test() -> None:
    missing = [
        f"{one}\n  provoke it and assert the whole error; no string of a test holds {shown(one)} on one line"
        for one in fixed()
        if one not in asserted() and one.text not in NOT_PROVOKED
    ]
    assert not missing, report("messages that no test asserts", missing)


def test_every_entry_is_of_a_message() -> None:
    stale = [str(entry) for entry in entries() if not about(entry)]
    assert not stale, report("entries of no message: correct or remove them", stale)


def test_every_entry_has_the_exit_code_and_says_something() -> None:
    wrong = []
    for entry in entries():
        codes = {int(one.exit_code) for one in about(entry)}
        if entry.anchor is not None and not codes <= entry.codes:
            wrong.append(f"{entry}\n  begin the text with: Exit code {' or '.join(map(str, sorted(codes)))}.")
        if len(entry.says) < SHORTEST_ENTRY:
            wrong.append(f"{entry}\n  say what it means and what to do")
    assert not wrong, report("entries to complete", wrong)


def test_every_entry_has_an_anchor_of_its_own() -> None:
    anchors = [f"{entry.page}#{entry.anchor}" for entry in entries() if entry.anchor is not None]
    assert [one for one, count in Counter(anchors).items() if count > 1] == []


def test_every_page_is_in_the_contents() -> None:
    text = INDEX.read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"(errors/{page.name})" not in text] == []


def test_exemptions_are_few_and_still_needed() -> None:
    places = {place(one) for one in messages() if not one.is_fixed}
    assert sorted(PASSED_ON.keys() - places) == []
    unasserted = {one.text for one in fixed() if one not in asserted()}
    assert sorted(NOT_PROVOKED.keys() - unasserted) == []
    assert len(NOT_PROVOKED) <= FEW


def test_the_index_lists_every_entry(golden: Callable[[Path, str], None]) -> None:
    before, mark, rest = INDEX.read_text(encoding="utf-8").partition(INDEX_MARKS[0])
    _, end, after = rest.partition(INDEX_MARKS[1])
    assert (mark, end) == INDEX_MARKS
    listed = sorted((entry for entry in entries() if entry.anchor), key=lambda one: sort_key(one.text))
    lines = (f"- [`{entry.text}`]({link(entry)}) {codes(entry)}\n" for entry in listed)
    golden(INDEX, "".join((before, mark, "\n", *lines, "\n", end, after)))


@cache
def messages() -> tuple[Message, ...]:
    """The messages of the package."""
    return read_messages()


@cache
def fixed() -> tuple[Message, ...]:
    """The messages of which some words are known."""
    return tuple(one for one in messages() if one.is_fixed)


@cache
def entries() -> tuple[Entry, ...]:
    """The entries of all pages."""
    pages = (entry for page in (INDEX, *PAGES) for entry in read_page(page, root=ROOT))
    return (*pages, *read_findings(FINDINGS, root=ROOT))


@cache
def about(entry: Entry) -> tuple[Message, ...]:
    """The messages that an entry is about."""
    return tuple(of_entry(entry.text, fixed()))


@cache
def asserted() -> frozenset[Message]:
    """The messages that stand in some test."""
    lines = asserted_lines(ROOT / "tests", root=ROOT)
    return frozenset(one for line in lines for one in of_line(line, fixed()))


def place(message: Message) -> str:
    """A name of a place that lasts when lines move."""
    return f"{message.file} {message.function}"


def shown(message: Message) -> str:
    """The words that a test must hold."""
    return " … ".join(repr(part) for part in message.parts if part is not None)


def report(what: str, lines: list[str]) -> str:
    """A list that says how long it is."""
    return "\n".join((f"{len(lines)} {what}:", *lines))


def sort_key(text: str) -> str:
    """Sorts by the first word that is not a placeholder."""
    return re.sub(r"^(<[^<>]*>|\W)+", "", text).casefold()


def link(entry: Entry) -> str:
    """Leads from the index to an entry."""
    page = (ROOT / entry.page).relative_to(INDEX.parent).as_posix() if entry.page != INDEX_PAGE else ""
    return f"{page}#{entry.anchor}"


def codes(entry: Entry) -> str:
    """Its exit codes."""
    return " or ".join(map(str, sorted(entry.codes)))
