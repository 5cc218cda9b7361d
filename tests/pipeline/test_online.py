"""Migrations that are built online: what each file does and locks, and that all lead to the schema."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from pgsluice.cli.release import close_migration
from pgsluice.config import Project, Target, load_project
from pgsluice.errors import FindingError, RefusedError
from pgsluice.pipeline.build import BuildResult, Outcome, build_target
from pgsluice.pipeline.check import check_on
from pgsluice.pipeline.lockfile import read_lock
from pgsluice.pipeline.snapshot import compare, read_snapshot
from pgsluice.pipeline.template_source import BLOCKS
from pgsluice.pipeline.verify import verify_target
from pgsluice.pipeline.written import split_text
from tests.client import apply_migration, psql
from tests.conftest import server_url
from tests.test_cases import ALL, Case, build_base, start_project
from tests.test_cases import check_on as check_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgsluice.pipeline.devdb import DevServer

HEAD: Final = '{% extends "migration.sql.j2" %}\n{% import "macros.sql.j2" as sql %}\n'
FILL_COUNTRY: Final = (
    "{% block backfill %}\n"
    '{{ sql.backfill(table="app.users", set="country = \'NO\'", where="country is null", '
    'batch=2, key="user_id") }}\n'
    "{% endblock %}\n"
)
BEFORE: Final = """
create schema app;
create table app.teams (team_id bigint, code text not null, constraint teams_pkey primary key (team_id));
create table app.users (
  user_id bigint generated always as identity,
  email text,
  team_id bigint,
  age int,
  note text not null,
  constraint users_pkey primary key (user_id)
);
create index users_age_idx on app.users (age);
"""
AFTER: Final = """
create schema app;
create table app.teams (
  team_id bigint,
  code text not null,
  constraint teams_pkey primary key (team_id),
  constraint teams_code_key unique (code)
);
create table app.users (
  user_id bigint generated always as identity,
  email text not null,
  team_id bigint,
  age int,
  country text not null,
  constraint users_pkey primary key (user_id),
  constraint users_age_check check (age > 0),
  constraint users_team_id_fkey foreign key (team_id) references app.teams (team_id)
);
create index users_age_idx on app.users (age desc);
create index users_country_idx on app.users (country);
"""
ACCEPT: Final = (
    "{% block preflight %}\n"
    '{{ sql.accept_loss("column app.users.note and its values") }}\n{{ super() }}\n{% endblock %}\n'
)
SEED: Final = """
insert into app.teams (team_id, code) values (1, 'a'), (2, 'b');
insert into app.users (email, team_id, age, note)
select n || '@x', 1 + n % 2, 1 + n, 'n' from generate_series(1, 5) as n;
"""
LIMIT_S: Final = 30
WEAK: Final = frozenset({"AccessShareLock", "RowShareLock", "ShareUpdateExclusiveLock"})
MODES: Final = """
select l.mode from pg_catalog.pg_locks as l
where l.pid = %s and l.granted and l.relation in ('app.users'::regclass, 'app.teams'::regclass)
"""
BLOCKED: Final = """
select a.pid from pg_catalog.pg_stat_activity as a
where a.query ^@ %s and %s = any(pg_catalog.pg_blocking_pids(a.pid))
"""
SCANS: Final = re.compile(r"verifying table|rewriting table|building index|validating foreign key")


@dataclass(frozen=True, slots=True)
class Folder:
    """A project with one target on one server."""

    root: Path
    project: Project
    server: DevServer

    @property
    def target(self) -> Target:
        return self.project.target(None)

    def write(self, schema: str, *, template: str | None = None, name: str = "grow") -> None:
        """Make `schema` the whole schema, and `template` the migration's own."""
        (self.root / "schema/app/all.sql").write_text(schema, encoding="utf-8")
        if template is not None:
            (self.root / f"templates/app/{name}.sql.j2").write_text(HEAD + template, encoding="utf-8")

    def build(self, name: str | None = "grow", *, online: bool | None = True) -> BuildResult:
        """Build, with every loss agreed to."""
        return build_target(self.project, self.target, name=name, online=online, allow_destructive=True)

    def change(self, before: str, after: str, *, template: str | None = None) -> BuildResult:
        """Build one state as it is, and the way to the other online."""
        self.write(before)
        self.build("base", online=False)
        self.write(after, template=template)
        return self.build()

    def names(self) -> list[str]:
        """The files after the first migration."""
        return sorted(path.name for path in (self.root / "migrations/app").glob("*.sql"))[1:]

    def statements(self, name: str) -> list[str]:
        """What a file does, without its settings and checks; each on one line."""
        text = self.path(name).read_text(encoding="utf-8")
        found = [" ".join(one.sql.split()) for one in split_text(text) if one.sql]
        return [one for one in found if not one.startswith(("set local", "do $refuse$"))]

    def path(self, name: str) -> Path:
        """A migration's file."""
        return self.root / "migrations/app" / name

    @contextmanager
    def database(self, seed: str = "") -> Iterator[str]:
        """A database to which the first migration was applied, with rows."""
        with self.server.clone(None) as conninfo:
            apply_migration(conninfo, next(iter(sorted(self.path("").glob("*.sql")))))
            with psycopg.connect(conninfo, autocommit=True) as conn:
                conn.execute(seed.encode())
            yield conninfo

    def leads_to(self, conninfo: str) -> bool:
        """Whether a database has the schema's catalog."""
        with (
            self.server.clone(None) as wanted,
            psycopg.connect(wanted) as want,
            psycopg.connect(conninfo) as have,
        ):
            want.execute((self.root / "schema/app/all.sql").read_bytes(), prepare=False)
            return not compare(read_snapshot(want, manages=["app"]), read_snapshot(have, manages=["app"]))


def start(root: Path, server: DevServer, versioning: str = "sequence") -> Folder:
    """An empty project."""
    for name in ("schema", "templates"):
        (root / name / "app").mkdir(parents=True)
    config = f'dev = "{server_url(server)}"\n[targets.app]\nmanages = ["app"]\nversioning = "{versioning}"\n'
    (root / "pgsluice.toml").write_text(config, encoding="utf-8")
    return Folder(root, load_project(root), server)


@pytest.fixture
def folder(tmp_path: Path, server: DevServer) -> Folder:
    """A project on each of the servers."""
    return start(tmp_path, server)


@pytest.fixture
def one_folder(tmp_path: Path, servers: tuple[DevServer, ...]) -> Folder:
    """A project on one server, for what no server has a say in."""
    return start(tmp_path, servers[0])


def test_each_statement_stands_in_the_file_where_it_lets_others_work(folder: Folder) -> None:
    result = folder.change(BEFORE, AFTER, template=FILL_COUNTRY + ACCEPT)
    assert [Path(name).name for name in result.files] == folder.names()
    assert folder.names() == [
        "0002_grow.sql",
        "0003_grow_concurrently.sql",
        "0004_grow_validate.sql",
        "0005_grow_retire.sql",
    ]
    expand, concurrently, validate, retire = map(folder.statements, folder.names())
    assert expand == [
        "ALTER TABLE app.users ADD COLUMN country text",
        "ALTER TABLE app.users ADD CONSTRAINT users_email_filled CHECK (email IS NOT NULL) NOT VALID",
        "ALTER TABLE app.users ADD CONSTRAINT users_age_check CHECK ((age > 0)) NOT VALID",
        "ALTER TABLE app.users ADD CONSTRAINT users_team_id_fkey FOREIGN KEY (team_id) "
        "REFERENCES app.teams(team_id) NOT VALID",
        "ALTER TABLE app.users ALTER COLUMN note DROP NOT NULL",
    ]
    assert concurrently[0].startswith("do $backfill$")
    assert concurrently[1:] == [
        "DO $pgsluice$ BEGIN FOR turn IN 1..600 LOOP BEGIN SET LOCAL lock_timeout = '100ms'; "
        "ALTER TABLE app.users DROP CONSTRAINT IF EXISTS users_country_filled, "
        "ADD CONSTRAINT users_country_filled CHECK (country IS NOT NULL) NOT VALID; RETURN; "
        "EXCEPTION WHEN lock_not_available THEN IF turn = 600 THEN RAISE; END IF; "
        "PERFORM pg_catalog.pg_sleep(0.4); END; END LOOP; END $pgsluice$",
        "DROP INDEX CONCURRENTLY IF EXISTS app.teams_code_key",
        "CREATE UNIQUE INDEX CONCURRENTLY teams_code_key ON app.teams (code)",
        "DROP INDEX CONCURRENTLY IF EXISTS app.users_age_idx_new",
        "CREATE INDEX CONCURRENTLY users_age_idx_new ON app.users USING btree (age DESC)",
        "DROP INDEX CONCURRENTLY IF EXISTS app.users_country_idx",
        "CREATE INDEX CONCURRENTLY users_country_idx ON app.users USING btree (country)",
    ]
    assert validate == [
        "ALTER TABLE app.users VALIDATE CONSTRAINT users_email_filled",
        "ALTER TABLE app.users VALIDATE CONSTRAINT users_country_filled",
        "ALTER TABLE app.users VALIDATE CONSTRAINT users_age_check",
        "ALTER TABLE app.users VALIDATE CONSTRAINT users_team_id_fkey",
        "ALTER TABLE app.users ALTER COLUMN email SET NOT NULL",
        "ALTER TABLE app.users ALTER COLUMN country SET NOT NULL",
        "ALTER TABLE app.teams ADD CONSTRAINT teams_code_key UNIQUE USING INDEX teams_code_key",
        "DROP INDEX app.users_age_idx",
        "ALTER INDEX app.users_age_idx_new RENAME TO users_age_idx",
        "ALTER TABLE app.users DROP CONSTRAINT users_email_filled",
        "ALTER TABLE app.users DROP CONSTRAINT users_country_filled",
    ]
    assert retire == ["ALTER TABLE app.users DROP COLUMN note"]
    with folder.database(SEED) as conninfo:
        for name in folder.names():
            apply_migration(conninfo, folder.path(name))
        assert folder.leads_to(conninfo)
        with psycopg.connect(conninfo) as conn:
            assert conn.execute("select count(*), min(country) from app.users").fetchall() == [(5, "NO")]


TABLE: Final = "create schema app; create table app.t (a int, b text, c int, d int);"
CONSTRUCTS: Final = {
    "a unique key with all that it can have": (
        TABLE,
        TABLE + "alter table app.t add constraint t_key unique nulls not distinct (a, b) include (c) "
        "with (fillfactor = 70) deferrable initially deferred;",
        [
            [
                "DROP INDEX CONCURRENTLY IF EXISTS app.t_key",
                "CREATE UNIQUE INDEX CONCURRENTLY t_key ON app.t (a, b) INCLUDE (c) NULLS NOT DISTINCT "
                "WITH (fillfactor='70')",
            ],
            ["ALTER TABLE app.t ADD CONSTRAINT t_key UNIQUE USING INDEX t_key DEFERRABLE INITIALLY DEFERRED"],
        ],
    ),
    "a primary key proves its column filled before it takes the index": (
        TABLE,
        TABLE + "alter table app.t add constraint t_pkey primary key (a);",
        [
            ["ALTER TABLE app.t ADD CONSTRAINT t_a_filled CHECK (a IS NOT NULL) NOT VALID"],
            [
                "DROP INDEX CONCURRENTLY IF EXISTS app.t_pkey",
                "CREATE UNIQUE INDEX CONCURRENTLY t_pkey ON app.t (a)",
            ],
            [
                "ALTER TABLE app.t VALIDATE CONSTRAINT t_a_filled",
                "ALTER TABLE app.t ALTER COLUMN a SET NOT NULL",
                "ALTER TABLE app.t ADD CONSTRAINT t_pkey PRIMARY KEY USING INDEX t_pkey",
                "ALTER TABLE app.t DROP CONSTRAINT t_a_filled",
            ],
        ],
    ),
    "a unique key that changes stays until the new one is there": (
        TABLE + "alter table app.t add constraint t_key unique (a);",
        TABLE + "alter table app.t add constraint t_key unique (a, b);",
        [
            [
                "DROP INDEX CONCURRENTLY IF EXISTS app.t_key_new",
                "CREATE UNIQUE INDEX CONCURRENTLY t_key_new ON app.t (a, b)",
            ],
            [
                "ALTER TABLE app.t DROP CONSTRAINT t_key",
                "ALTER TABLE app.t ADD CONSTRAINT t_key UNIQUE USING INDEX t_key_new",
            ],
        ],
    ),
    "an index that goes": (
        TABLE + "create index t_a on app.t (a);",
        TABLE,
        [["DROP INDEX CONCURRENTLY IF EXISTS app.t_a"]],
    ),
    "an expression index with a comment": (
        TABLE,
        TABLE + """create unique index "T" on app.t (lower(b)) where a > 0;comment on index app."T" is 'x'""",
        [
            [
                'DROP INDEX CONCURRENTLY IF EXISTS app."T"',
                'CREATE UNIQUE INDEX CONCURRENTLY "T" ON app.t USING btree (lower(b)) WHERE (a > 0)',
            ],
            ["COMMENT ON INDEX app.\"T\" IS 'x'"],
        ],
    ),
    "a constraint that was left unvalidated": (
        TABLE + "alter table app.t add constraint t_check check (a > 0) not valid;",
        TABLE + "alter table app.t add constraint t_check check (a > 0);",
        [["ALTER TABLE app.t VALIDATE CONSTRAINT t_check"]],
    ),
    "a materialized view's index": (
        TABLE + "create materialized view app.v as select a from app.t;",
        TABLE + "create materialized view app.v as select a from app.t; create index v_a on app.v (a);",
        [
            [
                "DROP INDEX CONCURRENTLY IF EXISTS app.v_a",
                "CREATE INDEX CONCURRENTLY v_a ON app.v USING btree (a)",
            ]
        ],
    ),
    "new tables are made whole": (
        TABLE,
        TABLE + "create table app.n (a int constraint n_pkey primary key, b int, "
        "constraint n_check check (b > 0)); create index n_b on app.n (b);",
        [
            [
                "CREATE TABLE app.n ( a integer NOT NULL, b integer, CONSTRAINT n_pkey PRIMARY KEY (a), "
                "CONSTRAINT n_check CHECK ((b > 0)) )",
                "CREATE INDEX n_b ON app.n USING btree (b)",
            ]
        ],
    ),
    "what no server can do beside other work stays in the first file": (
        TABLE + "create table app.p (a int, b int) partition by range (a);",
        TABLE + "alter table app.t alter column c type bigint; "
        "alter table app.t add constraint t_excl exclude using btree (a with =);"
        "create table app.p (a int, b int) partition by range (a); create index p_b on app.p (b);",
        [
            [
                "ALTER TABLE app.t ALTER COLUMN c TYPE bigint",
                "ALTER TABLE app.t ADD CONSTRAINT t_excl EXCLUDE USING btree (a WITH =)",
                "CREATE INDEX p_b ON app.p USING btree (b)",
            ]
        ],
    ),
    "a view that needs a new primary key waits for it": (
        TABLE,
        TABLE + "alter table app.t add constraint t_pkey primary key (a);"
        "create view app.v as select a, b from app.t group by a;",
        [
            ["ALTER TABLE app.t ADD CONSTRAINT t_a_filled CHECK (a IS NOT NULL) NOT VALID"],
            [
                "DROP INDEX CONCURRENTLY IF EXISTS app.t_pkey",
                "CREATE UNIQUE INDEX CONCURRENTLY t_pkey ON app.t (a)",
            ],
            [
                "ALTER TABLE app.t VALIDATE CONSTRAINT t_a_filled",
                "ALTER TABLE app.t ALTER COLUMN a SET NOT NULL",
                "ALTER TABLE app.t ADD CONSTRAINT t_pkey PRIMARY KEY USING INDEX t_pkey",
                "ALTER TABLE app.t DROP CONSTRAINT t_a_filled",
                "CREATE VIEW app.v AS SELECT a, b FROM app.t GROUP BY a",
            ],
        ],
    ),
}


@pytest.mark.parametrize("case", CONSTRUCTS)
def test_construct(case: str, folder: Folder) -> None:
    before, after, expected = CONSTRUCTS[case]
    folder.change(before, after)
    found = [[one.replace(" t.", " ") for one in folder.statements(name)] for name in folder.names()]
    assert found == expected
    rows = "insert into app.t (a, b, c, d) select n, n::text, n, n from generate_series(1, 3) as n"
    with folder.database(rows) as conninfo:
        for name in folder.names():
            apply_migration(conninfo, folder.path(name))
        assert folder.leads_to(conninfo)


def test_others_write_while_rows_are_checked_and_indexes_built(folder: Folder) -> None:
    folder.change(BEFORE, AFTER, template=FILL_COUNTRY + ACCEPT)
    expand, concurrently, validate, retire = map(folder.path, folder.names())
    with (
        folder.database(SEED) as conninfo,
        psycopg.connect(conninfo) as busy,
        psycopg.connect(conninfo) as builder,
        psycopg.connect(conninfo, autocommit=True) as other,
        psycopg.connect(conninfo) as runner,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("set lock_timeout = '2s'")
        scanned: list[str] = []
        run_file(runner, expand, each=lambda sql, modes, said: scanned.extend(scans_of(said)))
        assert scanned == []

        insert(busy, "busy")
        builder.execute("insert into app.teams (team_id, code) values (3, 'c')")
        pending = pool.submit(apply_migration, conninfo, concurrently)
        wait_until_blocked(other, holder=busy.info.backend_pid, by="DO $pgsluice$")
        insert(other, "while the helper waits")
        busy.commit()
        wait_until_blocked(other, holder=builder.info.backend_pid, by="CREATE UNIQUE INDEX CONCURRENTLY")
        other.execute("insert into app.teams (team_id, code) values (4, 'd')")
        insert(other, "while the index waits")
        builder.commit()
        pending.result(timeout=LIMIT_S)

        validated: list[str] = []
        proved: list[str] = []

        def look(sql: str, modes: frozenset[str], said: list[str]) -> None:
            if "VALIDATE" in sql:
                assert modes <= WEAK, sql
                insert(other, f"while {len(validated)}")
                validated.append(sql)
            else:
                assert not scans_of(said), sql
            proved.extend(line for line in said if "sufficient to prove" in line)

        run_file(runner, validate, each=look)
        assert (len(validated), len(proved)) == (4, 2)

        apply_migration(conninfo, retire)
        found = other.execute("select count(*), count(country) from app.users").fetchone()
        assert found == (5 + 3 + 4, 5 + 3 + 4)
        assert folder.leads_to(conninfo)


def insert(conn: psycopg.Connection[Any], name: str) -> None:
    """A row as new code writes it, which the old schema's note no longer binds."""
    conn.execute(
        "insert into app.users (email, team_id, age, country) values (%s, 1, 1, 'SE')", [f"{name}@x"]
    )


def run_file(
    conn: psycopg.Connection[Any], path: Path, *, each: Callable[[str, frozenset[str], list[str]], None]
) -> None:
    """Run a transactional file statement by statement.

    `each` gets the statement, the modes of the locks that are held after it, and what the server said.
    """
    said: list[str] = []

    def note(diag: psycopg.errors.Diagnostic) -> None:
        said.append(diag.message_primary or "")

    conn.add_notice_handler(note)
    conn.execute("set local client_min_messages = debug1")
    for statement in split_text(path.read_text(encoding="utf-8")):
        if statement.sql:
            said.clear()
            conn.execute(statement.sql.encode(), prepare=False)
            told = list(said)
            modes = conn.execute(MODES, [conn.info.backend_pid]).fetchall()
            each(statement.sql, frozenset(str(row[0]) for row in modes), told)
    conn.commit()
    conn.remove_notice_handler(note)


def scans_of(said: list[str]) -> list[str]:
    """What the server said about rows that it read or wrote for a statement."""
    return [line for line in said if SCANS.search(line)]


def wait_until_blocked(watcher: psycopg.Connection[Any], *, holder: int, by: str) -> None:
    """Return when a statement that starts with `by` waits for `holder`; fail when that does not happen."""
    end = monotonic() + LIMIT_S
    while monotonic() < end:
        if watcher.execute(BLOCKED, [by, holder]).fetchone() is not None:
            return
    raise AssertionError(f"no {by} waited for {holder} within {LIMIT_S} s")


def test_a_failed_index_build_is_mended_by_running_its_file_again(folder: Folder) -> None:
    unique = TABLE + "alter table app.t add constraint t_key unique (a); create index t_b on app.t (b);"
    folder.change(TABLE, unique)
    first, second = map(folder.path, folder.names())
    with folder.database("insert into app.t (a) values (1)") as conninfo:
        with psycopg.connect(conninfo) as busy, ThreadPoolExecutor(1) as pool:
            busy.execute("insert into app.t (a) values (1)")
            with psycopg.connect(conninfo, autocommit=True) as watcher:
                pending = pool.submit(apply_migration, conninfo, first)
                wait_until_blocked(watcher, holder=busy.info.backend_pid, by="CREATE UNIQUE INDEX")
            busy.commit()
            with pytest.raises(AssertionError, match="could not create unique index"):
                pending.result(timeout=LIMIT_S)
        with psycopg.connect(conninfo, autocommit=True) as conn:
            assert conn.execute("select from pg_index where not indisvalid").fetchall() == [()]
            conn.execute("update app.t set a = 2 where ctid = (select max(ctid) from app.t)")
        apply_migration(conninfo, first)
        apply_migration(conninfo, first)
        apply_migration(conninfo, second)
        assert folder.leads_to(conninfo)


def test_duplicates_are_refused_before_anything_is_built(one_folder: Folder) -> None:
    one_folder.change(TABLE, TABLE + "alter table app.t add constraint t_key unique (a);")
    with one_folder.database("insert into app.t (a) values (1), (1)") as conninfo:
        with pytest.raises(AssertionError, match=r"rows are not unique for t_key of app\.t"):
            apply_migration(conninfo, one_folder.path(one_folder.names()[0]))
        with psycopg.connect(conninfo) as conn:
            assert conn.execute("select to_regclass('app.t_key')").fetchall() == [(None,)]


def test_a_backfill_that_leaves_nulls_fails_the_proof(one_folder: Folder) -> None:
    template = "{% block backfill %}\nupdate app.users set country = 'NO' where false;\n{% endblock %}\n"
    with pytest.raises(FindingError, match="proof of app/grow_validate failed in block enforce"):
        one_folder.change(BEFORE, AFTER, template=template + ACCEPT)
    assert one_folder.names() == []


def test_a_column_without_a_backfill_is_refused(one_folder: Folder) -> None:
    with pytest.raises(RefusedError, match=r"column app\.users\.country is not null"):
        one_folder.change(BEFORE, AFTER, template=ACCEPT)


def test_every_hand_written_statement_stands_in_one_file(one_folder: Folder) -> None:
    blocks = [block for block in BLOCKS if block != "settings"]
    template = "{% block settings %}\n{{ super() }}\nset local statement_timeout = '1h';\n{% endblock %}\n"
    for block in blocks:
        given = '{{ sql.accept_loss("column app.users.note and its values") }}\n' if block == "locks" else ""
        fill = "update app.users set country = 'NO';\n" if block == "backfill" else ""
        template += (
            f"{{% block {block} %}}\n{given}select '{block} first';\n{{{{ super() }}}}\n"
            f"{fill}select '{block} last';\n{{% endblock %}}\n"
        )
    one_folder.change(BEFORE, AFTER, template=template)
    found = [
        [one.split("'")[1] for one in one_folder.statements(name) if one.startswith("select")]
        for name in one_folder.names()
    ]
    assert found == [
        [f"{block} {place}" for block in blocks if block in part for place in ("first", "last")]
        for part in (
            ("locks", "preflight", "prepare", "expand", "install"),
            ("backfill",),
            ("enforce",),
            ("retire", "postflight"),
        )
    ]
    texts = [one_folder.path(name).read_text("utf-8") for name in one_folder.names()]
    assert ["statement_timeout" in text for text in texts] == [True, False, True, True]


def test_the_open_migration_is_regenerated_as_a_group(one_folder: Folder) -> None:
    one_folder.change(BEFORE, AFTER, template=FILL_COUNTRY + ACCEPT)
    assert one_folder.build(None, online=None).outcome is Outcome.UNCHANGED
    lock = read_lock(one_folder.path(""))
    assert lock is not None
    assert (lock.online, list(lock.open)) == (True, one_folder.names())

    one_folder.write(BEFORE + "create index users_email_idx on app.users (email);", template="")
    result = one_folder.build(None, online=None)
    assert one_folder.names() == ["0002_grow.sql"]
    assert [Path(name).name for name in result.files] == ["0002_grow.sql"]
    assert one_folder.path("0002_grow.sql").read_text("utf-8").startswith("-- atlas:txmode none\n\n")

    one_folder.write(
        BEFORE + "create index users_email_idx on app.users (email);"
        "alter table app.users add constraint users_age_check check (age > 0);"
    )
    one_folder.build("grow", online=None)
    assert one_folder.names() == ["0002_grow.sql", "0003_grow_concurrently.sql", "0004_grow_validate.sql"]
    assert verify_target(one_folder.project, one_folder.target) == ()

    one_folder.build(None, online=False)
    assert one_folder.names() == ["0002_grow.sql"]
    assert "CONCURRENTLY" not in one_folder.path("0002_grow.sql").read_text("utf-8")
    lock = read_lock(one_folder.path(""))
    assert lock is not None
    assert (lock.online, lock.open) == (False, ("0002_grow.sql",))

    one_folder.write(BEFORE)
    (one_folder.root / "templates/app/grow.sql.j2").unlink()
    assert one_folder.build(None, online=None).outcome is Outcome.REMOVED
    assert one_folder.names() == []


def test_timestamps_follow_each_other(tmp_path: Path, servers: tuple[DevServer, ...]) -> None:
    folder = start(tmp_path, servers[0], versioning="timestamp")
    folder.change(BEFORE, AFTER, template=FILL_COUNTRY + ACCEPT)
    versions = [name.split("_")[0] for name in folder.names()]
    assert versions == sorted(set(versions))
    assert len(versions) == 4


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, servers: tuple[DevServer, ...]) -> None:
    found = []
    for place in ("one", "other"):
        folder = start(tmp_path / place, servers[0])
        folder.change(BEFORE, AFTER, template=FILL_COUNTRY + ACCEPT)
        found.append([(name, folder.path(name).read_bytes()) for name in folder.names()])
    assert found[0] == found[1]


def test_an_edit_of_any_file_is_found_and_undone(one_folder: Folder) -> None:
    one_folder.change(TABLE, TABLE + "alter table app.t add constraint t_key unique (a);")
    last = one_folder.path(one_folder.names()[-1])
    built = last.read_bytes()
    last.write_bytes(built + b"select 1;\n")
    (finding,) = verify_target(one_folder.project, one_folder.target)
    assert (finding.code, finding.hint) == ("edited", "pgsluice build")
    assert finding.details[-1] == "hand-written SQL belongs into templates/app/grow.sql.j2"
    one_folder.build(None, online=None)
    assert last.read_bytes() == built


def test_a_released_migration_is_closed_whole_and_proved_again(one_folder: Folder) -> None:
    one_folder.change(BEFORE, AFTER, template=FILL_COUNTRY + ACCEPT)
    released = close_migration(one_folder.project, one_folder.target)
    assert [Path(name).name for name in released] == one_folder.names()
    project = one_folder.project
    results = list(check_on(project, project.targets, project.dev, progress=lambda text: None))
    assert [one.problem for one in results] == [None] * len(results)
    assert any(one.name == "0005_grow_retire.sql is made again byte for byte" for one in results)
    one_folder.write(AFTER.replace("age int,", "age int, born date,"))
    one_folder.build("next", online=None)
    assert one_folder.names()[-1] == "0006_next.sql"


def test_the_files_run_as_their_heads_say(one_folder: Folder) -> None:
    one_folder.change(TABLE, TABLE + "create index t_a on app.t (a);")
    (name,) = one_folder.names()
    with one_folder.database() as conninfo:
        with pytest.raises(AssertionError, match="cannot run inside a transaction block"):
            psql(conninfo, "--single-transaction", f"--file={one_folder.path(name)}")
        apply_migration(conninfo, one_folder.path(name))
        assert one_folder.leads_to(conninfo)


CASE_NAMES: Final = (
    "022_unique_nulls_not_distinct",
    "024_fk_add_actions_change",
    "034_index_order_opclass_collate",
    "054_matview_change_and_indexes",
    "086_partition_new_tree",
    "109_column_not_null_backfilled",
    "column_not_null_with_default_and_key",
    "constraint_every_type_added_and_dropped",
    "index_every_change",
    "mixed_rebuild_of_everything_on_one_table",
)
CASES: Final = tuple(case for case in ALL if case.folder.name in CASE_NAMES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_a_case_built_online_leads_all_servers_to_its_schema(
    case: Case, tmp_path: Path, servers: tuple[DevServer, ...]
) -> None:
    project = start_project(tmp_path, servers[0])
    base = build_base(case, project)
    if (case.folder / "after.sql.j2").exists():
        (tmp_path / "templates/app/after.sql.j2").write_text(case.sql("after.sql.j2"), encoding="utf-8")
    project.write_schema(case.sql("after.sql"))
    code, said = project.build("after", "--online", "--allow-destructive")
    assert code == 0, said
    for server in servers:
        if server.major >= case.lowest:
            check_case(server, case, migrations=sorted(project.migrations() - base))
