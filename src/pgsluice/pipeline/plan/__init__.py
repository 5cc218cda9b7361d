"""From two catalogs to one ordered plan."""

from pgsluice.pipeline.plan.assemble import make_plan

__all__ = ["make_plan"]
