"""What belongs to a folder that more than one branch, or another tool, writes: rebase and rehash."""

from pgsluice.pipeline.branches.rebase import Rebased, RebaseOutcome, rebase_target

__all__ = ["RebaseOutcome", "Rebased", "rebase_target"]
