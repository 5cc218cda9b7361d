"""Hazards that the text alone shows, without a database."""

from pgsluice.pipeline.lint.hazards.checks import check_hazards
from pgsluice.pipeline.lint.hazards.context import Context

__all__ = ["Context", "check_hazards"]
