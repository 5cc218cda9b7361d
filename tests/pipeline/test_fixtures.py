"""Upgrade fixtures are read strictly, and run so that a refusal must leave no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from pgsluice.errors import InputError
from pgsluice.pipeline.fixtures import Expectation, Fixture, read_fixtures, split_history
from pgsluice.pipeline.history import Migration
from pgsluice.pipeline.upgrade import FixtureResult, MigrationText, run_fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from pgsluice.pipeline.devdb import DevServer

ACCEPTED: Final = """\
-- expect: accepted
insert into app.users (name) values ('a;b'), ('c');
-- then:
select count(*) = 2 from app.users;
select every(email = '') from app.users
"""
REFUSED: Final = """\
-- expect: refused SL100
-- message: /names? are/
insert into app.users (name) values ('x');
-- then:
select count(*) = 1 from app.users;
"""
ADD_EMAIL: Final = MigrationText(
    "2_email", "alter table app.users add email text;\nupdate app.users set email = '';\n"
)
REFUSE: Final = MigrationText(
    "3_refuse",
    "do $$ begin if exists (select from app.users where name = 'x') then"
    " raise exception 'names are bad' using errcode = 'SL100'; end if; end $$;\n",
)


@pytest.fixture
def conninfo(server: DevServer) -> Iterator[str]:
    with server.clone(None) as conninfo:
        with psycopg.connect(conninfo) as conn:
            conn.execute(
                'create schema app; create table app.users (id serial primary key, name text, "Odd" int)'
            )
        yield conninfo


def write(root: Path, text: str | bytes, *, name: str = "1/old.sql") -> None:
    path = root / "tests/upgrades/app" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def read(root: Path) -> tuple[Fixture, ...]:
    return read_fixtures(root / "tests/upgrades/app", root=root)


def run(root: Path, conninfo: str, text: str, *migrations: MigrationText) -> FixtureResult:
    write(root, text)
    (fixture,) = read(root)
    return run_fixture(conninfo, fixture, migrations, snapshot=columns)


def columns(conn: Connection[Any]) -> object:
    """A catalog snapshot, small but real."""
    return conn.execute(
        "select attrelid, attname from pg_attribute where attrelid > 16384 and attnum > 0 order by 1, 2"
    ).fetchall()


def problem(result: FixtureResult) -> str:
    assert result.problem is not None
    return str(result.problem)


def test_a_fixture_has_expectation_data_and_queries(tmp_path: Path) -> None:
    write(tmp_path, REFUSED.replace("insert", "-- through: 3\n\n-- old\ninsert").replace("\n", "\r\n"))
    (fixture,) = read(tmp_path)
    assert (fixture.file, fixture.name, fixture.from_version) == (
        "tests/upgrades/app/1/old.sql",
        "old",
        "1",
    )
    assert (fixture.expectation, fixture.sqlstate, fixture.message) == (
        Expectation.REFUSED,
        "SL100",
        "/names? are/",
    )
    assert (fixture.data.strip(), len(fixture.queries), fixture.queries[0].line) == (
        "-- old\ninsert into app.users (name) values ('x');",
        1,
        8,
    )


def test_fixtures_come_in_the_order_of_their_files(tmp_path: Path) -> None:
    for name in ("2/a.sql", "1/b.sql", "1/a.sql", "empty/z.sql"):
        write(tmp_path, ACCEPTED, name=name)
    assert [fixture.file.removeprefix("tests/upgrades/app/") for fixture in read(tmp_path)] == [
        "1/a.sql",
        "1/b.sql",
        "2/a.sql",
        "empty/z.sql",
    ]


def test_a_target_without_fixtures_has_none(tmp_path: Path) -> None:
    assert read(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("insert into x values (1);", "1: the fixture does not say what to expect"),
        ("-- expct: accepted\n", "1: unknown directive expct"),
        ("-- expect: maybe\n", "1: cannot expect maybe"),
        ("-- expect: refused\n-- message: x\n", "1: cannot expect refused"),
        ("-- expect: refused 12\n-- message: x\n", "1: cannot expect refused 12"),
        ("-- expect: refused SL100\n", "1: a refusal needs its message"),
        ("-- expect: refused SL100\n-- message: /(/\n", "2: not a regular expression: missing ), "),
        ("-- expect: accepted\n-- message: x\n", "2: data that are accepted have no message"),
        ("-- expect: accepted\n-- expect: accepted\n", "2: directive expect is given twice"),
        ("-- expect: accepted\n-- through:\n", "2: directive through is empty"),
        ("-- expect: accepted\n-- then:\n\n-- nothing\n", "2: then: is followed by no query"),
        ("-- expect: accepted\n-- then:\nselect 1;\n-- then:\nselect 1;\n", "4: then: is given twice"),
        ("-- expect: accepted\n\n-- then:\n\nselct\n", '5: syntax error at or near "selct"'),
        (b"-- expect: accepted\n\xff", "2: the fixture is not valid UTF-8"),
        (b"\xef\xbb\xbf-- expect: accepted\n", "1:1: the fixture starts with a byte order mark"),
    ],
)
def test_a_malformed_fixture_is_an_error_with_its_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert str(caught.value).startswith(f"tests/upgrades/app/1/old.sql:{message}")


def test_a_fixture_outside_of_a_version_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ACCEPTED, name="old.sql")
    with pytest.raises(InputError, match="a fixture stands in the folder of its version"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("folder", "through", "before", "after"),
    [
        ("empty", None, "", "1 2 3"),
        ("0", "2", "", "1 2"),
        ("1", None, "1", "2 3"),
        ("1_one", "3", "1", "2 3"),
        ("two", None, "1 2", "3"),
    ],
)
def test_the_folder_names_the_last_migration_before_the_data(
    tmp_path: Path, folder: str, through: str | None, before: str, after: str
) -> None:
    names = ("one", "two", "three")
    history = [Migration(str(n), name, tmp_path / f"{n}_{name}.sql") for n, name in enumerate(names, 1)]
    directive = f"-- through: {through}\n" if through else ""
    write(tmp_path, ACCEPTED.replace("insert", f"{directive}insert", 1), name=f"{folder}/old.sql")
    (fixture,) = read(tmp_path)
    found = split_history(fixture, history)
    assert [" ".join(migration.version for migration in part) for part in found] == [before, after]


@pytest.mark.parametrize(
    ("folder", "message"),
    [("9", "no migration is called 9"), ("2", "no migration is left to run on this data: 2 is the last one")],
)
def test_a_version_that_the_history_lacks_is_refused(tmp_path: Path, folder: str, message: str) -> None:
    history = [Migration(str(n), "x", tmp_path / f"{n}_x.sql") for n in (1, 2)]
    write(tmp_path, ACCEPTED, name=f"{folder}/old.sql")
    (fixture,) = read(tmp_path)
    with pytest.raises(InputError, match=message):
        split_history(fixture, history)


def test_accepted_data_pass(tmp_path: Path, conninfo: str) -> None:
    result = run(tmp_path, conninfo, ACCEPTED, ADD_EMAIL, REFUSE)
    assert result.problem is None
    assert result.passed


def test_refused_data_pass_when_nothing_changed(tmp_path: Path, conninfo: str) -> None:
    assert run(tmp_path, conninfo, REFUSED, ADD_EMAIL, REFUSE).problem is None


def test_data_that_should_be_accepted_and_are_refused_fail(tmp_path: Path, conninfo: str) -> None:
    text = ACCEPTED.replace("'c'", "'x'")
    assert problem(run(tmp_path, conninfo, text, ADD_EMAIL, REFUSE)).split("\n")[:2] == [
        "tests/upgrades/app/1/old.sql: 3_refuse refused data that it should accept",
        "  names are bad (SQLSTATE SL100)",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (REFUSED.replace("('x')", "('y')"), "3_refuse accepted data that it should refuse"),
        (REFUSED.replace("SL100", "23505"), "3_refuse refused with SQLSTATE SL100, not 23505"),
        (
            REFUSED.replace("/names? are/", "names are"),
            "3_refuse refused with another message than names are",
        ),
    ],
)
def test_another_outcome_than_the_refusal_fails(
    tmp_path: Path, conninfo: str, text: str, message: str
) -> None:
    assert problem(run(tmp_path, conninfo, text, REFUSE)).split("\n")[0] == (
        f"tests/upgrades/app/1/old.sql: {message}"
    )


def test_a_refusal_that_leaves_traces_fails(tmp_path: Path, conninfo: str) -> None:
    leaky = MigrationText(
        "3_leaky",
        "-- atlas:txmode none\n\n"
        "insert into app.users (name) values ('new');\n"
        "alter table app.users add extra int;\n" + REFUSE.text,
    )
    assert problem(run(tmp_path, conninfo, REFUSED, leaky)) == (
        "tests/upgrades/app/1/old.sql: the refusal left traces\n"
        "  the catalog differs\n"
        "  table app.users has 2 rows instead of 1, or others\n"
        "    - (1,x,)\n"
        "    + (1,x,,)\n"
        "    + (2,new,,)\n"
        "  sequence app.users_id_seq moved from (1, True) to (2, True)\n"
        "hint: refuse in block preflight, before anything is changed"
    )


def test_a_sequence_that_a_rolled_back_migration_moved_is_a_trace(tmp_path: Path, conninfo: str) -> None:
    burning = MigrationText("3_burn", "select nextval('app.users_id_seq');\n" + REFUSE.text)
    result = run(tmp_path, conninfo, REFUSED, burning)
    assert "sequence app.users_id_seq moved from (1, True) to (2, True)" in problem(result)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select false", "a query after then: should return one true, and returned False"),
        ("select 1", "a query after then: should return one true, and returned 1"),
        ("select true, true", "a query after then: should return one true, and returned (True, True)"),
        ("select true from app.users", "a query after then: should return one true, and returned 2 rows"),
        ("select nope", "a query after then: failed"),
    ],
)
def test_a_query_that_is_not_true_fails_with_its_line(
    tmp_path: Path, conninfo: str, query: str, message: str
) -> None:
    text = ACCEPTED.replace("select every(email = '') from app.users", query)
    assert problem(run(tmp_path, conninfo, text, ADD_EMAIL)).split("\n")[0] == (
        f"tests/upgrades/app/1/old.sql:5: {message}"
    )


def test_data_that_cannot_be_loaded_are_an_input_error_with_the_line(tmp_path: Path, conninfo: str) -> None:
    result = run(tmp_path, conninfo, ACCEPTED.replace("insert into app.users", "\ninsert into app.u"), REFUSE)
    assert isinstance(result.problem, InputError)
    assert str(result.problem).split("\n")[0] == (
        "tests/upgrades/app/1/old.sql:3: the fixture's data cannot be loaded"
    )
