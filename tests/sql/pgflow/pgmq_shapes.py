"""PGMQ in the shapes that pgflow meets: 1.13's SQL as it is, that of 1.5.1, and both as an extension.

No package carries the SQL of 1.5.1, so its shape is cut out of the newer one: each edit says how often it
has to apply, so that a new release of the package cannot change what is tested without a failure here.
"""

from __future__ import annotations

import re
import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from pgsluice.pipeline.devdb.binaries import PACKAGE

NEW: Final = "1.13.0"
OLD: Final = "1.5.1"

# pattern, replacement, how often
LAST_READ_AT: Final = (
    (r"^ *last_read_at TIMESTAMP WITH TIME ZONE,\n", "", 7),
    (r"^ *last_read_at = clock_timestamp\(\),\n", "", 2),
    (r",\n *last_read_at = clock_timestamp\(\)\n", "\n", 3),
    (r", (m\.)?last_read_at,", ",", 15),
)
QUEUE_LOCK: Final = ((r"^ *PERFORM pgmq\.acquire_queue_lock\(queue_name\);\n", "", 4),)
MEMBERS: Final = (
    (
        r"(?=  EXECUTE FORMAT\(\n    \$QUERY\$\n    INSERT INTO pgmq\.meta[^;]*\n"
        r"    VALUES \(%L, false, false\))",
        """
  IF pgmq._extension_exists('pgmq') AND NOT pgmq._belongs_to_pgmq(qtable) THEN
    EXECUTE FORMAT('ALTER EXTENSION pgmq ADD TABLE pgmq.%I', qtable);
    EXECUTE FORMAT('ALTER EXTENSION pgmq ADD SEQUENCE pgmq.%I', qtable_seq);
    EXECUTE FORMAT('ALTER EXTENSION pgmq ADD TABLE pgmq.%I', atable);
  END IF;

""",
        1,
    ),
    (
        r"(?=    EXECUTE FORMAT\(\n        \$QUERY\$\n        DROP TABLE IF EXISTS pgmq\.%I\n"
        r"        \$QUERY\$,\n        qtable)",
        """
    IF pgmq._belongs_to_pgmq(qtable) THEN
      EXECUTE FORMAT('ALTER EXTENSION pgmq DROP TABLE pgmq.%I', qtable);
      EXECUTE FORMAT('ALTER EXTENSION pgmq DROP SEQUENCE pgmq.%I', qtable_seq);
      EXECUTE FORMAT('ALTER EXTENSION pgmq DROP TABLE pgmq.%I', atable);
    END IF;

""",
        1,
    ),
)
NOT_YET_THERE: Final = """
drop function pgmq.acquire_queue_lock(text);
drop function pgmq.pop(text, integer);
drop function pgmq.set_vt(text, bigint, integer);
drop function pgmq.set_vt(text, bigint, timestamptz);
drop function pgmq.set_vt(text, bigint[], integer);
drop function pgmq.set_vt(text, bigint[], timestamptz);

create function pgmq.set_vt(queue_name text, msg_id bigint, vt integer)
returns setof pgmq.message_record
language plpgsql
as $$
begin
  return query execute format(
    'update pgmq.%I set vt = clock_timestamp() + %L where msg_id = $1'
    ' returning msg_id, read_ct, enqueued_at, vt, message, headers',
    pgmq.format_table_name(queue_name, 'q'),
    make_interval(secs => vt)
  )
  using msg_id;
end;
$$;
"""
CONTROL: Final = f"""comment = 'queues'
default_version = '{OLD}'
module_pathname = '$libdir/pgmq'
schema = 'pgmq'
relocatable = false
superuser = false
trusted = true
"""


def new_sql() -> str:
    """The SQL of the installed package."""
    return Path(str(distribution("pgmq").locate_file("pgmq/sql/pgmq.sql"))).read_text("utf-8")


def old_sql() -> str:
    """The same in the shape of 1.5.1."""
    text = new_sql()
    for pattern, replacement, times in (*LAST_READ_AT, *QUEUE_LOCK, *MEMBERS):
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count == times, f"{pattern!r} applies {count} times and not {times}"
    assert "last_read_at" not in text
    return text + NOT_YET_THERE


def copy_server(bin_dir: Path, folder: Path) -> Path:
    """Copy a server's programs, libraries and shared files into `folder`; the copy's folder of programs.

    A server finds its shared files by where its programs lie, so the layout is kept.
    """
    if bin_dir.parents[1].name == PACKAGE:
        home = bin_dir.parents[2]
        places = [PACKAGE, f"{PACKAGE}.libs"]
    else:
        home = bin_dir.parents[3]
        places = [f"{kind}/postgresql/{bin_dir.parent.name}" for kind in ("lib", "share")]
    for place in places:
        shutil.copytree(
            home / place, folder / place, ignore=shutil.ignore_patterns("include", "man", "__pycache__")
        )
    return folder / bin_dir.relative_to(home)


def add_extension(bin_dir: Path) -> None:
    """Put PGMQ beside the extensions that a copied server offers: both versions, the old one by default."""
    root = bin_dir.parent
    share = root / "share" if (root / "share").is_dir() else root.parents[2] / f"share/postgresql/{root.name}"
    extensions = share / "extension"
    (extensions / "pgmq.control").write_text(CONTROL, encoding="utf-8")
    for version, text in ((NEW, new_sql()), (OLD, old_sql())):
        (extensions / f"pgmq--{version}.sql").write_text(text, encoding="utf-8")
