"""Declarative schema-diff build pipeline for PostgreSQL."""

from importlib.metadata import version

__version__ = version("pgsluice")

__all__ = ["__version__"]
