"""Writes the SQL of one PGMQ release, as its Python package carries it, into a schema folder.

    python states.py 1.1.3 schema/pgmq/pgmq.sql      # PGMQ 1.11.1
    python states.py 1.1.4 schema/pgmq/pgmq.sql      # PGMQ 1.13.0

The package comes from the package index by `pip download`; nothing is installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SQL_IN_WHEEL = "pgmq/sql/pgmq.sql"


def download_wheel(version: str, folder: Path) -> Path:
    """Fetch the wheel of `pgmq==version` into `folder` and return its path."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, f"pgmq=={version}"], check=True)
    return next(folder.glob(f"pgmq-{version}-*.whl"))


def read_state(wheel: Path) -> str:
    """The SQL that the wheel carries, without psql's meta-commands.

    A release may start with an extension's guard (`\\echo Use "CREATE EXTENSION …" \\quit`), which is
    for psql and no SQL.
    """
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(SQL_IN_WHEEL).decode("utf-8")
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(("\\echo", "\\quit"))
    )


def main() -> int:
    """Read the arguments, write the file, and say what was written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("version", help="version of the pgmq package, such as 1.1.4")
    parser.add_argument("output", type=Path, help="file to write, such as schema/pgmq/pgmq.sql")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = read_state(download_wheel(arguments.version, Path(folder)))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text, encoding="utf-8", newline="\n")
    sys.stdout.write(f"{arguments.output}: {len(text.splitlines())} lines\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
