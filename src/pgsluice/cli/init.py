"""`pgsluice init`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from pgsluice.cli.output import JsonOption, emit, progress, session
from pgsluice.errors import InputError, Location

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  pgsluice init                        a project in this folder, with the target app
  pgsluice init db --target shop       a project in db, with the target shop
  $EDITOR schema/app/users.sql         then say what the database is
  pgsluice build first                 and get the migration that makes it
  pgsluice init --from "$DATABASE_URL"     a project that is what a database is
  pgsluice init --from "$DATABASE_URL" --schema app --schema audit
  pgsluice init --from "$DATABASE_URL" --ignore 'pgmq.q_*' --ignore 'pgmq.a_*'

\b
Exit codes:
  0 written                       1 the files would not give what the database has
  2 wrong input, or the dev server lacks an extension
  3 the database cannot be read   4 the baseline cannot be built, or a file would hold a secret"""

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
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="URL", help="Adopt this database; it is only read.", show_default=False),
]
SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema", metavar="NAME", help="A PostgreSQL schema to adopt; all but the system's if left out."
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="PATTERN", help="Objects that stay out, such as 'pgmq.q_*'."),
]
RequiresOption = Annotated[
    list[str] | None,
    typer.Option(
        "--requires", metavar="ENTRY", help="An SQL file or recipe that brings a part of the database."
    ),
]
DevOption = Annotated[
    str,
    typer.Option("--dev", metavar="SERVER", help="The server for scratch databases, as in pgsluice.toml."),
]
PostgresOption = Annotated[
    str | None,
    typer.Option(
        "--postgres",
        metavar="LOW-HIGH",
        help="The majors that migrations must run on; from the database's to the dev server's if left out.",
        show_default=False,
    ),
]


@app.command(epilog=EXAMPLES)
def init(
    ctx: typer.Context,
    folder: FolderArgument = None,
    *,
    target: NewTargetOption = "app",
    source: FromOption = None,
    schema: SchemaOption = None,
    ignore: IgnoreOption = None,
    requires: RequiresOption = None,
    dev: DevOption = "embedded",
    postgres: PostgresOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a project: empty, or from an existing database.

    Writes pgsluice.toml, schema/<target>/ and lines in .gitattributes that keep checksums the same on every
    machine. Refuses to overwrite a configuration.

    With --from, schema/<target>/ holds one object a file, and migrations/<target>/ a baseline that was proved
    to make all of it. The files are loaded and compared with the database before anything is written; what
    they leave out is listed.
    """
    root = (session(ctx).folder / (folder or ".")).resolve()
    if source is None:
        _refuse_alone(schema=schema, ignore=ignore, requires=requires, postgres=postgres)
        written = start_project(root, target=target, dev=dev)
        emit(
            {"root": str(root), "target": target, "wrote": written},
            "\n".join(
                [
                    *(f"wrote {name}" for name in written),
                    *([f"next: cd {folder}"] if folder else []),
                    f"next: describe a table in schema/{target}/, one object a file, then: "
                    "pgsluice build first",
                ]
            ),
            as_json=as_json,
        )
        return
    from pgsluice.cli.adopted import adopted_json, adopted_text
    from pgsluice.pipeline.adopt import Wish, write_adopted

    wish = Wish(
        url=_source(source),
        target=target,
        schemas=tuple(schema or ("*",)),
        ignore=tuple(ignore or ()),
        requires=tuple(requires or ()),
        dev=dev,
        postgres=majors(postgres) if postgres is not None else None,
    )
    with progress() as shown:
        attributes = root / ".gitattributes"
        content = _with_attributes(attributes)
        beside = {} if content is None else {attributes: content}
        adopted = write_adopted(root, wish, beside=beside, progress=shown)
    names = (*adopted.files, *(path.name for path in beside))
    emit(
        adopted_json(adopted, root, target=target, wrote=names),
        adopted_text(adopted, target=target, folder=folder, wrote=names),
        as_json=as_json,
    )


def _source(given: str) -> str:
    """The database to adopt."""
    from pgsluice.pipeline.live.database import EXAMPLE_URL, database_url

    if not given.strip():
        raise InputError("--from names no database: is the variable in it set?", hint=f"--from {EXAMPLE_URL}")
    return database_url(given, option="--from ")


def majors(text: str) -> tuple[int, int]:
    """Lowest and highest major of `15-18`, or of `17` alone.

    Raises:
        InputError: It is neither.
    """
    low, dash, high = text.partition("-")
    if not low.isdecimal() or (dash and not high.isdecimal()) or (dash and int(low) > int(high)):
        raise InputError(f"--postgres is two majors such as 15-18, not {text}", hint="--postgres 15-18")
    return int(low), int(high or low)


def _refuse_alone(**options: object) -> None:
    """Options that say something about a database need one."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"--{given[0]} needs --from", hint='pgsluice init --from "$DATABASE_URL"')


def start_project(root: Path, *, target: str, dev: str = "embedded") -> list[str]:
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
    config = CONFIG.replace("TARGET", target).replace('"embedded"', json.dumps(dev), 1)
    files = {root / CONFIG_NAME: config.encode()}
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
