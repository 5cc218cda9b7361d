"""The extraction of messages sees through the forms in which sources make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.errors import InputError
from tests.errors.asserted import HOLE, asserted_lines
from tests.errors.catalogue import of_entry, of_line, slug
from tests.errors.messages import Message, messages_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

IMPORTS: Final = "from pgsluice.errors import InputError, Location\n"
FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "raise InputError('one')": ("one",),
    "raise InputError(f'no {a} in {b.c}')": ("no <…> in <…>",),
    "raise InputError('a' 'b' + f'c{d}' + e)": ("abc<…>",),
    "raise InputError('yes' if a else f'no {b}')": ("no <…>", "yes"),
    "raise InputError(message='named')": ("named",),
    "raise InputError(f\"it is {'here' if a else 'gone'}\")": ("it is gone", "it is here"),
    "raise InputError(f\"{n} row{'s' if n else ''} left\")": ("<…> row<…> left",),
    "message = f'kept {a}'\nraise InputError(message)": ("kept <…>",),
    "a, message = 1, 'second'\nraise InputError(message)": ("second",),
    "texts = []\ntexts.append('one')\ntexts.append('two')\nraise InputError('; '.join(texts))": (
        "one",
        "two",
    ),
    "raise InputError('{} of {}'.format(a, b))": ("<…> of <…>",),
    "raise InputError(WORDS)": ("of the module",),
    "raise InputError(told(a))": ("told",),
    "return error(f'from {a}')": ("from <…>",),
    "if wrong := pair(a):\n    raise InputError(wrong[0], hint=wrong[1])": ("first",),
    "raise InputError(str(a))": ("<…>",),
    "raise ValueError('not ours')": (),
}
AROUND: Final = """
WORDS = 'of the module'

def told(a):
    return 'told'

def error(message):
    return InputError(message)

def pair(a):
    if a:
        return None
    return 'first', 'hint'
"""


@pytest.mark.parametrize("form", FORMS)
def test_a_form(form: str) -> None:
    body = "".join(f"    {line}\n" for line in form.split("\n"))
    text = f"{IMPORTS}{AROUND}\n\ndef made(a, b, d, e, n):\n{body}"
    found = messages_of({"src/pgsluice/sample.py": text})
    assert {one.text for one in found if one.function == "made"} == set(FORMS[form])


def test_the_words_of_a_caller_count_at_the_call() -> None:
    text = f"""{IMPORTS}
class File:
    def fail(self, key, message):
        raise InputError(message, location=Location(key))

def check(source):
    source.fail("key", f"{{source}} is wrong")

class OwnError(InputError):
    def __init__(self, name):
        super().__init__(f"own words about {{name}}")

def refuse():
    raise OwnError("x")
"""
    found = messages_of({"src/pgsluice/sample.py": text})
    assert {(one.function, one.line, one.text, int(one.exit_code)) for one in found} == {
        ("check", 8, "<…> is wrong", 2),
        ("__init__", 12, "own words about <…>", 2),
    }


def test_words_of_another_module_are_followed() -> None:
    found = messages_of(
        {
            "src/pgsluice/words.py": "WORDS = 'from far away'",
            "src/pgsluice/parts/__init__.py": "from pgsluice.words import WORDS",
            "src/pgsluice/sample.py": f"{IMPORTS}from pgsluice.parts import WORDS\n"
            "def made():\n    raise InputError(f'{WORDS} and here')\n",
        }
    )
    assert [one.text for one in found] == ["from far away and here"]


def message(*parts: str | None) -> Message:
    return Message("a.py", 1, "f", InputError.exit_code, parts)


FOLDER: Final = message(None, " is not a folder")
SCHEMA: Final = message("schema folder ", None, " is not a folder")


def test_a_line_is_about_the_message_with_the_most_words() -> None:
    assert of_line("error: schema folder x is not a folder", [FOLDER, SCHEMA]) == [SCHEMA]
    assert of_line("error: /x is not a folder", [FOLDER, SCHEMA]) == [FOLDER]
    assert of_line(f"{HOLE} is not a folder", [FOLDER, SCHEMA]) == [FOLDER]
    assert of_line("x is no folder", [FOLDER, SCHEMA]) == []


def test_an_entry_names_what_its_message_leaves_open() -> None:
    assert of_entry("<path> is not a folder", [FOLDER, SCHEMA]) == [FOLDER]
    assert of_entry("schema folder <path> is not a folder", [FOLDER, SCHEMA]) == [SCHEMA]
    assert of_entry("<what> is not a folder at all", [FOLDER, SCHEMA]) == []


def test_an_entry_leaves_open_what_its_messages_name() -> None:
    both = [message("begin", " has no place"), message("vacuum has no place")]
    assert of_entry("<statement> has no place", both) == both


def test_strings_of_tests_are_read_by_line_and_without_docstrings(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        '"""docstring of it"""\ndef f(a):\n'
        "    assert said == f'first {a} line\\nsecond' ' line' + a + ' its end'\n"
        "    pytest.raises(E, match=r'^escaped \\(text\\)$')\n"
    )
    (tmp_path / "case.toml").write_text('refused = "column \\"a\\" is in use"\n')
    assert asserted_lines(tmp_path, root=tmp_path) == {
        f"first {HOLE} line",
        f"second line{HOLE} its end",
        r"^escaped \(text\)$",
        "^escaped (text)$",
        'refused = "column "a" is in use"',
    }


def test_an_anchor_is_the_one_that_readers_link_to() -> None:
    assert slug("<file> holds a NUL byte, or `x_y`: why") == "file-holds-a-nul-byte-or-x_y-why"
