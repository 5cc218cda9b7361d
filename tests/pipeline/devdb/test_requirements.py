"""What a schema requires is loaded before it, or the error says what to do."""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.errors import InputError
from pgsluice.pipeline.devdb import DevServer, bootstrap, open_dev, stop_dev
from pgsluice.pipeline.devdb.binaries import find_binaries
from pgsluice.pipeline.devdb.spec import EmbeddedSpec

from .conftest import DEBIAN_15, short_folder

if TYPE_CHECKING:
    from pathlib import Path


def answer(server: DevServer, template: str, query: str) -> object:
    """The one value of a query in a clone."""
    with server.clone(template) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def failure(root: Path, *requires: str, spec: str = "embedded") -> str:
    """The whole text of the error."""
    with open_dev(spec, root=root) as server, pytest.raises(InputError) as caught:
        bootstrap(server, requires, root=root)
    return str(caught.value)


def test_nothing_required_is_an_empty_database(root: Path) -> None:
    with open_dev("embedded", root=root) as server:
        template = bootstrap(server, (), root=root)
        assert answer(server, template, "select count(*) from pg_namespace where nspname = 'public'") == 1


def test_extensions_and_files_are_loaded_in_order(root: Path, spec: str) -> None:
    (root / "base.sql").write_text(
        "create table base (h hstore);\n"
        "create function f() returns int as\n$$\n  select 1;\n$$ language sql;\n"
    )
    (root / "more.sql").write_text("-- no statement ends this file\ncreate view more as select h from base")
    with open_dev(spec, root=root) as server:
        template = bootstrap(server, ("hstore", "base.sql", "more.sql"), root=root)
        assert answer(server, template, "select count(*) from more") == 0
        assert bootstrap(server, ("hstore", "base.sql", "more.sql"), root=root) == template
        (root / "more.sql").write_text("create view more as select h, 1 as n from base")
        assert bootstrap(server, ("hstore", "base.sql", "more.sql"), root=root) != template


def test_an_extension_brings_those_it_needs(root: Path) -> None:
    with open_dev("embedded", root=root) as server:
        template = bootstrap(server, ("earthdistance",), root=root)
        assert answer(server, template, "select count(*) from pg_extension where extname = 'cube'") == 1


def test_an_extension_that_the_embedded_server_lacks_is_named_with_the_line_to_use(root: Path) -> None:
    assert failure(root, "pgcrypto") == (
        "extension pgcrypto is not available on the embedded PostgreSQL\n"
        'hint: dev = "local:/usr/lib/postgresql/15/bin", once that server has the extension'
    )


def test_the_extension_is_there_with_the_line_that_the_hint_gives(root: Path) -> None:
    with open_dev(f"local:{DEBIAN_15}", root=root) as server:
        template = bootstrap(server, ("pgcrypto", "uuid-ossp"), root=root)
        assert answer(server, template, "select length(gen_random_bytes(3))") == 3


def test_an_extension_that_a_local_server_lacks_is_named(root: Path) -> None:
    assert failure(root, "no_such", spec=f"local:{DEBIAN_15}") == (
        "extension no_such is not available on the dev server\n"
        "hint: install it there, or correct requires = [...]"
    )


def test_an_error_in_a_file_names_line_and_column(root: Path) -> None:
    (root / "base.sql").write_text("create table ä (n int);\n\n  create table b (n int,\n    m nope);\n")
    assert failure(root, "base.sql") == 'base.sql:4:7: type "nope" does not exist\n      m nope);\n        ^'


def test_an_error_without_a_position_names_the_statement(root: Path) -> None:
    (root / "base.sql").write_text("create table a (n int);\n-- again\ncreate table a (n int);\n")
    expected = 'base.sql:3:1: relation "a" already exists\n  create table a (n int);\n  ^'
    assert failure(root, "base.sql") == expected


def test_a_syntax_error_names_line_and_column(root: Path) -> None:
    (root / "base.sql").write_text("create table a (n int);\ncreat table b ();\n")
    expected = 'base.sql:2:1: syntax error at or near "creat"\n  creat table b ();\n  ^'
    assert failure(root, "base.sql") == expected


def test_a_dump_s_guards_are_skipped(root: Path) -> None:
    (root / "dump.sql").write_text("\\restrict abc\n\ncreate table a (n int);\n\n\\unrestrict abc\n")
    with open_dev("embedded", root=root) as server:
        assert answer(server, bootstrap(server, ("dump.sql",), root=root), "select count(*) from a") == 0


def test_another_psql_command_is_an_error(root: Path) -> None:
    (root / "dump.sql").write_text("create table a (n int);\n\\connect other\n")
    assert failure(root, "dump.sql").startswith('dump.sql:2:1: syntax error at or near "\\"')


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot read required file base.sql: No such file or directory"),
        (b"select '\xff'", "required file base.sql is not UTF-8: byte 8 is invalid"),
        (b"\xef\xbb\xbfselect 1", "required file base.sql contains a byte order mark"),
        (b"select 1\0", "required file base.sql contains a zero byte"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(root: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (root / "base.sql").write_bytes(content)
    assert failure(root, "base.sql").splitlines()[0] == expected


def test_a_role_that_an_earlier_version_of_the_file_made_is_no_error(root: Path) -> None:
    with open_dev("embedded", root=root) as server:
        for column in ("one", "two"):
            (root / "roles.sql").write_text(f"create role web;\ncreate table {column} (n int);\n")
            template = bootstrap(server, ("roles.sql",), root=root)
            assert answer(server, template, f"select count(*) from {column}") == 0


def test_pgmq_is_loaded_from_its_package_where_there_is_no_extension(root: Path, spec: str) -> None:
    with open_dev(spec, root=root) as server:
        template = bootstrap(server, ("pgmq",), root=root)
        with server.clone(template) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute("select pgmq.create('jobs')")
            conn.execute("select pgmq.send('jobs', '{\"n\": 1}')")
            assert conn.execute("select message from pgmq.read('jobs', 30, 1)").fetchone() == ({"n": 1},)


def test_an_older_pgmq_package_is_another_template(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_dev("embedded", root=root) as server:
        installed = bootstrap(server, ("pgmq",), root=root)
        info = tmp_path / "pgmq-0.0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pgmq\nVersion: 0.0.1\n")
        (tmp_path / "pgmq" / "sql").mkdir(parents=True)
        (tmp_path / "pgmq" / "sql" / "pgmq.sql").write_text("create table pgmq.meta (n int);")
        monkeypatch.syspath_prepend(tmp_path)
        assert version("pgmq") == "0.0.1"
        older = bootstrap(server, ("pgmq",), root=root)
        assert older != installed
        assert answer(server, older, "select count(*) from pgmq.meta") == 0


def test_pgmq_that_is_not_installed_says_how_to_install_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_dev("embedded", root=root) as server:
        monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "site-packages" not in entry])
        with pytest.raises(InputError) as caught:
            bootstrap(server, ("pgmq",), root=root)
    assert str(caught.value) == (
        "pgmq is neither an extension of the dev server nor installed as a Python package\n"
        "hint: pip install pgmq"
    )


def test_pgmq_comes_from_the_extension_where_the_server_has_it(root: Path) -> None:
    package = find_binaries(EmbeddedSpec()).bin_dir.parents[1]
    home = short_folder("binaries")
    shutil.copytree(package, home / package.name, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(package.with_name(f"{package.name}.libs"), home / f"{package.name}.libs")
    control = next(home.rglob("hstore.control")).with_name("pgmq.control")
    control.write_text("default_version = '9.9'\nrelocatable = false\nschema = pgmq\n")
    control.with_name("pgmq--9.9.sql").write_text("create table meta (n int);")
    with open_dev(f"local:{home / package.name / 'pginstall' / 'bin'}", root=root) as server:
        template = bootstrap(server, ("pgmq",), root=root)
        query = "select extversion from pg_extension where extname = 'pgmq'"
        assert answer(server, template, query) == "9.9"
        assert answer(server, template, "select count(*) from pgmq.meta") == 0
    stop_dev(root)
    shutil.rmtree(home)
