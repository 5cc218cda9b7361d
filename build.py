"""Regenerates the migrations of every target of this repository: `python build.py`.

What happens to each target, straight through, no stage reaching back:

    config     pyproject.toml           which folders, which PostgreSQL schemas, which server
    sources    schema/<target>/         SQL files, one object each, put in order by the names that they use
    devdb      a scratch server         *from*: the migrations so far, replayed; *to*: the schema, loaded
    diff       two catalogs             what is different, as the server itself prints it
    plan       statements               ordered by phase and dependency, measured on a clone of *from*
    render     templates/<target>/      hand-written sections around the generated statements
    proof      a clone of *from*        the file, run as psql would; its result must equal *to*
    publish    migrations/<target>/     the migration, atlas.sum and pgsluice.lock: all of them, or none

A target whose files are as of their last proved build costs nothing. One whose schema changed while no
migration is open needs a name: `pgsluice build NAME --target TARGET`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pgsluice.config import load_project
from pgsluice.errors import ExitCode, PipelineError
from pgsluice.pipeline.build import build_target
from pgsluice.pipeline.publish import recover


def build_all(root: Path) -> None:
    """Build each target in the order of the configuration; the first error ends it."""
    project = load_project(root)
    recover(project.root)
    for target in project.targets:
        result = build_target(project, target, progress=lambda text: _say(f"  {text}"))
        _say(f"{target.name}: {result.outcome} {result.migration or ''}".rstrip())


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    """Build, and turn an error into text and exit code."""
    try:
        build_all(Path(__file__).parent)
    except PipelineError as error:
        _say(f"error: {error}")
        return error.exit_code
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
