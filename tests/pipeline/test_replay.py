"""A history runs from its start, file by file, each in a session that knows nothing of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.history import read_history
from pgsluice.pipeline.replay import replay
from tests.client import NOT_TRANSACTIONAL, psql

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

FILES = 8  # more than it takes until a client prepares what it says after each of them


def test_many_migrations_outside_of_a_transaction_run(tmp_path: Path, server: DevServer) -> None:
    for number in range(1, FILES + 1):
        text = f"{NOT_TRANSACTIONAL}create table t{number} (a int);\n"
        (tmp_path / f"{number:04}_t.sql").write_text(text, encoding="utf-8")
    with server.clone(None) as conninfo:
        replay(conninfo, read_history(tmp_path), root=tmp_path)
        assert psql(conninfo, "--command=select count(*) from pg_tables where tablename ~ '^t[0-9]'") == "8\n"


def test_settings_of_one_migration_do_not_reach_the_next(tmp_path: Path, server: DevServer) -> None:
    for number in range(1, FILES + 1):
        text = f"create table t{number} (a int);\nset search_path = pg_catalog;\n"
        (tmp_path / f"{number:04}_t.sql").write_text(text, encoding="utf-8")
    with server.clone(None) as conninfo:
        replay(conninfo, read_history(tmp_path), root=tmp_path)
        assert psql(conninfo, "--command=select count(*) from public.t8") == "0\n"


def test_a_file_that_pg_dump_wrote_runs_with_its_guards(tmp_path: Path, server: DevServer) -> None:
    text = "\\restrict aB3\n\ncreate table t (a text default 'a\\b');\n\n\\unrestrict aB3\n"
    (tmp_path / "0001_t.sql").write_text(text, encoding="utf-8")
    with server.clone(None) as conninfo:
        replay(conninfo, read_history(tmp_path), root=tmp_path)
        assert psql(conninfo, "--command=select count(*) from public.t") == "0\n"
