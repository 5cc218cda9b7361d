"""Lint: style, safety and hazards of schema files, templates and migrations, without a database."""
