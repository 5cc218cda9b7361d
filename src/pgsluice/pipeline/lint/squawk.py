"""squawk over migrations: all files in one process, as copies, so that it sees what we parsed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.finding import migration_name
from pgsluice.pipeline.lint.model import GENERATED, Engine, LintFinding, Severity
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgsluice.pipeline.lint.script import Script

CONFIG_NAME: Final = ".squawk.toml"
PROGRAM: Final = "squawk"
SYNTAX: Final = "syntax-error"
TIMEOUT_S: Final = 120
CLEAN_CODES: Final = frozenset({0, 1})
ERRORS: Final = frozenset({"ban-drop-database", "identifier-too-long"})

BUILT_ONLINE: Final = frozenset(
    {
        "adding-foreign-key-constraint",
        "adding-not-nullable-field",
        "constraint-missing-not-valid",
        "disallowed-unique-constraint",
        "require-concurrent-index-creation",
        "require-concurrent-index-deletion",
    }
)
_UNUSED: Final = "apply it when no running code uses the object any more"
RECIPES: Final = {
    "ban-drop-column": _UNUSED,
    "ban-drop-function": _UNUSED,
    "ban-drop-not-null": "apply it when all running code takes nulls",
    "ban-drop-table": _UNUSED,
    "ban-drop-type": _UNUSED,
    "ban-drop-view": _UNUSED,
    "changing-column-type": "add a column of the new type, fill it, drop the old one in a later migration",
    "renaming-column": "add the new column, keep both filled, and drop the old one in a later migration",
    "renaming-table": "rename it, and leave a view of the old name until no running code uses that",
}

# squawk reads it anywhere in a file; without it, it takes each file for one transaction
NO_TRANSACTION: Final = "\n-- squawk-disable-assume-in-transaction\n"

_KEYS: Final = frozenset(
    {"assume_in_transaction", "excluded_paths", "excluded_rules", "included_rules", "pg_version"}
)


@dataclass(frozen=True, slots=True)
class SquawkConfig:
    """The packaged settings with the project's own on top of them."""

    excluded: tuple[str, ...]
    included: tuple[str, ...]
    excluded_paths: tuple[str, ...]
    postgres: str

    def leaves_out(self, name: str) -> bool:
        """Whether the project excludes a file."""
        return any(fnmatch(name, pattern) for pattern in self.excluded_paths)

    @property
    def key(self) -> str:
        """Everything that changes what squawk says."""
        return json.dumps([version("squawk-cli"), self.excluded, self.included, self.postgres])


def squawk_config(root: Path | None, *, postgres: int) -> SquawkConfig:
    """Read the settings; `postgres` is the lowest major that the project names.

    The project's `.squawk.toml` adds to the packaged exclusions, takes back those that it includes, and may
    name another version.

    Raises:
        InputError: The project's file cannot be read.
    """
    packaged = tomllib.loads(
        files("pgsluice.pipeline.lint").joinpath("resources", "squawk.toml").read_text("utf-8")
    )
    own = _read(root / CONFIG_NAME) if root is not None else {}
    included = _strings(own, "included_rules")
    excluded = {*_strings(packaged, "excluded_rules"), *_strings(own, "excluded_rules")}
    kept = excluded - (set(included) - set(_strings(own, "excluded_rules")))
    return SquawkConfig(
        excluded=tuple(sorted(kept)),
        included=included,
        excluded_paths=_strings(own, "excluded_paths"),
        postgres=str(own.get("pg_version", f"{postgres}.0")),
    )


def run_squawk(scripts: Sequence[Script], config: SquawkConfig) -> dict[str, list[LintFinding]]:
    """What squawk says about each file, by the file's name.

    Raises:
        InputError: squawk does not start, or refuses its settings.
    """
    results: dict[str, list[LintFinding]] = {script.file.name: [] for script in scripts}
    if not scripts:
        return results
    with tempfile.TemporaryDirectory(prefix="pgsluice-lint-") as folder:
        copies = {f"{number}.sql": script for number, script in enumerate(scripts)}
        for copy, script in copies.items():
            end = "" if script.transactional else NO_TRANSACTION
            Path(folder, copy).write_text(script.sql + end, encoding="utf-8", newline="")
        for entry in _findings(folder, config):
            script = copies[os.path.basename(str(entry["file"]))]
            results[script.file.name].append(_finding(entry, script))
    return results


def _findings(folder: str, config: SquawkConfig) -> list[dict[str, object]]:
    Path(folder, CONFIG_NAME).write_text("", encoding="utf-8")  # else it looks in the folders above
    command = [
        _program(),
        "--reporter",
        "json",
        "--assume-in-transaction",
        f"--pg-version={config.postgres}",
        *(f"--exclude={rule}" for rule in config.excluded),
        *(f"--include={rule}" for rule in config.included),
        "*.sql",
    ]
    environment = {**os.environ, "SQUAWK_DISABLE_GITHUB_ANNOTATIONS": "1"}
    environment.pop("GITHUB_ACTIONS", None)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode not in CLEAN_CODES or not done.stdout.lstrip().startswith("["):
        problem = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise InputError(
            f"squawk failed: {problem[0]}", details=tuple(problem[1:5]), hint=f"look into {CONFIG_NAME}"
        )
    entries: list[dict[str, object]] = json.loads(done.stdout)
    return entries


def _finding(entry: Mapping[str, object], script: Script) -> LintFinding:
    rule, message = str(entry["rule_name"]), str(entry["message"])
    line = int(str(entry["line"])) + 1
    before = script.file.line(line).encode()[: int(str(entry["column"]))]  # squawk counts bytes
    location = Location(script.file.name, line, len(before.decode(errors="ignore")) + 1)
    if rule == SYNTAX:
        return found("squawk-cannot-parse", f"squawk cannot parse this, PostgreSQL can: {message}", location)
    return LintFinding(
        engine=Engine.SQUAWK,
        rule=rule,
        severity=Severity.ERROR if rule in ERRORS else Severity.WARNING,
        message=message.split(". ", maxsplit=1)[0].rstrip("."),
        location=location,
        recipe=_recipe(rule, script, given=str(entry.get("help") or "")),
        end_line=int(str(entry.get("line_end", entry["line"]))) + 1,
    )


def _recipe(rule: str, script: Script, *, given: str) -> str:
    """What to do: for a generated file a command, else squawk's help or ours where it has none."""
    if rule in BUILT_ONLINE and GENERATED in script.sql:
        name = migration_name(os.path.basename(script.file.name))
        return f"pgsluice build {name} --online, if the database is in use meanwhile"
    return given.rstrip(".") or RECIPES.get(rule, "")


def _program() -> str:
    """The program that the squawk-cli package brings, else one on the path.

    Raises:
        InputError: There is none.
    """
    beside = Path(sys.executable).with_name(PROGRAM)
    for candidate in (beside, Path(sysconfig.get_path("scripts"), PROGRAM)):
        if candidate.is_file():
            return str(candidate)
    found_ = shutil.which(PROGRAM)
    if found_ is None:
        raise InputError("squawk is not installed", hint="pip install squawk-cli")
    return found_


def _read(path: Path) -> Mapping[str, object]:
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InputError(f"cannot read the file: {exc}", location=Location(CONFIG_NAME)) from exc
    for key in table:
        if key not in _KEYS and key != "upload_to_github":
            raise InputError(f"unknown key {key}", location=Location(CONFIG_NAME))
    return table


def _strings(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{key} must be a list of strings", location=Location(CONFIG_NAME))
    return tuple(value)
