"""The pages about linting: rules are documented, YAML parses, and every command in them exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # no stubs among the tools

from pgsluice.cli.main import COMMANDS
from pgsluice.pipeline.lint.rules import RULES

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = tuple(ROOT / "docs/how-to" / f"{name}.md" for name in ("lint", "pre-commit", "ci"))
REFERENCE: Final = ROOT / "docs/reference/lint-rules.md"
HOOKS: Final = ROOT / ".pre-commit-hooks.yaml"
CONFIG: Final = ROOT / ".pre-commit-config.yaml"

FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"(?:^|[\s`/])(pgsluice (?:[a-z]+)(?: [^`\n]*)?)")
ROW: Final = re.compile(r"^\| `([a-z-]+)` \| (\w+) \| (.*?) \| (.*?) \|$", re.MULTILINE)
RUN_WORDS: Final = ("run", "script", "entry")


def test_every_rule_is_documented_as_it_is() -> None:
    rows = {code: rest for code, *rest in ROW.findall(REFERENCE.read_text("utf-8"))}
    assert rows == {rule.code: [rule.severity, rule.why, rule.recipe] for rule in RULES.values()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_yaml_of_a_page_parses_and_its_commands_exist(page: Path) -> None:
    fences = FENCE.findall(page.read_text("utf-8"))
    documents = [yaml.safe_load(body) for language, body in fences if language == "yaml"]
    assert all(isinstance(document, dict) for document in documents)
    commands = [command for document in documents for command in commands_of(document)]
    commands += [
        line.removeprefix("$ ")
        for language, body in fences
        if language == "console"
        for line in body.splitlines()
        if line.startswith("$ pgsluice")
    ]
    commands += re.findall(r"`(pgsluice [a-z][^`\n]*)`", page.read_text("utf-8"))
    assert commands
    for command in commands:
        check_command(command)


def test_hooks_run_commands_that_exist_and_have_the_documented_names() -> None:
    hooks = yaml.safe_load(HOOKS.read_text("utf-8"))
    assert [hook["id"] for hook in hooks] == ["pgsluice-lint", "pgsluice-verify"]
    own = yaml.safe_load(CONFIG.read_text("utf-8"))
    for hook in (*hooks, *own["repos"][0]["hooks"]):
        if "pgsluice" in hook["entry"]:
            check_command(hook["entry"].removeprefix(".venv/bin/"))


def commands_of(value: Any) -> list[str]:  # Any: YAML
    """The command lines that a CI file's steps, scripts and hooks run."""
    if isinstance(value, dict):
        found = []
        for key, item in value.items():
            lines = item if isinstance(item, list) else [item]
            if key in RUN_WORDS:
                found += [line.removeprefix(".venv/bin/") for line in lines if "pgsluice " in str(line)]
            else:
                found += commands_of(item)
        return [line for line in found if line.startswith("pgsluice")]
    if isinstance(value, list):
        return [command for item in value for command in commands_of(item)]
    return []


def check_command(command: str) -> None:
    """Whether the command is there and knows each of the options."""
    program, name, *words = shlex.split(re.sub(r" -C \S+", "", command))
    assert (program, name in COMMANDS) == ("pgsluice", True), command
    for word in words:
        if word.startswith("-"):
            assert re.search(rf"(?<![\w-]){re.escape(word.split('=')[0])}(?![\w-])", help_of(name)), command


@lru_cache
def help_of(name: str) -> str:
    """What a command says about itself."""
    done = subprocess.run(
        [sys.executable, "-m", "pgsluice", name, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout
