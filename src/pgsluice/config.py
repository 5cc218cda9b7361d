"""The project's configuration: `pgsluice.toml`, or `[tool.pgsluice]` in `pyproject.toml`.

Unknown keys, wrong types and targets that overlap are errors with the file's line; nothing here needs a
database or a parser of SQL, so that every command can load it at once.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pgsluice.errors import InputError
from pgsluice.tomlfile import TomlFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

CONFIG_NAME: Final = "pgsluice.toml"
PYPROJECT_NAME: Final = "pyproject.toml"
DEV_VARIABLE: Final = "PGSLUICE_DEV"
LOWEST_POSTGRES: Final = 15

_TYPE_NAMES: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "string_pattern_mismatch": "digits in quotes",
    "tuple_type": "a list of strings",
    "model_type": "a table",
    "dict_type": "a table",
}

_TARGET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

Text = Annotated[str, StringConstraints(min_length=1)]
Major = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*$")]


class NoConfigError(InputError):
    """No configuration in a folder or in one above it."""


class Target(BaseModel):
    """One schema folder and the migrations that lead to it; the folders are absolute."""

    model_config = ConfigDict(frozen=True)

    name: str
    schema_dir: Path
    migrations_dir: Path
    templates_dir: Path
    manages: tuple[str, ...]
    requires: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    lock_order: tuple[str, ...] = ()
    versioning: Literal["timestamp", "sequence"] = "timestamp"


class Project(BaseModel):
    """A loaded configuration; `postgres` holds the lowest and the highest major version."""

    model_config = ConfigDict(frozen=True)

    root: Path
    dev: str
    postgres: tuple[int, int]
    targets: tuple[Target, ...]

    def target(self, name: str | None) -> Target:
        """The target called `name`, or the only one there is when `name` is None."""
        names = [target.name for target in self.targets]
        if name is None:
            if len(self.targets) == 1:
                return self.targets[0]
            raise InputError(
                f"this project has several targets: {', '.join(names)}", hint=f"--target {names[0]}"
            )
        for target in self.targets:
            if target.name == name:
                return target
        near = get_close_matches(name, names, n=1) or names[:1]
        raise InputError(
            f"no target is called {name}; there is {', '.join(names)}", hint=f"--target {near[0]}"
        )

    def relative(self, path: Path) -> str:
        """`path` as messages show it: relative to the root with `/`, or unchanged when outside of it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()


class _TargetKeys(BaseModel):
    """What one `[targets.<name>]` table may hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Text | None = Field(default=None, alias="schema")
    migrations: Text | None = None
    templates: Text | None = None
    manages: tuple[Text, ...] | None = None
    requires: tuple[Text, ...] = ()
    ignore: tuple[Text, ...] = ()
    lock_order: tuple[Text, ...] = ()
    versioning: Literal["timestamp", "sequence"] = "timestamp"


class _ProjectKeys(BaseModel):
    """What the whole configuration may hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dev: Text = "embedded"
    postgres: tuple[Major, ...] = ("15", "18")
    targets: dict[str, _TargetKeys] = {}


def load_project(start: Path) -> Project:
    """Find the configuration in `start` or a folder above it, and check it.

    Raises:
        NoConfigError: There is none.
        InputError: It is wrong; the message names file, line and key.
    """
    source, table = _find(start.resolve())
    keys = _validate(source, table)
    root = source.path.parent
    if not keys.targets:
        source.fail(("targets",), "no target is configured", hint="[targets.app]")
    targets = tuple(_target(source, name, root=root, keys=keys) for name in keys.targets)
    _refuse_shared_schemas(source, targets)
    _refuse_shared_folders(source, targets, root=root)
    return Project(
        root=root,
        dev=os.environ.get(DEV_VARIABLE) or keys.dev,
        postgres=_majors(source, keys.postgres),
        targets=targets,
    )


def find_config(folder: Path) -> Path | None:
    """The configuration file that `folder` itself holds, if any."""
    if (folder / CONFIG_NAME).is_file():
        return folder / CONFIG_NAME
    pyproject = folder / PYPROJECT_NAME
    if (
        pyproject.is_file()
        and _tool_table(TomlFile(pyproject, root=folder, prefix=("tool", "pgsluice"))) is not None
    ):
        return pyproject
    return None


def check_target_name(name: str) -> str:
    """`name`, if a target may be called so: it is a folder's name and a word on the command line."""
    if _TARGET_NAME.fullmatch(name) is None:
        raise InputError(f"a target's name is made of letters, digits, _ and -, not {_shown(name)}")
    return name


def _find(start: Path) -> tuple[TomlFile, Mapping[str, object]]:
    """The nearest configuration and its table."""
    if not start.is_dir():
        raise InputError(f"{start} is not a folder")
    for folder in (start, *start.parents):
        own, pyproject = folder / CONFIG_NAME, folder / PYPROJECT_NAME
        table: object = None
        if pyproject.is_file():
            source = TomlFile(pyproject, root=folder, prefix=("tool", "pgsluice"))
            table = _tool_table(source)
        if own.is_file():
            if table is not None:
                source.fail(
                    (), f"[tool.pgsluice] and {CONFIG_NAME} both configure this project: keep one of them"
                )
            source = TomlFile(own, root=folder, prefix=())
            return source, source.parse()
        if table is not None:
            if not isinstance(table, dict):
                source.fail((), "tool.pgsluice must be a table")
            return source, table
    raise NoConfigError(
        f"no {CONFIG_NAME} in {start} or a folder above it",
        hint="pgsluice -C FOLDER, if the project is in another one; pgsluice init starts one here",
    )


def _tool_table(source: TomlFile) -> object:
    """`[tool.pgsluice]` of a `pyproject.toml`, None when it has none."""
    if "pgsluice" not in source.text:
        return None
    tool = source.parse().get("tool")
    return tool.get("pgsluice") if isinstance(tool, dict) else None


def _validate(source: TomlFile, table: Mapping[str, object]) -> _ProjectKeys:
    try:
        return _ProjectKeys.model_validate(table)
    except ValidationError as exc:
        errors = exc.errors(include_url=False)
        unknown = [error for error in errors if error["type"] == "extra_forbidden"]
        _refuse(source, (unknown or errors)[0])


def _refuse(source: TomlFile, error: ErrorDetails) -> NoReturn:
    """Turn one complaint of pydantic's into file, line, key path and what was expected."""
    path = tuple(str(part) for part in error["loc"])
    key = ".".join(path)
    if error["type"] != "extra_forbidden":
        source.fail(path, f"{key} must be {_expected(error)}, not {_shown(error['input'])}")
    fields = (_ProjectKeys if len(path) == 1 else _TargetKeys).model_fields
    known = [field.alias or name for name, field in fields.items()]
    near = get_close_matches(path[-1], known, n=1)
    guess = f", did you mean {near[0]}?" if near else ""
    source.fail(
        path, f"unknown key {key}{guess}", hint=None if near else f"the keys here are {', '.join(known)}"
    )


def _expected(error: ErrorDetails) -> str:
    if error["type"] == "literal_error":
        return str(error.get("ctx", {}).get("expected", "")).replace("'", '"')
    return _TYPE_NAMES.get(error["type"], error["msg"])


def _shown(value: object) -> str:
    """A TOML value as its file would spell it, shortened."""
    text = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
    return text if len(text) <= 60 else f"{text[:57]}..."


def _majors(source: TomlFile, postgres: Sequence[str]) -> tuple[int, int]:
    if len(postgres) != 2:
        shown = _shown(list(postgres))
        source.fail(("postgres",), f'postgres must be a list of two, such as ["15", "18"], not {shown}')
    low, high = int(postgres[0]), int(postgres[1])
    if low > high:
        source.fail(("postgres",), f'postgres must be the lowest major first, not ["{low}", "{high}"]')
    if low < LOWEST_POSTGRES:
        source.fail(
            ("postgres",), f"PostgreSQL {low} is not supported; the lowest major is {LOWEST_POSTGRES}"
        )
    return low, high


def _target(source: TomlFile, name: str, *, root: Path, keys: _ProjectKeys) -> Target:
    own = keys.targets[name]
    try:
        check_target_name(name)
    except InputError as exc:
        source.fail(("targets", name), exc.message)

    def folder(key: str, given: str | None) -> Path:
        return _folder(source, ("targets", name, key), root=root, given=given or f"{key}/{name}")

    return Target(
        name=name,
        schema_dir=folder("schema", own.schema_),
        migrations_dir=folder("migrations", own.migrations),
        templates_dir=folder("templates", own.templates),
        manages=_manages(source, name, keys=keys),
        requires=own.requires,
        ignore=own.ignore,
        lock_order=own.lock_order,
        versioning=own.versioning,
    )


def _manages(source: TomlFile, name: str, *, keys: _ProjectKeys) -> tuple[str, ...]:
    """The PostgreSQL schemas of one target, checked alone."""
    key = ("targets", name, "manages")
    manages = keys.targets[name].manages
    if manages is None:
        if len(keys.targets) > 1:
            source.fail(
                key,
                f"target {name} needs manages, because there are several targets",
                hint=f'manages = ["{name}"]',
            )
        return ("*",)
    if not manages:
        source.fail(key, f"target {name} manages no schema", hint=f'manages = ["{name}"]')
    if twice := [schema for schema, count in Counter(manages).items() if count > 1]:
        source.fail(key, f"target {name} names schema {twice[0]} twice in manages")
    if "*" in manages and len(manages) > 1:
        source.fail(key, f'target {name}: "*" already stands for every schema', hint='manages = ["*"]')
    return manages


def _folder(source: TomlFile, key: tuple[str, ...], *, root: Path, given: str) -> Path:
    """An absolute folder inside the root, also after following symbolic links."""
    path = Path(os.path.normpath(root / given))
    if not path.is_relative_to(root) or not path.resolve().is_relative_to(root):
        source.fail(key, f"{'.'.join(key)} must lie inside the project, not {_shown(given)}")
    return path


def _refuse_shared_schemas(source: TomlFile, targets: Sequence[Target]) -> None:
    for one, other in combinations(targets, 2):
        for schema in other.manages:
            if schema in one.manages or "*" in {schema, *one.manages}:
                owned = "every schema" if "*" in {schema, *one.manages} else f"schema {schema}"
                source.fail(
                    ("targets", other.name, "manages"),
                    f"targets {one.name} and {other.name} both manage {owned}",
                )


def _refuse_shared_folders(source: TomlFile, targets: Sequence[Target], *, root: Path) -> None:
    """No two folders are the same, and none lies inside a schema folder, which is read with all below it."""
    folders = [
        (target.name, key, path)
        for target in targets
        for key, path in (
            ("schema", target.schema_dir),
            ("migrations", target.migrations_dir),
            ("templates", target.templates_dir),
        )
    ]
    for one, other in combinations(folders, 2):
        same = one[2] == other[2]
        nested = (one[1] == "schema" and other[2].is_relative_to(one[2])) or (
            other[1] == "schema" and one[2].is_relative_to(other[2])
        )
        if same or nested:
            left, right = (f"targets.{name}.{key}" for name, key, _ in (one, other))
            verb = "are the same folder" if same else "overlap"
            shown = " and ".join(dict.fromkeys(_relative(path, root) for _, _, path in (one, other)))
            source.fail(("targets", other[0], other[1]), f"{left} and {right} {verb}: {shown}")


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
