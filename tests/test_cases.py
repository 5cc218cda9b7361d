"""Every diff case: built through the command line, applied to data on every server, judged by PostgreSQL."""

from __future__ import annotations

import io
import tomllib
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.cli.main import EXIT_BUG, main
from pgsluice.pipeline.snapshot import Snapshot, compare, read_snapshot
from tests.client import apply_migration, dump_schema, psql
from tests.conftest import EMBEDDED, LOCAL, server_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pgsluice.pipeline.devdb import DevServer

CASES: Final = Path(__file__).parent / "cases"
KEYS: Final = {"refused", "hazards", "postgres"}
CONFIG: Final = """\
postgres = ["15", "18"]

[targets.app]
manages = ["*"]
versioning = "sequence"
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One pair of states and what its `case.toml` says; `lowest` is the lowest major that loads it."""

    folder: Path
    refused: str | None
    hazards: frozenset[str] | None
    lowest: int

    def sql(self, name: str) -> str:
        """The text of one of its files."""
        return (self.folder / name).read_text(encoding="utf-8")


def read_case(folder: Path) -> Case:
    """Read `case.toml`, where there is one; an unknown key is an error."""
    path = folder / "case.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if unknown := table.keys() - KEYS:
        raise AssertionError(f"{path}: unknown keys {sorted(unknown)}")
    hazards = table.get("hazards")
    return Case(
        folder=folder,
        refused=table.get("refused"),
        hazards=None if hazards is None else frozenset(hazards),
        lowest=int(table.get("postgres", ">=15").removeprefix(">=")),
    )


ALL: Final = tuple(read_case(path.parent) for path in sorted(CASES.glob("*/before.sql")))
# Kinds that majors print or alter differently; these are built on the older servers, too.
PRINTED_DIFFERENTLY: Final = ("024", "044", "050", "058", "064", "080", "107", "109")
by_name: Final = pytest.mark.parametrize("case", ALL, ids=lambda case: case.folder.name)


@dataclass(frozen=True, slots=True)
class Project:
    """A user's project with one target, whose scratch server is the embedded one."""

    root: Path
    dev: str

    def write_schema(self, text: str) -> None:
        """Make `text` the whole schema."""
        (self.root / "schema/app/all.sql").write_text(text, encoding="utf-8")

    def build(self, name: str, *flags: str) -> tuple[int, str]:
        """Run `pgsluice build` in this process; the exit code and all that it printed."""
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
            patch.setenv("PGSLUICE_DEV", self.dev)
            code = main(["--project", str(self.root), "build", name, *flags])
        assert code != EXIT_BUG, printed.getvalue()
        return code, printed.getvalue()

    def migrations(self) -> frozenset[Path]:
        """The files that builds wrote."""
        return frozenset((self.root / "migrations/app").glob("*.sql"))


@pytest.fixture
def project(tmp_path: Path, open_server: Callable[[str], DevServer]) -> Project:
    """An empty project that builds on the embedded server."""
    return start_project(tmp_path, open_server(EMBEDDED))


def start_project(tmp_path: Path, server: DevServer) -> Project:
    """An empty project that builds on `server`."""
    (tmp_path / "schema/app").mkdir(parents=True)
    (tmp_path / "templates/app").mkdir(parents=True)
    (tmp_path / "pgsluice.toml").write_text(CONFIG, encoding="utf-8")
    return Project(tmp_path, server_url(server))


@by_name
def test_case_migrates_to_an_equal_catalog_and_keeps_its_rows(
    case: Case, project: Project, servers: tuple[DevServer, ...]
) -> None:
    migrate(case, project, servers)


@pytest.mark.parametrize("spec", LOCAL)
@pytest.mark.parametrize(
    "case",
    [case for case in ALL if case.folder.name[:3] in PRINTED_DIFFERENTLY],
    ids=lambda case: case.folder.name,
)
def test_case_built_on_an_installed_server_migrates_all(
    case: Case,
    spec: str,
    tmp_path: Path,
    open_server: Callable[[str], DevServer],
    servers: tuple[DevServer, ...],
) -> None:
    migrate(case, start_project(tmp_path, open_server(spec)), servers)


def migrate(case: Case, project: Project, servers: tuple[DevServer, ...]) -> None:
    """Build both states, apply to each server's database, and build again."""
    base = build_base(case, project)
    if (case.folder / "after.sql.j2").exists():
        (project.root / "templates/app/after.sql.j2").write_text(case.sql("after.sql.j2"), encoding="utf-8")
    project.write_schema(case.sql("after.sql"))
    code, said = project.build("after", "--allow-destructive")
    if case.refused is not None:
        assert (code, project.migrations()) == (4, base), said
        assert case.refused in said
        return
    assert code == 0, said
    new = sorted(project.migrations() - base)
    for server in servers:
        if server.major >= case.lowest:
            check_on(server, case, migrations=new)
    built = project.migrations()
    code, said = project.build("again")
    assert (code, project.migrations()) == (0, built), said


@pytest.mark.parametrize(
    "case", [case for case in ALL if case.lowest > 15], ids=lambda case: case.folder.name
)
def test_case_marked_for_newer_servers_fails_on_older_ones(
    case: Case, servers: tuple[DevServer, ...]
) -> None:
    for server in servers:
        if server.major < case.lowest:
            with (
                pytest.raises(AssertionError, match="ERROR"),
                loaded(server, case, "before.sql"),
                loaded(server, case, "after.sql"),
            ):
                pass


def build_base(case: Case, project: Project) -> frozenset[Path]:
    """Build the history's first migration from `before.sql`, and return the files."""
    project.write_schema(case.sql("before.sql"))
    code, said = project.build("before")
    assert code == 0, said
    return project.migrations()


def check_on(server: DevServer, case: Case, *, migrations: Sequence[Path]) -> None:
    """Apply the migrations to `before.sql` with its rows, and compare with `after.sql`."""
    with loaded(server, case, "before.sql") as have, loaded(server, case, "after.sql") as want:
        if (case.folder / "seed.sql").exists():
            psql(have, f"--file={case.folder / 'seed.sql'}")
        checks = sorted(case.folder.glob("check*.sql"))
        rows = [psql(have, f"--file={check}") for check in checks]
        for migration in migrations:
            apply_migration(have, migration)
        assert dump_schema(have) == dump_schema(want), f"pg_dump differs on {server.description}"
        assert compare(snapshot(have), snapshot(want)) == (), f"snapshots differ on {server.description}"
        assert [psql(have, f"--file={check}") for check in checks] == rows


@contextmanager
def loaded(server: DevServer, case: Case, name: str) -> Iterator[str]:
    """A scratch database with one of the case's states."""
    with server.clone(None) as conninfo:
        psql(conninfo, f"--file={CASES / 'roles.sql'}", f"--file={case.folder / name}")
        yield conninfo


def snapshot(conninfo: str) -> Snapshot:
    """What the product sees of a whole database."""
    with psycopg.connect(conninfo) as conn:
        return read_snapshot(conn, manages=["*"])
