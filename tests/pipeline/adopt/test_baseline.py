"""The baseline of what the planner refuses: the schema files' own statements, proved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgsluice.config import Target
from pgsluice.errors import FindingError
from pgsluice.pipeline.adopt.baseline import write_loaded
from pgsluice.pipeline.states import States, read_states
from tests.conftest import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer


def silent(_text: str) -> None:
    """Drop progress."""


@pytest.fixture
def states(tmp_path: Path, open_server: Callable[[str], DevServer]) -> States:
    """A schema of two files that load in one order alone."""
    schema = tmp_path / "schema"
    schema.mkdir()
    (schema / "a.sql").write_text("create view app.v as select 1 as x from app.t;")
    (schema / "b.sql").write_text("create schema app; create table app.t (id int);")
    target = Target(
        name="app",
        schema_dir=schema,
        migrations_dir=tmp_path / "migrations",
        templates_dir=tmp_path / "templates",
        manages=("*",),
    )
    return read_states(open_server(EMBEDDED), target, (), root=tmp_path, progress=silent)


def test_the_statements_stand_in_the_order_in_which_they_load(states: States) -> None:
    assert write_loaded(states, progress=silent) == (
        "-- adopted by pgsluice from a database; do not edit\n\n"
        "set local check_function_bodies = off;\n\n"
        "create schema app;\n\n"
        "create table app.t (id int);\n\n"
        "create view app.v as select 1 as x from app.t;\n"
    )


def test_statements_that_fail_as_a_migration_are_no_baseline(states: States) -> None:
    turned = replace(states.source, statements=states.source.statements[::-1])
    with pytest.raises(FindingError) as caught:
        write_loaded(replace(states, source=turned), progress=silent)
    assert str(caught.value) == (
        'the baseline does not run\n  relation "app.t" does not exist (SQLSTATE 42P01)'
    )


def test_statements_that_give_another_catalog_are_no_baseline(states: States) -> None:
    fewer = replace(states.source, statements=states.source.statements[:-1])
    with pytest.raises(FindingError) as caught:
        write_loaded(replace(states, source=fewer), progress=silent)
    assert str(caught.value) == (
        "the baseline does not give what the schema files give\n  view app.v: missing"
    )
