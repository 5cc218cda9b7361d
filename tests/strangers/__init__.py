"""Schemas that others published, adopted, upgraded and applied with data."""
