"""sqlfluff's settings for a file: the packaged ones, then those of the project's folders down to the file.

Of a folder count `setup.cfg`, `tox.ini`, `.sqlfluff` and `[tool.sqlfluff]` of `pyproject.toml`, as sqlfluff
itself reads them; what lies above the project or in the home of a user does not.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import InputError
from pgsluice.pipeline.lint.model import FileKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PACKAGED: Final[Mapping[FileKind, str]] = {
    FileKind.SCHEMA: "sqlfluff.cfg",
    FileKind.TEMPLATE: "sqlfluff.cfg",
    FileKind.MIGRATION: "sqlfluff-migration.cfg",
}
# sqlfluff breaks long lines of DDL at places where nobody would
NOT_FIXED: Final = ("LT05",)
NAMES: Final = ("setup.cfg", "tox.ini", "pep8.ini", ".sqlfluff", "pyproject.toml")


@lru_cache
def config_key(folder: Path, kind: FileKind, root: Path | None) -> str:
    """Everything that changes what sqlfluff says about a folder's files, without loading sqlfluff."""
    own = [
        path.read_bytes().decode("utf-8", "replace")
        for one in _folders(folder, root)
        for path in (one / name for name in NAMES)
        if path.is_file() and _concerns(path)
    ]
    return json.dumps([version("sqlfluff"), _packaged(PACKAGED[kind]), own])


@lru_cache
def load_config(folder: Path, kind: FileKind, root: Path | None, *, left_out: tuple[str, ...] = ()) -> Any:
    """The configuration of a folder's files; `Any` because sqlfluff's own is typed loosely.

    Args:
        left_out: Rules that are not used, whatever the settings say.

    Raises:
        InputError: A file of the project's is no configuration of sqlfluff's.
    """
    from sqlfluff.core import FluffConfig
    from sqlfluff.core.config.loader import load_config_at_path, load_config_string
    from sqlfluff.core.errors import SQLFluffUserError
    from sqlfluff.core.helpers.dict import nested_combine

    packaged: Any = load_config_string(_packaged(PACKAGED[kind]))
    try:
        own = [load_config_at_path(str(one)) for one in _folders(folder, root)]
        merged: Any = nested_combine(packaged, *own)
        core = merged.setdefault("core", {})
        if kind is FileKind.MIGRATION:
            core["rules"] = packaged["core"]["rules"]
        if left_out:
            core["exclude_rules"] = ",".join(filter(None, (core.get("exclude_rules"), *left_out)))
        core["templater"] = "jinja" if kind is FileKind.TEMPLATE else "raw"
        return FluffConfig(configs=merged)
    except (SQLFluffUserError, KeyError, ValueError) as exc:
        raise refused(exc) from exc


def refused(error: Exception) -> InputError:
    """sqlfluff's complaint about settings as an error of ours."""
    return InputError(f"sqlfluff refuses its configuration: {error}", hint="look into .sqlfluff")


def _folders(folder: Path, root: Path | None) -> tuple[Path, ...]:
    """From the project's root down to the folder."""
    if root is None or not folder.is_relative_to(root):
        return ()
    return tuple(one for one in (*reversed(folder.parents), folder) if one.is_relative_to(root))


def _concerns(path: Path) -> bool:
    """Whether a file that others use as well speaks of sqlfluff."""
    return path.name == ".sqlfluff" or b"sqlfluff" in path.read_bytes()


@lru_cache
def _packaged(name: str) -> str:
    return files("pgsluice.pipeline.lint").joinpath("resources", name).read_text("utf-8")
