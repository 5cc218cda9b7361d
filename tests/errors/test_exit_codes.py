"""Each exit code is given by a real command, in a process of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.cli.main import COMMANDS
from pgsluice.errors import ExitCode
from tests.e2e.project import SEQUENCE, Project
from tests.errors.messages import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES: Final = {"schema/app/users.sql": "create table users (user_id bigint primary key);\n"}


@dataclass(frozen=True, slots=True)
class Ended:
    """A command, what it works on, and how its message begins."""

    arguments: tuple[str, ...]
    says: str
    files: Mapping[str, str] = field(default_factory=dict)
    dev: str = "embedded"


ENDED: Final[Mapping[ExitCode, Ended]] = {
    ExitCode.OK: Ended(("verify",), ""),
    ExitCode.FINDING: Ended(("verify",), "error: schema/app was never built\n", FILES),
    ExitCode.USAGE: Ended(
        ("build", "Not a name"), "error: a migration's name is made of a-z, 0-9 and _, not"
    ),
    ExitCode.UNREACHABLE: Ended(
        ("build", "first"),
        "error: cannot reach the dev server at 127.0.0.1:1\n",
        FILES,
        "postgresql://me@127.0.0.1:1/postgres",
    ),
    ExitCode.REFUSED: Ended(
        ("build", "first"),
        "error: the migrations of target app are not as they were recorded\n",
        {**FILES, "migrations/app/0001_x.sql": "select 1;\n"},
    ),
}


@pytest.mark.parametrize("code", ExitCode)
def test_an_exit_code(code: ExitCode, tmp_path: Path) -> None:
    ended = ENDED[code]
    project = Project(tmp_path, ended.dev)
    project.write("pgsluice.toml", SEQUENCE)
    for name, text in ended.files.items():
        project.write(name, text)
    done = project.run(*ended.arguments)
    assert done.code == code, str(done)
    assert done.stderr.startswith(ended.says)


def test_of_several_codes_the_order_is_2_3_4_1() -> None:
    ordered = [ExitCode.USAGE, ExitCode.UNREACHABLE, ExitCode.REFUSED, ExitCode.FINDING]
    assert [ExitCode.of_all(reversed(ordered[place:])) for place in range(5)] == [*ordered, ExitCode.OK]


def test_the_table_has_every_command() -> None:
    page = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z].*?) \|", page, re.MULTILINE)
    named = {words.split()[0] for row in rows for words in re.findall(r"`([^`]+)`", row)}
    assert COMMANDS.keys() <= named
