"""Root and ordinary users, with and without a home, with and without shared memory."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.project import SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

USERS: Final = "create table users (\n  user_id bigint primary key,\n  name text\n);\n"
ACCOUNT: Final = "daemon"
TIMEOUT_S: Final = 180

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of the ordinary user's own."""
    account = pwd.getpwnam(ACCOUNT)
    folder = Path(tempfile.mkdtemp(prefix="sluice-user-", dir="/tmp"))
    schema = folder / "project/schema/app/users.sql"
    schema.parent.mkdir(parents=True)
    schema.write_text(USERS)
    (folder / "project/pgsluice.toml").write_text(SEQUENCE)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    yield folder
    shutil.rmtree(folder)


HOMES: Final[Mapping[str, Mapping[str, str]]] = {
    "no_home": {},
    "home_not_writable_and_no_shared_memory": {"HOME": "/usr", "PGSLUICE_DEV_STORAGE": "disk"},
}


@pytest.mark.parametrize("home", HOMES)
def test_ordinary_user_builds(place: Path, home: str) -> None:
    given = {"PATH": "/usr/bin:/bin", "PGSLUICE_RUNTIME_DIR": str(place / "run"), **HOMES[home]}
    for arguments in (("build", "first"), ("verify",), ("dev", "stop")):
        done = run_as(ACCOUNT, arguments, folder=place / "project", environment=given)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (place / "project/migrations/app/0001_first.sql").stat().st_uid == pwd.getpwnam(ACCOUNT).pw_uid


def test_project_that_cannot_be_written_is_said(place: Path) -> None:
    for path in (place, *place.rglob("*")):
        os.chown(path, 0, 0)
        path.chmod(0o755 if path.is_dir() else 0o644)
    given = {"PATH": "/usr/bin:/bin", "PGSLUICE_RUNTIME_DIR": f"/tmp/{place.name}-run"}
    done = run_as(ACCOUNT, ("build", "first"), folder=place / "project", environment=given)
    assert done.returncode in (2, 3), done.stdout + done.stderr
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    shutil.rmtree(f"/tmp/{place.name}-run", ignore_errors=True)


def run_as(
    account: str, arguments: tuple[str, ...], *, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody else, with nothing in the environment but what is given."""
    found = pwd.getpwnam(account)
    packages = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [python_of_everybody(), "-m", "pgsluice", *arguments],
        cwd=folder,
        env={"PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        user=found.pw_uid,
        group=found.pw_gid,
        extra_groups=(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def python_of_everybody() -> str:
    """This Python, or the system's of the same version when this one is under a closed /root."""
    folders = Path(sys.executable).resolve().parents
    if all(folder.stat().st_mode & 0o001 for folder in folders):
        return sys.executable
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not Path(f"/usr/bin/{name}").exists():
        pytest.skip(f"no {name} that everybody may run")
    return f"/usr/bin/{name}"
