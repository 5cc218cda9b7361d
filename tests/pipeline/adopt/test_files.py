"""Which file each statement of a dump goes to, and how it reads there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.adopt.files import place_statements, render_files, split_dump
from pgsluice.pipeline.adopt.provided import Provided, provided_by
from pgsluice.pipeline.snapshot import Address

if TYPE_CHECKING:
    from collections.abc import Sequence


def files(
    dump: str, *, runner: str = "owner", ignore: Sequence[str] = (), provided: Provided | None = None
) -> dict[str, str]:
    """The schema files of a dump."""
    pieces = place_statements(
        split_dump(dump),
        runner=runner,
        ignore=ignore,
        provided=provided or Provided(),
        populated={("app", "full")},
    )
    return render_files(pieces)


def test_a_table_has_all_of_its_own_in_one_file() -> None:
    dump = """
    CREATE TABLE app.t (id bigint NOT NULL, s bigint);
    ALTER TABLE app.t OWNER TO owner;
    CREATE SEQUENCE app.numbers;
    ALTER SEQUENCE app.numbers OWNED BY app.t.s;
    ALTER TABLE ONLY app.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);
    CREATE INDEX t_s ON app.t USING btree (s);
    COMMENT ON INDEX app.t_s IS 'i';
    COMMENT ON COLUMN app.t.s IS 'c';
    CREATE TRIGGER g BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.f();
    COMMENT ON TRIGGER g ON app.t IS 'g';
    CREATE POLICY p ON app.t;
    CREATE STATISTICS app.st ON id, s FROM app.t;
    ALTER STATISTICS app.st SET STATISTICS 7;
    COMMENT ON STATISTICS app.st IS 'st';
    COMMENT ON CONSTRAINT t_pkey ON app.t IS 'k';
    GRANT SELECT ON TABLE app.t TO reader;
    GRANT USAGE ON SEQUENCE app.numbers TO reader;
    """
    found = files(dump)
    assert list(found) == ["tables/t.sql"]
    assert found["tables/t.sql"].count(";\n") == 16


def test_a_partition_has_what_attaches_it() -> None:
    dump = """
    CREATE TABLE app.t (id int) PARTITION BY LIST (id);
    CREATE TABLE app.t1 (id int);
    ALTER TABLE ONLY app.t ATTACH PARTITION app.t1 DEFAULT;
    CREATE INDEX i ON ONLY app.t USING btree (id);
    CREATE INDEX i1 ON app.t1 USING btree (id);
    ALTER INDEX app.i ATTACH PARTITION app.i1;
    """
    assert files(dump)["tables/t1.sql"] == (
        "create table app.t1 (id int);\n\n"
        "alter table only app.t attach partition app.t1 default;\n\n"
        "create index i1 on app.t1 using btree (id);\n\n"
        "alter index app.i attach partition app.i1;\n"
    )


def test_overloads_and_an_aggregate_of_the_same_name_share_a_file() -> None:
    dump = """
    CREATE FUNCTION app.f(integer) RETURNS integer LANGUAGE sql AS 'select 1';
    CREATE FUNCTION app.f(text) RETURNS integer LANGUAGE sql AS 'select 1';
    CREATE AGGREGATE app.f(bigint) (SFUNC = app.s, STYPE = bigint);
    COMMENT ON FUNCTION app.f(text) IS 'f';
    REVOKE ALL ON FUNCTION app.f(integer) FROM PUBLIC;
    """
    assert list(files(dump)) == ["functions/f.sql"]


def test_every_kind_has_its_folder() -> None:
    dump = """
    CREATE SCHEMA app;
    COMMENT ON SCHEMA app IS 's';
    GRANT USAGE ON SCHEMA app TO reader;
    ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA app GRANT SELECT ON TABLES TO reader;
    CREATE TYPE app.e AS ENUM ('a');
    CREATE DOMAIN app.d AS text;
    ALTER DOMAIN app.d ADD CONSTRAINT k CHECK (VALUE <> '') NOT VALID;
    COMMENT ON CONSTRAINT k ON DOMAIN app.d IS 'k';
    CREATE VIEW app.v AS SELECT 1 AS x;
    COMMENT ON COLUMN app.v.x IS 'x';
    CREATE MATERIALIZED VIEW app.full AS SELECT 1 AS x WITH NO DATA;
    CREATE MATERIALIZED VIEW app.empty AS SELECT 1 AS x WITH NO DATA;
    CREATE SEQUENCE app.q;
    CREATE OPERATOR app.=== (FUNCTION = app.f, LEFTARG = integer, RIGHTARG = integer);
    CREATE CAST (app.e AS integer) WITH FUNCTION app.g(app.e);
    CREATE OPERATOR FAMILY app.o USING btree;
    CREATE COLLATION app.c (provider = libc, locale = 'C');
    CREATE TEXT SEARCH CONFIGURATION app.ts (PARSER = pg_catalog."default");
    ALTER TEXT SEARCH CONFIGURATION app.ts ADD MAPPING FOR asciiword WITH simple;
    CREATE PUBLICATION p;
    ALTER PUBLICATION p ADD TABLE ONLY app.t;
    CREATE FOREIGN DATA WRAPPER w;
    CREATE SERVER s FOREIGN DATA WRAPPER w;
    CREATE USER MAPPING FOR owner SERVER s;
    GRANT ALL ON FUNCTION public.similarity(text, text) TO reader;
    """
    found = files(dump)
    assert sorted(found) == [
        "casts.sql",
        "collations/c.sql",
        "default_privileges.sql",
        "foreign_data_wrappers/w.sql",
        "operator_classes/o.sql",
        "operators.sql",
        "publications/p.sql",
        "required.sql",
        "schema.sql",
        "sequences/q.sql",
        "servers/s.sql",
        "text_search/ts.sql",
        "types/d.sql",
        "types/e.sql",
        "views/empty.sql",
        "views/full.sql",
        "views/v.sql",
    ]
    assert found["schema.sql"] == (
        "create schema app;\n\ncomment on schema app is 's';\n\ngrant usage on schema app to reader;\n"
    )
    assert "no data" not in found["views/full.sql"]
    assert found["views/empty.sql"].endswith("with no data;\n")


def test_the_runner_is_named_where_the_role_itself_is_meant() -> None:
    dump = """
    CREATE SCHEMA app;
    ALTER SCHEMA app OWNER TO boss;
    GRANT ALL ON SCHEMA app TO owner;
    CREATE TABLE app.t ();
    ALTER TABLE app.t OWNER TO owner;
    REVOKE ALL ON TABLE app.t FROM owner;
    GRANT SELECT ON TABLE app.t TO owner;
    GRANT SELECT ON TABLE app.t TO "Owner";
    CREATE POLICY p ON app.t TO owner;
    CREATE USER MAPPING FOR owner SERVER s;
    ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT ON TABLES TO reader;
    ALTER DEFAULT PRIVILEGES FOR ROLE boss GRANT SELECT ON TABLES TO owner;
    ALTER SCHEMA public OWNER TO owner;
    """
    found = files(dump)
    assert found["app/tables/t.sql"] == (
        "create table app.t ();\n\n"
        "revoke all on table app.t from current_user;\n\n"
        "grant select on table app.t to current_user;\n\n"
        'grant select on table app.t to "Owner";\n\n'
        "create policy p on app.t to owner;\n"
    )
    assert found["app/schema.sql"] == (
        "create schema app;\n\nalter schema app owner to boss;\n\ngrant all on schema app to owner;\n"
    )
    assert found["servers/s.sql"] == "create user mapping for owner server s;\n"
    assert found["default_privileges.sql"] == (
        "alter default privileges for role current_user grant select on tables to reader;\n\n"
        "alter default privileges for role boss grant select on tables to owner;\n"
    )
    assert found["public/schema.sql"] == "alter schema public owner to current_user;\n"


def test_ignored_objects_and_parts_stay_out_with_all_that_is_said_of_them() -> None:
    dump = """
    CREATE TABLE app.q_jobs (id int);
    CREATE INDEX q_jobs_id ON app.q_jobs USING btree (id);
    COMMENT ON TABLE app.q_jobs IS 'jobs';
    CREATE TABLE app.t (id int);
    CREATE INDEX scratch_i ON app.t USING btree (id);
    CREATE TRIGGER scratch_g BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.f();
    CREATE FUNCTION app.scratch() RETURNS integer LANGUAGE sql AS 'select 1';
    """
    assert files(dump, ignore=["app.q_*", "app.scratch*", "app.t.scratch*"]) == {
        "tables/t.sql": "create table app.t (id int);\n"
    }


def test_what_is_provided_is_not_made_again() -> None:
    dump = """
    CREATE SCHEMA ext;
    GRANT USAGE ON SCHEMA ext TO reader;
    CREATE TYPE ext.e AS ENUM ('a');
    COMMENT ON TYPE ext.e IS 'e';
    CREATE FUNCTION ext.f(integer) RETURNS integer LANGUAGE sql AS 'select 1';
    CREATE FUNCTION ext.f(integer, text) RETURNS integer LANGUAGE sql AS 'select 1';
    CREATE TABLE ext.t (id int);
    ALTER TABLE ONLY ext.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);
    ALTER TABLE ONLY ext.t ADD CONSTRAINT mine UNIQUE (id);
    CREATE INDEX theirs ON ext.t USING btree (id);
    """
    provided = provided_by(
        [
            Address("schema", ("ext",)),
            Address("enum", ("ext", "e")),
            Address("function", ("ext", "f", "integer")),
            Address("table", ("ext", "t")),
            Address("constraint", ("ext", "t", "t_pkey")),
            Address("index", ("ext", "theirs")),
        ]
    )
    assert files(dump, provided=provided) == {
        "schema.sql": "grant usage on schema ext to reader;\n",
        "required.sql": "comment on type ext.e is 'e';\n",
        "functions/f.sql": (
            "create function ext.f(integer, text) returns integer language sql as 'select 1';\n"
        ),
        "tables/t.sql": "alter table only ext.t add constraint mine unique (id);\n",
    }


def test_what_depends_on_an_extension_says_so_in_its_file() -> None:
    dump = """
    CREATE TABLE app.t (id int);
    CREATE INDEX i ON app.t USING btree (id);
    CREATE TRIGGER g BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.f();
    CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS 'begin end';
    CREATE MATERIALIZED VIEW app.m AS SELECT 1 AS x;
    ALTER INDEX app.i DEPENDS ON EXTENSION citext;
    ALTER TRIGGER g ON app.t DEPENDS ON EXTENSION citext;
    ALTER FUNCTION app.f() DEPENDS ON EXTENSION citext;
    ALTER MATERIALIZED VIEW app.m DEPENDS ON EXTENSION citext;
    """
    found = files(dump)
    assert {name: text.count("depends on extension") for name, text in found.items()} == {
        "tables/t.sql": 2,
        "functions/f.sql": 1,
        "views/m.sql": 1,
    }
