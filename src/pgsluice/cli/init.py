"""`pgsluice init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from pgsluice.cli.output import JsonOption, emit, session
from pgsluice.errors import InputError, Location

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice init                        a project in this folder, with the target app
  pgsluice init db --target shop       a project in db, with the target shop
  $EDITOR schema/app/users.sql         then say what the database is
  pgsluice build first                 and get the migration that makes it"""

CONFIG: Final = """\
dev = "embedded"            # where builds are proved; or "local:/usr/lib/postgresql/17/bin", or a URL
postgres = ["15", "18"]     # the lowest and the highest major that migrations must run on

[targets.TARGET]
schema = "schema/TARGET"
migrations = "migrations/TARGET"
templates = "templates/TARGET"
manages = ["*"]             # the PostgreSQL schemas that this target owns: all, or a list of names
"""

ATTRIBUTES: Final = (
    "*.sql text eol=lf",
    "*.sql.j2 text eol=lf",
    "atlas.sum text eol=lf",
    "pgsluice.lock text eol=lf",
)

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="Where; the current folder if left out.")
]
NewTargetOption = Annotated[str, typer.Option("--target", "-t", metavar="NAME", help="The target's name.")]


@app.command(epilog=EXAMPLES)
def init(
    ctx: typer.Context,
    folder: FolderArgument = None,
    target: NewTargetOption = "app",
    as_json: JsonOption = False,
) -> None:
    """Start a project: configuration, and an empty folder for the schema.

    Writes pgsluice.toml, schema/<target>/ and lines in .gitattributes that keep checksums the same on every
    machine. Refuses to overwrite a configuration.
    """
    root = (session(ctx).folder / (folder or ".")).resolve()
    written = start_project(root, target=target)
    emit(
        {"root": str(root), "target": target, "wrote": written},
        "\n".join(
            [
                *(f"wrote {name}" for name in written),
                *([f"next: cd {folder}"] if folder else []),
                f"next: describe a table in schema/{target}/, one object a file, then: pgsluice build first",
            ]
        ),
        as_json=as_json,
    )


def start_project(root: Path, *, target: str) -> list[str]:
    """Write a new project and return what was written, relative to `root`."""
    from pgsluice.config import CONFIG_NAME, check_target_name, find_config
    from pgsluice.pipeline.publish import publish_files

    check_target_name(target)
    if (existing := find_config(root)) is not None:
        raise InputError("there is a configuration already", location=Location(existing.name))
    schema = root / "schema" / target
    try:
        schema.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise InputError(f"cannot make {schema}: {exc.strerror}") from exc
    files = {root / CONFIG_NAME: CONFIG.replace("TARGET", target).encode()}
    attributes = root / ".gitattributes"
    if (content := _with_attributes(attributes)) is not None:
        files[attributes] = content
    publish_files(root, files)
    return [*(path.name for path in files), f"schema/{target}/"]


def _with_attributes(path: Path) -> bytes | None:
    """The attributes file with our lines, None when it has them."""
    text = path.read_bytes() if path.exists() else b""
    present = {line.strip() for line in text.decode("utf-8", "replace").splitlines()}
    missing = [line for line in ATTRIBUTES if line not in present]
    if not missing:
        return None
    gap = b"\n" if text and not text.endswith(b"\n") else b""
    return text + gap + "".join(f"{line}\n" for line in missing).encode()
