"""The README's commands work, and the migration that it shows is the one that a build writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.client import pgsluice
from tests.conftest import EMBEDDED, server_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.devdb import DevServer

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
SET_UP: Final = "python3 -m venv .venv && "
DEMO: Final = f"{SET_UP}.venv/bin/pip install -e . && .venv/bin/pgsluice demo"
TESTS: Final = f"{SET_UP}.venv/bin/pip install -e '.[dev]' && .venv/bin/python -m pytest"
EDIT: Final = "edit of schema/app/users.sql"
TEMPLATE: Final = "templates/app/add_email.sql.j2"
MIGRATION: Final = "migrations/app/0002_add_email.sql"
CONFIG: Final = '[targets.app]\nversioning = "sequence"\n'


def test_readme_has_exactly_two_set_up_commands() -> None:
    found = [line for line in README.read_text("utf-8").splitlines() if line.startswith(SET_UP)]
    assert found == [DEMO, TESTS]


def test_gate_runs_the_test_command_of_the_readme() -> None:
    assert TESTS in (ROOT / ".ci/run").read_text("utf-8").splitlines()


def test_demo_runs_in_an_empty_folder(tmp_path: Path, open_server: Callable[[str], DevServer]) -> None:
    done = pgsluice(tmp_path, "demo", dev=server_url(open_server(EMBEDDED)))
    assert done.returncode == 0, done.stderr
    assert "alter table" in done.stdout.lower()


def test_example_is_refused_without_its_template(
    tmp_path: Path, open_server: Callable[[str], DevServer]
) -> None:
    dev = server_url(open_server(EMBEDDED))
    start_example(tmp_path, dev)
    done = pgsluice(tmp_path, "build", "add_email", dev=dev)
    assert done.returncode == 4
    assert TEMPLATE in done.stderr


def test_example_is_what_a_build_writes(
    tmp_path: Path, open_server: Callable[[str], DevServer], golden: Callable[[Path, str], None]
) -> None:
    dev = server_url(open_server(EMBEDDED))
    start_example(tmp_path, dev)
    template = tmp_path / TEMPLATE
    template.parent.mkdir(parents=True)
    template.write_text(example(TEMPLATE), encoding="utf-8")
    done = pgsluice(tmp_path, "build", "add_email", dev=dev)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / MIGRATION).read_text("utf-8")
    golden(README, README.read_text("utf-8").replace(fence(MIGRATION), fence(MIGRATION, body=written)))


def start_example(project: Path, dev: str) -> None:
    """A project whose history has the table as it was, and whose schema has it as edited."""
    (project / "pgsluice.toml").write_text(CONFIG, encoding="utf-8")
    schema = project / "schema/app/users.sql"
    schema.parent.mkdir(parents=True)
    schema.write_text(edited("-"), encoding="utf-8")
    done = pgsluice(project, "build", "first", dev=dev)
    assert done.returncode == 0, done.stderr
    schema.write_text(edited("+"), encoding="utf-8")


def edited(side: str) -> str:
    """One side of the edit that the README shows."""
    return "".join(line[1:] for line in example(EDIT).splitlines(keepends=True) if line[0] in {" ", side})


def example(name: str) -> str:
    """The body of the fenced block that the README calls `name`."""
    found = re.search(
        rf"<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```\n", README.read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    return found[1]


def fence(name: str, *, body: str | None = None) -> str:
    """The migration's whole fenced block, with another body if one is given."""
    return f"<!-- example: {name} -->\n```sql\n{example(name) if body is None else body}```\n"
