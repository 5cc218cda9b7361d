"""Writing an adopted project: all of its files, or none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pgsluice.config import check_target_name, find_config
from pgsluice.errors import InputError, Location
from pgsluice.pipeline.adopt.adopt import adopt_database
from pgsluice.pipeline.publish import publish_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pgsluice.pipeline.adopt.wish import Adopted, Progress, Wish


def write_adopted(root: Path, wish: Wish, *, beside: Mapping[Path, bytes], progress: Progress) -> Adopted:
    """Adopt a database and write the project.

    Args:
        root: The project's folder; made when it is missing.
        wish: The database and what to take of it.
        beside: Further files to write with it.
        progress: Gets a line for each stage that may take long.

    Raises:
        InputError: A project or schema files are there already.
        PipelineError: As `adopt_database` does; nothing was written.
    """
    check_target_name(wish.target)
    _refuse_existing(root, wish.target)
    with _folder(root):
        adopted = adopt_database(root, wish, progress=progress)
        progress("writing the files")
        files = {root / name: content for name, content in adopted.files.items()}
        publish_files(root, {**files, **beside}, expect=dict.fromkeys(files))
        (root / "schema" / wish.target).mkdir(parents=True, exist_ok=True)
    return adopted


def _refuse_existing(root: Path, target: str) -> None:
    """Refuse to mix an adopted schema with what somebody wrote."""
    if (existing := find_config(root)) is not None:
        raise InputError("there is a configuration already", location=Location(existing.name))
    for folder in (root / "schema", root / "migrations" / target):
        for path in sorted(folder.rglob("*.sql")) if folder.is_dir() else ():
            raise InputError(
                "there are SQL files already, which an adopted schema would mix with",
                location=Location(path.relative_to(root).as_posix()),
                hint="adopt into an empty folder: pgsluice init FOLDER --from URL",
            )


@contextmanager
def _folder(root: Path) -> Iterator[None]:
    """The project's folder, made for the block, and taken away again if that fails."""
    missing = [path for path in (root, *root.parents) if not path.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise InputError(f"cannot make {root}: {exc.strerror}") from exc
    try:
        yield
    except BaseException:
        for path in missing:
            if not any(path.iterdir()):
                path.rmdir()
        raise
