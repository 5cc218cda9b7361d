"""Declarative schema-diff build pipeline for PostgreSQL."""

__version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """The version, looked up when it is asked for: that takes 10 ms, which `verify` can do without."""
    if name == "__version__":
        from importlib.metadata import version

        return version("pgsluice")
    raise AttributeError(f"module {__name__} has no attribute {name}")
