"""Which commits meet: the one whose migrations are shared already, and the one that holds yours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError

if TYPE_CHECKING:
    from pgsluice.pipeline.branches.git import Repository

TRUNKS: Final = ("main", "master")
SHORT: Final = 10


class Operation(StrEnum):
    """What git is in the middle of."""

    NONE = ""
    MERGE = "merge"
    REBASE = "rebase"
    CHERRY_PICK = "cherry-pick"


@dataclass(frozen=True, slots=True)
class Refs:
    """Two commits: `shared` comes first, `mine` after it; `name` is how messages call the shared one.

    `base` is where they went apart, if git knows.
    """

    shared: str
    name: str
    mine: str
    base: str | None
    operation: Operation


def find_refs(repository: Repository, onto: str | None) -> Refs:
    """The commits that meet, from what git is doing, or from the branch that others build on.

    Raises:
        InputError: `onto` is no commit, or nothing says which migrations are shared already.
    """
    head = repository.commit("HEAD")
    if head is None:
        raise InputError("the repository has no commit yet", hint="git commit")
    operation, other = _operation(repository)
    if onto is not None:
        shared = repository.commit(onto)
        if shared is None:
            raise InputError(f"git knows no commit {onto}", hint="git branch --all")
        name = onto
    else:
        shared, name = _shared(repository, operation, head=head, other=other)
    mine = _mine(repository, operation, shared=shared, head=head, other=other)
    return Refs(shared, name, mine, repository.merge_base(shared, mine), operation)


def _operation(repository: Repository) -> tuple[Operation, str | None]:
    """What git is doing, and the commit that it brings to `HEAD`."""
    for folder in ("rebase-merge", "rebase-apply"):
        if repository.state_file(f"{folder}/onto") is not None:
            return Operation.REBASE, repository.commit("REBASE_HEAD")
    if (commit := repository.commit("MERGE_HEAD")) is not None:
        return Operation.MERGE, commit
    if (commit := repository.commit("CHERRY_PICK_HEAD")) is not None:
        return Operation.CHERRY_PICK, commit
    return Operation.NONE, None


def _shared(repository: Repository, operation: Operation, *, head: str, other: str | None) -> tuple[str, str]:
    if operation is Operation.REBASE:
        onto = repository.state_file("rebase-merge/onto") or repository.state_file("rebase-apply/onto")
        assert onto is not None
        return onto, _name_of(repository, onto)
    branch = repository.symbolic("HEAD")
    if operation is Operation.CHERRY_PICK:
        return head, branch or head[:SHORT]
    if operation is Operation.MERGE and other is not None:
        upstream = repository.commit(f"origin/{branch}")
        pulled = upstream is not None and repository.is_ancestor(other, upstream)
        if branch in _trunks(repository) and not pulled:
            return head, branch or head[:SHORT]
        return other, _name_of(repository, other)
    return _trunk(repository, head=head, branch=branch)


def _trunk(repository: Repository, *, head: str, branch: str | None) -> tuple[str, str]:
    """The newest state of the branch that others build on, of those that `HEAD` holds."""
    names = [f"origin/{name}" for name in _trunks(repository)]
    names += [name for name in _trunks(repository) if name != branch]
    known = [(commit, name) for name in names if (commit := repository.commit(name)) is not None]
    if not known:
        raise InputError(
            "nothing says which migrations are shared already: git has no main, master or origin",
            hint="pgsluice rebase --onto BRANCH, or name your own: pgsluice rebase FILE",
        )
    merged = [one for one in known if repository.is_ancestor(one[0], head)]
    newest = [
        one for one in merged if not any(repository.is_ancestor(one[0], c) and c != one[0] for c, _ in merged)
    ]
    return (newest or known)[0]


def _trunks(repository: Repository) -> tuple[str, ...]:
    """Names of the branch that others build on; the one that the server names comes first."""
    named = repository.symbolic("refs/remotes/origin/HEAD")
    first = [named.removeprefix("origin/")] if named else []
    return tuple(dict.fromkeys((*first, *TRUNKS)))


def _mine(repository: Repository, operation: Operation, *, shared: str, head: str, other: str | None) -> str:
    """The commit whose lock knows of the migrations that are yours."""
    if operation is Operation.MERGE and other is not None:
        return other if repository.is_ancestor(head, shared) else head
    return other or head


def _name_of(repository: Repository, commit: str) -> str:
    """A branch that stands at a commit, or the commit itself."""
    for trunk in _trunks(repository):
        for name in (trunk, f"origin/{trunk}"):
            if repository.commit(name) == commit:
                return name
    return repository.branch_at(commit) or commit[:SHORT]
