"""What git knows of a project, asked through its plumbing commands; nothing is written."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TIMEOUT_S: Final = 60
BLOBS: Final = frozenset({b"100644", b"100755", b"120000"})

_PLAIN: Final = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
}
_OF_HOOKS: Final = frozenset({"GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"})
"""Set by git for its hooks, relative to another folder than the one that is asked about."""

_OF_PATHS: Final = frozenset({"GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_NOGLOB_PATHSPECS"})
"""Ways to read paths that exclude the literal one."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree of git's; `top` is its uppermost folder."""

    top: Path

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names, None when there is none."""
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return done.stdout.decode().strip() or None if done.returncode == 0 else None

    def symbolic(self, name: str) -> str | None:
        """The short name of the branch that a symbolic reference stands for, such as `main` for `HEAD`."""
        done = self._run("symbolic-ref", "--quiet", "--short", name)
        return os.fsdecode(done.stdout).strip() if done.returncode == 0 else None

    def branch_at(self, commit: str) -> str | None:
        """The short name of a branch that stands at a commit."""
        listed = self._checked(
            "for-each-ref", "--format=%(refname:short)", f"--points-at={commit}", "refs/heads", "refs/remotes"
        )
        return os.fsdecode(listed).split("\n")[0] or None

    def state_file(self, name: str) -> str | None:
        """The first line of a file that git keeps while it is at work, None when there is none."""
        done = self._checked("rev-parse", "--git-path", name)
        path = self.top / os.fsdecode(done).rstrip("\n")
        try:
            lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return lines[0].strip() if lines else None

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Whether a commit is part of another one's history."""
        return self._run("merge-base", "--is-ancestor", commit, of).returncode == 0

    def is_shallow(self) -> bool:
        """Whether the clone lacks old commits, so that what it says of histories may be wrong."""
        return self._run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"

    def merge_base(self, one: str, other: str) -> str | None:
        """Where two histories went apart."""
        done = self._run("merge-base", one, other)
        return done.stdout.decode().split()[0] if done.returncode == 0 else None

    def read_folder(self, commit: str, folder: Path) -> dict[str, bytes]:
        """The files below a folder in a commit, by path in that folder with `/`."""
        prefix = self._prefix(folder)
        listed = self._checked("ls-tree", "-r", "-z", "--full-tree", commit, "--", prefix or ".")
        ids: dict[str, bytes] = {}
        for line in filter(None, listed.split(b"\0")):
            facts, _, path = line.partition(b"\t")
            mode, _, blob = facts.split()
            if mode in BLOBS:
                ids[os.fsdecode(path).removeprefix(prefix + "/")] = blob
        contents = self._read_blobs(ids.values())
        return {name: contents[blob] for name, blob in ids.items()}

    def unmerged(self, folders: Iterable[Path]) -> Mapping[str, frozenset[int]]:
        """Paths below folders that git holds in conflict, with the sides that have the file: 2 and 3.

        Paths are relative to the top.
        """
        prefixes = [self._prefix(folder) for folder in folders]
        listed = self._checked("ls-files", "--unmerged", "-z", "--full-name", "--", *prefixes)
        found: dict[str, set[int]] = {}
        for line in filter(None, listed.split(b"\0")):
            facts, _, path = line.partition(b"\t")
            found.setdefault(os.fsdecode(path), set()).add(int(facts.split()[2]))
        return {path: frozenset(stages - {1}) for path, stages in found.items()}

    def _prefix(self, folder: Path) -> str:
        real = folder.parent.resolve() / folder.name
        return "" if real == self.top else real.relative_to(self.top).as_posix()

    def _read_blobs(self, ids: Iterable[bytes]) -> dict[bytes, bytes]:
        wanted = sorted(set(ids))
        answer = self._checked("cat-file", "--batch", given=b"".join(one + b"\n" for one in wanted))
        found, position = {}, 0
        for blob in wanted:
            end = answer.index(b"\n", position)
            *_, size = answer[position:end].split()
            if not size.isdigit():
                raise self._failed("cat-file", answer[position:end])
            found[blob] = answer[end + 1 : end + 1 + int(size)]
            position = end + int(size) + 2
        return found

    def _checked(self, *arguments: str, given: bytes = b"") -> bytes:
        done = self._run(*arguments, given=given)
        if done.returncode:
            raise self._failed(arguments[0], done.stderr)
        return done.stdout

    def _failed(self, command: str, said: bytes) -> InputError:
        return InputError(
            f"git {command} failed in {self.top}",
            details=tuple(os.fsdecode(said).strip().splitlines()[:5]),
            hint="git fsck",
        )

    def _run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return run_git(self.top, *arguments, given=given)


def find_repository(folder: Path) -> Repository | None:
    """The repository that holds `folder`; None without one, or without git.

    Raises:
        InputError: There is one, and git refuses to read it.
    """
    try:
        done = run_git(folder, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return None
    if done.returncode == 0:
        return Repository(Path(os.fsdecode(done.stdout).removesuffix("\n")).resolve())
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    raise InputError(
        f"git cannot read the repository of {folder}",
        details=tuple(os.fsdecode(done.stderr).strip().splitlines()[:5]),
    )


def run_git(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """One command in `folder`, in plain words and without questions."""
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=given,
        env={name: value for name, value in os.environ.items() if name not in _OF_HOOKS | _OF_PATHS} | _PLAIN,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
