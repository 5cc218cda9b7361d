"""Independent judges of a migration: `pg_dump` and `migra`, which share no code with the catalog snapshot."""

from pgsluice.pipeline.opinion.migra import propose
from pgsluice.pipeline.opinion.second import SecondOpinion, second_opinion

__all__ = ["SecondOpinion", "propose", "second_opinion"]
