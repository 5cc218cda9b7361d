"""Every upgrade fixture of this repository's targets, on every server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.config import load_project
from pgsluice.pipeline.fixtures import Fixture, read_fixtures, split_history
from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.proving import run_one_fixture
from pgsluice.pipeline.upgrade import MigrationText

if TYPE_CHECKING:
    from pgsluice.config import Target
    from pgsluice.pipeline.devdb import DevServer

ROOT: Final = Path(__file__).parent.parent
PROJECT: Final = load_project(ROOT)
FIXTURES: Final = [
    pytest.param(target, fixture, id=f"{target.name}/{fixture.from_version}/{fixture.name}")
    for target in PROJECT.targets
    for fixture in read_fixtures(ROOT / "tests/upgrades" / target.name, root=ROOT)
]


@pytest.mark.parametrize(("target", "fixture"), FIXTURES)
def test_upgrade_goes_as_the_fixture_says(target: Target, fixture: Fixture, server: DevServer) -> None:
    before, after = split_history(fixture, read_history(target.migrations_dir))
    texts = [MigrationText(one.filename, one.path.read_text(encoding="utf-8")) for one in after]
    run_one_fixture(PROJECT, target, fixture=fixture, before=before, texts=texts, server=server)
