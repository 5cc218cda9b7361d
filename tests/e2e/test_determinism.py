"""The same project gives the same bytes anywhere, and what one server wrote proves on the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.client import apply_migration, dump_schema
from tests.conftest import SERVERS, server_url
from tests.e2e.project import InProcess, Project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pgsluice.pipeline.devdb import DevServer
    from tests.e2e.conftest import MakeProject

RICH: Final = Path(__file__).with_name("rich")
CONFIG: Final = '[targets.app]\nversioning = "sequence"\nmanages = ["app"]\n'
ENVIRONMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "c_kathmandu": {"LC_ALL": "C", "LANG": "C", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "1"},
    "turkish": {
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "tr_TR.UTF-8",
        "TZ": "America/St_Johns",
        "PYTHONHASHSEED": "2",
        "PYTHONUTF8": "0",
    },
    "libpq": {
        "PGDATESTYLE": "German, DMY",
        "PGTZ": "Pacific/Chatham",
        "PGOPTIONS": "-c search_path=nowhere -c quote_all_identifiers=on -c standard_conforming_strings=off "
        "-c intervalstyle=iso_8601 -c extra_float_digits=-15 -c bytea_output=escape",
        "PGCLIENTENCODING": "LATIN1",
        "PGHOST": "nowhere.invalid",
    },
}
EDITS: Final[Mapping[str, tuple[str, str]]] = {
    "users.sql": (
        "name text not null,",
        "name text not null,\n  nick varchar(30),\n  score int default 7 not null,",
    ),
    "types.sql": ("('new', 'paid',", "('new', 'held', 'paid',"),
    "is_ok.sql": ("in (1, 2, 3)", "in (1, 2, 3, 4)"),
    "functions.sql": ("new.made := now();", "new.made := clock_timestamp();"),
    "views.sql": ("u.name, (o.total)", "u.name, u.nick, (o.total)"),
    "orders.sql": ("placed date not null,", "placed date not null,\n  note text default 'ä {{ x }} %s',"),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, dev: str) -> Mapping[str, bytes]:
    """What both builds write in the environment as it is."""
    return built(InProcess(tmp_path_factory.mktemp("usual"), dev))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment_does_not_show_in_the_bytes(
    tmp_path: Path, dev: str, expected: Mapping[str, bytes], name: str
) -> None:
    project = Project(tmp_path / "another name ü", dev, ENVIRONMENTS[name])
    project.root.mkdir()
    assert built(project, reverse=True) == expected


@pytest.mark.parametrize("spec", SERVERS)
def test_what_one_server_wrote_proves_on_the_others(
    make: MakeProject, open_server: Callable[[str], DevServer], spec: str
) -> None:
    origin = open_server(spec)
    written = InProcess(make(config=CONFIG).root, server_url(origin))
    built(written)
    for other in SERVERS:
        server = open_server(other)
        project = InProcess(written.root, server_url(server))
        project.ok("diff", "--check")
        fresh = make(config=CONFIG, name=f"fresh on {server.major}")
        for name, text in schema(edited=True).items():
            fresh.write(f"schema/app/{name}", text)
        InProcess(fresh.root, server_url(server)).ok("build", "whole")
        with server.clone(None) as applied, server.clone(None) as loaded:
            for path in project.migrations():
                apply_migration(applied, path)
            apply_migration(loaded, fresh.migrations()[0])
            assert dump_schema(applied) == dump_schema(loaded)


def built(project: Project, *, reverse: bool = False) -> Mapping[str, bytes]:
    """Build the rich schema and an edit of it; returns the files that the builds wrote."""
    project.write("pgsluice.toml", CONFIG)
    for edited, name in ((False, "first"), (True, "second")):
        files = schema(edited=edited)
        for file in sorted(files, reverse=reverse):
            project.write(f"schema/app/{file}", files[file])
        project.ok("build", name)
    return {name: content for name, content in project.contents().items() if name.startswith("migrations/")}


def schema(*, edited: bool) -> Mapping[str, str]:
    """The files of the rich schema."""
    files = {name: (RICH / name).read_text("utf-8") for name in os.listdir(RICH)}
    if not edited:
        return files
    for name, (old, new) in EDITS.items():
        assert old in files[name], name
        files[name] = files[name].replace(old, new, 1)
    return files
