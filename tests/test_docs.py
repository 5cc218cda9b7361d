"""The documentation says what the code does: commands, codes, findings, hazards, keys; no link is dead."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.cli.main import COMMANDS
from pgsluice.errors import ExitCode
from pgsluice.pipeline.finding import FindingCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parents[1]
REFERENCE: Final = ROOT / "docs/reference"
PAGES: Final = tuple(
    sorted(
        page
        for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "tests/cases/*.md")
        for page in ROOT.glob(pattern)
    )
)
SUBCOMMANDS: Final = {"dev": ("stop",)}
LINK: Final = re.compile(r"\[[^\]]*\]\((?!https?://)([^)#\s]+)[^)]*\)")
HAZARD: Final = re.compile(r'Hazard\(\s*"([a-z-]+)"')
VALUE: Final = re.compile(r"<[^>]*>|…|pgsluice\.migrations|atlas\.sum")
ROW: Final = re.compile(r"^\| `([^`]+)`", re.MULTILINE)


def test_cli_reference_is_what_help_says(golden: Callable[[Path, str], None]) -> None:
    sections = ["# Commands\n\nWritten by `just docs` from the commands' own help.\n"]
    for words in (
        (),
        *((name,) for name in COMMANDS),
        *((top, sub) for top, subs in SUBCOMMANDS.items() for sub in subs),
    ):
        title = " ".join(("pgsluice", *words))
        sections.append(f"## {title}\n\n```text\n{help_of(*words)}```\n")
    golden(REFERENCE / "cli.md", "\n".join(sections))


def test_every_exit_code_is_documented() -> None:
    rows = re.findall(r"^\| (\d) \| `(\w+)`", (REFERENCE / "exit-codes.md").read_text("utf-8"), re.MULTILINE)
    assert {(int(number), name) for number, name in rows} == {(int(code), code.name) for code in ExitCode}


def test_every_finding_is_documented() -> None:
    assert rows_of("findings.md") == set(FindingCode)


def test_every_hazard_is_documented() -> None:
    sources = (ROOT / "src/pgsluice/pipeline").rglob("*.py")
    used = {code for source in sources for code in HAZARD.findall(source.read_text("utf-8"))}
    assert rows_of("hazards.md") == used


def test_every_key_is_documented() -> None:
    from pgsluice.config import _ProjectKeys, _TargetKeys

    fields = {**_ProjectKeys.model_fields, **_TargetKeys.model_fields}
    keys = {field.alias or name for name, field in fields.items()}
    assert keys == {row for row in rows_of("config.md") if '"' not in row}


def test_every_documented_note_is_printed() -> None:
    sources = (ROOT / "src/pgsluice").rglob("*.py")
    said = "\n".join(text for source in sources for text in texts_of(source))
    pieces = {row: max(VALUE.split(row), key=len).strip() for row in rows_of("notes.md")}
    assert [row for row, piece in pieces.items() if piece not in said] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert broken == []


def rows_of(page: str) -> set[str]:
    """The words in code font that start a table's rows."""
    return set(ROW.findall((REFERENCE / page).read_text("utf-8")))


def texts_of(source: Path) -> Iterator[str]:
    """The strings of a module, with a mark in place of each value."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "\0" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def help_of(*words: str) -> str:
    """What a command's `--help` prints, 100 columns wide."""
    done = subprocess.run(
        [Path(sys.executable).with_name("pgsluice"), *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"COLUMNS": "100", "LINES": "50", "PATH": "", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines()) + "\n"
