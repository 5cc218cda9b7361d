"""Independent judges of a migration: `pg_dump` and `migra`, which share no code with the catalog snapshot."""

from pgsluice.pipeline.opinion.migra import SecondDiff, refuse_second_diff, second_diff
from pgsluice.pipeline.opinion.second import SecondOpinion, second_opinion

__all__ = ["SecondDiff", "SecondOpinion", "refuse_second_diff", "second_diff", "second_opinion"]
