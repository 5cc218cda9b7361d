"""Schema folders for tests: written from a mapping, read, loaded, told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from pgsluice.errors import InputError, PipelineError
from pgsluice.pipeline.sources import load_schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.sources import SchemaSource

CATALOG = """
select 'relation', n.nspname, c.relname, c.relkind::text, pg_get_viewdef(c.oid), c.relacl::text
from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
union all
select 'column', a.attrelid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod),
  pg_get_expr(d.adbin, d.adrelid), a.attnum::text
from pg_attribute as a
join pg_class as c on c.oid = a.attrelid
join pg_namespace as n on n.oid = c.relnamespace
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and a.attnum > 0 and c.relkind <> 'i'
union all
select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid),
  contypid::regtype::text, null
from pg_constraint where connamespace <> 'pg_catalog'::regnamespace
and connamespace <> 'information_schema'::regnamespace
union all
select 'index', indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid), null, null
from pg_index where indrelid >= 16384 and indrelid::regclass::text not like 'pg_toast%'
union all
select 'function', oid::regprocedure::text, proacl::text, prosrc, null, null from pg_proc where oid >= 16384
union all
select 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), null, null
from pg_trigger where not tgisinternal
union all
select 'policy', polrelid::regclass::text, polname, pg_get_expr(polqual, polrelid),
  polroles::regrole[]::text, null
from pg_policy
union all
select 'comment', pg_describe_object(classoid, objoid, objsubid), description, null, null, null
from pg_description where objoid >= 16384
"""


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `root/schema` and return that folder."""
    folder = root / "schema"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def read(root: Path, files: Mapping[str, str | bytes]) -> SchemaSource:
    """What a schema of these files reads as."""
    return read_schema(write(root, files), root=root)


def order(root: Path, files: Mapping[str, str | bytes]) -> list[str]:
    """The statements of these files in load order, whitespace made one."""
    return [" ".join(statement.text.split()) for statement in read(root, files).statements]


def refusal(root: Path, files: Mapping[str, str | bytes]) -> str:
    """The whole message with which reading these files is refused."""
    with pytest.raises(InputError) as caught:
        read(root, files)
    return str(caught.value)


def load(server: DevServer, source: SchemaSource, *, search_path: str = "public") -> set[tuple[object, ...]]:
    """The catalog after loading."""
    with server.clone(None) as conninfo, psycopg.connect(conninfo) as conn:
        load_schema(conn, source, search_path=search_path)
        conn.execute("set search_path = ''")
        return set(conn.execute(CATALOG).fetchall())


def load_refusal(server: DevServer, source: SchemaSource, *, search_path: str = "public") -> PipelineError:
    """The error with which loading is refused."""
    with pytest.raises(PipelineError) as caught:
        load(server, source, search_path=search_path)
    return caught.value
