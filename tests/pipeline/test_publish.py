"""All or none: errors, kills at every step, and two writers at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from pgsluice.errors import InputError
from pgsluice.pipeline.publish import StaleError, project_lock, publish_files, recover

OLD: dict[str, bytes] = {"m/1_a.sql": b"old a\n", "m/atlas.sum": b"old sum\n", "m/3_gone.sql": b"gone\n"}
NEW: dict[str, bytes | None] = {
    "m/1_a.sql": b"new a\n",
    "m/atlas.sum": b"new sum\n",
    "m/3_gone.sql": None,
    "t/deep/2_b.sql": b"new b\n",
}


def fill(root: Path, files: dict[str, bytes]) -> None:
    """Write the old state."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def tree(root: Path) -> dict[str, bytes]:
    """All files but pgsluice's own."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".pgsluice" not in path.parts
    }


def publish_new(root: Path) -> None:
    """Go from the old state to the new one."""
    publish_files(root, {root / name: content for name, content in NEW.items()})


AFTER = {name: content for name, content in NEW.items() if content is not None}


def test_files_are_written_and_deleted(tmp_path: Path) -> None:
    fill(tmp_path, OLD)
    publish_new(tmp_path)
    assert tree(tmp_path) == AFTER
    assert sorted(path.name for path in (tmp_path / ".pgsluice").iterdir()) == [".gitignore", "lock"]
    assert (tmp_path / ".pgsluice/.gitignore").read_text() == "*\n"


def test_nothing_to_write_writes_nothing(tmp_path: Path) -> None:
    publish_files(tmp_path, {})
    assert tree(tmp_path) == {}


def test_modes_are_kept(tmp_path: Path) -> None:
    fill(tmp_path, OLD)
    (tmp_path / "m/1_a.sql").chmod(0o640)
    mask = os.umask(0o027)
    try:
        publish_new(tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "m/1_a.sql").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "t/deep/2_b.sql").stat().st_mode) == 0o640


def test_a_file_that_changed_meanwhile_stops_it(tmp_path: Path) -> None:
    fill(tmp_path, OLD)
    path = tmp_path / "m/atlas.sum"
    with pytest.raises(StaleError) as raised:
        publish_files(tmp_path, {path: b"x"}, expect={path: b"something else"})
    assert str(raised.value) == (
        "m/atlas.sum: the file changed while this command ran\nhint: run the command again"
    )
    with pytest.raises(StaleError):
        publish_files(tmp_path, {path: b"x"}, expect={path: None})
    with pytest.raises(StaleError):
        publish_files(tmp_path, {path: b"x"}, expect={tmp_path / "m/9_new.sql": b""})
    assert tree(tmp_path) == OLD
    publish_files(tmp_path, {path: b"x"}, expect={path: b"old sum\n", tmp_path / "m/9_new.sql": None})
    assert path.read_bytes() == b"x"


def test_nothing_is_written_outside_of_the_project(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    fill(root, OLD)
    (root / "link").symlink_to(outside)
    (root / "m/1_a.sql").unlink()
    (root / "m/1_a.sql").symlink_to(outside / "victim")
    for name, message in (
        ("../outside/x", "lies outside of the project"),
        ("link/x", "lies outside of the project"),
        (".pgsluice/lock", "lies outside of the project"),
        ("m/1_a.sql", "m/1_a.sql: not a regular file, so it is not replaced"),
        ("m", "m: not a regular file, so it is not replaced"),
    ):
        with pytest.raises(InputError, match=message):
            publish_files(root, {root / "m/2_b.sql": b"", root / name: b"bad"})
    assert not any(outside.iterdir())
    assert not (root / "m/2_b.sql").exists()


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    fill(tmp_path, OLD)
    (tmp_path / "file").write_text("")
    files = {tmp_path / name: content for name, content in NEW.items()}
    with pytest.raises(InputError) as raised:
        publish_files(tmp_path, files | {tmp_path / "file/x.sql": b"no folder"})
    assert str(raised.value) == "file/x.sql: cannot write: File exists"
    assert tree(tmp_path) == OLD | {"file": b""}
    assert sorted(path.name for path in (tmp_path / ".pgsluice").iterdir()) == [".gitignore", "lock"]


CALLS = ("replace", "unlink", "fsync", "mkdir", "open", "close", "rmdir", "write")

# Publishes once for each given folder, in a fork that kills itself just before its nth call to the system.
VICTIM = """
import os, signal, sys
from pathlib import Path
repository, names, *folders = sys.argv[1:]
sys.path.insert(0, repository)
from tests.pipeline.test_publish import publish_new

def deadly(real):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return call

for left, folder in enumerate(folders, 1):
    if (child := os.fork()) == 0:
        for name in names.split():
            setattr(os, name, deadly(getattr(os, name)))
        publish_new(Path(folder))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def kill_before(names: tuple[str, ...], roots: list[Path]) -> list[bool]:
    """Publish into each root, killed before the first, second, … of these calls; whether it was killed."""
    for root in roots:
        fill(root, OLD)
    repository = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", VICTIM, repository, " ".join(names), *map(str, roots)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    statuses = [int(line) for line in done.stdout.split()]
    assert set(statuses) <= {0, -signal.SIGKILL}
    return [status != 0 for status in statuses]


def test_a_kill_at_any_step_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    roots = [tmp_path / str(call) for call in range(150)]
    killed = kill_before(CALLS, roots)
    outcomes = []
    for root in roots:
        recover(root)
        assert tree(root) in (OLD, AFTER), f"a mix after call {root.name}"
        assert not (root / ".pgsluice/journal.json").exists()
        assert not (root / ".pgsluice/staging").exists()
        outcomes.append(tree(root) == AFTER)
    assert outcomes == sorted(outcomes), "once the journal stands, every later kill ends in the new state"
    assert killed[0]
    assert not outcomes[0]
    assert not killed[-1], "more steps than the test has kills"
    assert killed == sorted(killed, reverse=True)


def test_a_kill_is_repaired_by_the_next_publication_too(tmp_path: Path) -> None:
    roots = [tmp_path / str(call) for call in range(60)]
    kill_before(CALLS, roots)
    for root in roots:
        publish_files(root, {root / "m/atlas.sum": b"newest\n"})
        assert tree(root) in (OLD | {"m/atlas.sum": b"newest\n"}, AFTER | {"m/atlas.sum": b"newest\n"})


def test_what_the_user_did_since_is_left_alone(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("journal", "first file", "second file")]
    kill_before(("replace",), roots)
    assert tree(roots[2]) == OLD | {"m/1_a.sql": b"new a\n"}
    fill(roots[2], OLD)  # as `git checkout .` does
    recover(roots[2])
    assert tree(roots[2]) == OLD
    assert not (roots[2] / ".pgsluice/journal.json").exists()


def test_recovering_a_tidy_project_touches_nothing(tmp_path: Path) -> None:
    recover(tmp_path)
    assert not (tmp_path / ".pgsluice").exists()


def test_a_journal_of_nonsense_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".pgsluice").mkdir()
    (tmp_path / ".pgsluice/journal.json").write_text("{")
    with pytest.raises(InputError) as raised:
        recover(tmp_path)
    assert str(raised.value) == (
        ".pgsluice/journal.json: the journal of an interrupted command cannot be read\n"
        "hint: rm .pgsluice/journal.json"
    )


def append(root: Path, text: str) -> int:
    """Add a line to a file, starting over when another process was faster; the number of attempts."""
    path = root / "log"
    for attempt in range(1, 1000):
        before = path.read_bytes() if path.exists() else None
        try:
            publish_files(root, {path: (before or b"") + text.encode()}, expect={path: before})
        except StaleError:
            continue
        return attempt
    raise AssertionError("never got its turn")


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        pending = [pool.submit(append, tmp_path, f"{number}\n") for number in range(20)]
        for each in pending:
            each.result(timeout=60)
    assert sorted((tmp_path / "log").read_text().split(), key=int) == [str(number) for number in range(20)]


def test_the_lock_nests_and_is_let_go(tmp_path: Path) -> None:
    with project_lock(tmp_path), project_lock(tmp_path):
        publish_files(tmp_path, {tmp_path / "a": b"1"})
    with project_lock(tmp_path):
        assert tree(tmp_path) == {"a": b"1"}
