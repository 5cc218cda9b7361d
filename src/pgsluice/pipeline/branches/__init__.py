"""What belongs to a folder that more than one branch, or another tool, writes: rebase and rehash."""

from pgsluice.pipeline.branches.judge import Change, FileChange
from pgsluice.pipeline.branches.rebase import Rebased, RebaseOutcome, rebase_target
from pgsluice.pipeline.branches.rehash import Rehashed, rehash_target

__all__ = [
    "Change",
    "FileChange",
    "RebaseOutcome",
    "Rebased",
    "Rehashed",
    "rebase_target",
    "rehash_target",
]
