"""Taking over what Atlas says that it applied."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from pgsluice.errors import InputError, RefusedError, UnreachableError
from pgsluice.pipeline.checksum import compute_sum
from pgsluice.pipeline.live.atlas_revisions import Revision, read_revisions, take_over
from tests.pipeline.live.shop import Shop, as_role, make_role, run

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer

ATLAS_TABLE: Final = """
create schema if not exists {schema};
create table {schema}.atlas_schema_revisions (
  version varchar primary key, description varchar not null, type bigint not null default 2,
  applied bigint not null default 0, total bigint not null default 0, executed_at timestamptz not null,
  execution_time bigint not null, error text, error_stmt text, hash varchar not null, partial_hashes jsonb,
  operator_version varchar not null
);
insert into {schema}.atlas_schema_revisions
values ('.atlas_cloud_identifier', '', 0, 0, 0, now(), 0, null, null, '', null, 'x'),
  ('0001', 'one', 2, 3, 3, now(), 10, null, null, 'abc=', '["h"]', 'Atlas CLI v1.0'),
  ('0002', 'two', 2, 1, 2, now(), 10, 'boom', 'select 1/0', 'def=', null, 'Atlas CLI v1.0');
"""
EXECUTED: Final = 2


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Three migrations with their sum."""
    made = Shop(tmp_path)
    made.write(m0001_one="select 1;\n", m0002_two="select 2;\n", m0003_three="select 3;\n")
    folder = made.target.migrations_dir
    (folder / "atlas.sum").write_bytes(compute_sum(folder).render())
    return made


def revisions_of(shop: Shop) -> list[Revision]:
    """What Atlas has after it applied all of them."""
    digests = {one.name: one.digest for one in compute_sum(shop.target.migrations_dir).entries}
    return [
        Revision(one.version, one.name, EXECUTED, 1, 1, None, None, digests[one.filename])
        for one in shop.history()
    ]


def taken(shop: Shop, *revisions: Revision) -> list[str]:
    """The versions that are taken over."""
    return [one.version for one in take_over(revisions, shop.history(), folder=shop.target.migrations_dir)]


def test_the_table_is_read_without_atlas_own_notes(server: DevServer) -> None:
    with server.clone(None) as conninfo:
        run(conninfo, ATLAS_TABLE.format(schema="atlas_schema_revisions"))
        with psycopg.connect(conninfo) as conn:
            assert read_revisions(conn) == (
                Revision("0001", "one", 2, 3, 3, None, None, "abc="),
                Revision("0002", "two", 2, 1, 2, "boom", "select 1/0", "def="),
            )


def test_a_table_elsewhere_is_hinted_at(server: DevServer) -> None:
    with server.clone(None) as conninfo:
        run(conninfo, ATLAS_TABLE.format(schema="public"))
        with psycopg.connect(conninfo, autocommit=True) as conn:
            with pytest.raises(InputError) as caught:
                read_revisions(conn)
            name = conn.info.dbname
            assert len(read_revisions(conn, "public")) == 2
    assert str(caught.value) == (
        f"there is no table atlas_schema_revisions.atlas_schema_revisions in database {name}\n"
        "hint: --revisions-schema public"
    )


def test_a_table_that_may_not_be_read_is_named(server: DevServer) -> None:
    with server.clone(None) as conninfo:
        make_role(conninfo, "shop_looker", "login")
        run(conninfo, ATLAS_TABLE.format(schema="atlas_schema_revisions"))
        looker = as_role(conninfo, "shop_looker")
        with psycopg.connect(looker) as conn, pytest.raises(UnreachableError) as caught:
            read_revisions(conn)
    assert str(caught.value).startswith(
        "role shop_looker may not read atlas_schema_revisions.atlas_schema_revisions\nhint: grant usage on"
    )


def test_what_atlas_applied_is_taken_over(shop: Shop) -> None:
    one, two, three = revisions_of(shop)
    assert taken(shop, one, two, three) == ["0001", "0002", "0003"]
    assert taken(shop, one) == ["0001"]
    assert taken(shop, replace(one, hash=f"h1:{one.hash}")) == ["0001"]


def test_a_baseline_of_atlas_stands_for_all_before_it(shop: Shop) -> None:
    _, two, three = revisions_of(shop)
    baseline = replace(two, type=1, applied=0, total=0, hash="")
    assert taken(shop, baseline) == ["0001", "0002"]
    assert taken(shop, baseline, three) == ["0001", "0002", "0003"]


def test_a_version_that_goes_on_after_the_underscore_is_found_by_its_file(tmp_path: Path) -> None:
    names = ("00.05.00_01_jobs.sql", "00.06.00_02_queues.sql", "00.07.00_01_events.sql")
    shop = Shop(tmp_path)
    folder = shop.target.migrations_dir
    folder.mkdir()
    for name in names:
        (folder / name).write_text("select 1;\n")
    (folder / "atlas.sum").write_bytes(compute_sum(folder).render())
    assert [one.version for one in shop.history()][:1] == ["00.05.00_01"]
    digests = {one.name: one.digest for one in compute_sum(folder).entries}
    of_atlas = [
        Revision(version, description, EXECUTED, 1, 1, None, None, digests[f"{version}_{description}.sql"])
        for version, _, description in (name.removesuffix(".sql").partition("_") for name in names[:2])
    ]
    assert taken(shop, *of_atlas) == ["00.05.00_01", "00.06.00_02"]
    assert taken(shop, replace(of_atlas[1], type=1, hash="")) == ["00.05.00_01", "00.06.00_02"]


def test_what_was_settled_by_hand_counts(shop: Shop) -> None:
    one, *_ = revisions_of(shop)
    assert taken(shop, replace(one, type=6, applied=0, total=2)) == ["0001"]


def test_partial_changed_and_unknown_revisions_are_refused_together(shop: Shop) -> None:
    one, two, three = revisions_of(shop)
    given = (
        replace(one, applied=0, total=1, error="boom"),
        replace(two, hash="AAAA"),
        replace(three, version="0009", description="nine"),
    )
    with pytest.raises(RefusedError) as caught:
        taken(shop, *given)
    assert str(caught.value) == (
        "Atlas's revisions cannot be taken over: 0001_one.sql was applied in part, 0 of 1 statements: boom\n"
        "  0002_two.sql was changed since Atlas applied it: it recorded h1:AAAA, "
        f"atlas.sum has h1:{two.hash}\n"
        "  0009_nine.sql is not among the migrations of this folder\n"
        "hint: settle them with Atlas first: atlas migrate status, atlas migrate set"
    )


def test_without_revisions_or_a_sum_there_is_nothing_to_take(shop: Shop) -> None:
    with pytest.raises(InputError) as caught:
        taken(shop)
    assert str(caught.value) == "atlas_schema_revisions is empty: Atlas applied nothing\nhint: pgsluice apply"
    revisions = revisions_of(shop)
    (shop.target.migrations_dir / "atlas.sum").unlink()
    with pytest.raises(InputError, match=r"there is no atlas\.sum to compare Atlas's revisions with"):
        taken(shop, *revisions)
