"""Views and materialized views."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.naming import ident, options, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.statement import Hazard, Phase

if TYPE_CHECKING:
    from pgsluice.pipeline.snapshot import Object

COLUMN: Final = r'(?:"\*VALUES\*"\.)?column\d+(?: AS (?:[\w$]+|"(?:[^"]|"")+"))?'
VALUES: Final = re.compile(
    rf'\s*SELECT ({COLUMN}(?:,\s+{COLUMN})*)\s+FROM \((VALUES .*)\) "\*VALUES\*"', re.DOTALL
)
SET_IN_PLACE: Final = frozenset(
    {"clustered_on", "column_statistics", "column_settings", "options", "tablespace", "access_method"}
)


def _create(new: Object, scene: Scene) -> list[Step]:
    return [Step(_text(new, "CREATE VIEW"), Phase.INSTALL), *_defaults(None, new)]


def _text(new: Object, verb: str) -> str:
    clause = (
        f" WITH ({options(new.get('options'), order=new.get('option_order') or ())})"
        if new.get("options")
        else ""
    )
    names, query = _query(new)
    return f"{verb} {qualified(new.path)}{names}{clause} AS\n{query}"


def _query(new: Object) -> tuple[str, str]:
    """The query; a bare `values` is printed as a select from it, and needs a list of column names."""
    query = str(new.get("definition")).rstrip().removesuffix(";")
    bare = VALUES.fullmatch(query)
    if bare is None or len(re.findall(COLUMN, bare[1])) != len(new.get("columns")):
        return "", query
    return f" ({', '.join(ident(column[0]) for column in new.get('columns'))})", bare[2]


def _defaults(old: Object | None, new: Object) -> list[Step]:
    was, now = (old.get("column_defaults") if old else None) or {}, new.get("column_defaults") or {}
    return [
        Step(
            f"ALTER VIEW {qualified(new.path)} ALTER COLUMN {ident(column)} "
            + (f"SET DEFAULT {now[column]}" if column in now else "DROP DEFAULT"),
            Phase.INSTALL,
        )
        for column in sorted(was.keys() | now.keys())
        if was.get(column) != now.get(column)
    ]


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP VIEW {qualified(old.path)}", Phase.RETIRE)]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    was, now = old.get("columns"), new.get("columns")
    if now[: len(was)] != was:
        return None
    lost = (old.get("options") or {}).get("security_invoker") == "true" and not (
        new.get("options") or {}
    ).get("security_invoker")
    hazards = (
        (Hazard("security-invoker-lost", f"{'.'.join(new.path)} will read with its owner's rights"),)
        if lost
        else ()
    )
    steps: list[Step] = []
    if facets & {"definition", "columns", "options"}:
        steps.append(Step(_text(new, "CREATE OR REPLACE VIEW"), Phase.INSTALL, hazards))
    return Alteration(tuple(steps + _defaults(old, new)))


def _create_materialized(new: Object, scene: Scene) -> list[Step]:
    names, query = _query(new)
    words = [f"CREATE MATERIALIZED VIEW {qualified(new.path)}{names}"]
    if new.get("access_method"):
        words.append(f"USING {ident(new.get('access_method'))}")
    if new.get("options"):
        words.append(f"WITH ({options(new.get('options'), order=new.get('option_order') or ())})")
    if new.get("tablespace"):
        words.append(f"TABLESPACE {ident(new.get('tablespace'))}")
    data = "WITH NO DATA" if new.get("unpopulated") else "WITH DATA"
    sql = f"{' '.join(words)} AS\n{query}\n{data}"
    hazard = Hazard(
        "runs-query", f"the query of {'.'.join(new.path)} runs while the migration holds its locks"
    )
    return [
        Step(sql, Phase.INSTALL, () if new.get("unpopulated") else (hazard,)),
        *_column_settings(None, new),
    ]


def _column_settings(old: Object | None, new: Object) -> list[Step]:
    """Statistics targets, storage, compression and options of single columns."""
    was, now = (old.get("column_statistics") if old else None) or {}, new.get("column_statistics") or {}
    changes = [
        (column, f"SET STATISTICS {now.get(column, -1)}")
        for column in sorted(was.keys() | now.keys())
        if was.get(column) != now.get(column)
    ]
    had, have = (old.get("column_settings") if old else None) or {}, new.get("column_settings") or {}
    for column in sorted(had.keys() | have.keys()):
        first, second = had.get(column) or {}, have.get(column) or {}
        if first.get("storage") != second.get("storage"):
            storage = second.get("storage") or new.get("column_storage")[column]
            changes.append((column, f"SET STORAGE {str(storage).upper()}"))
        if first.get("compression") != second.get("compression"):
            changes.append((column, f"SET COMPRESSION {second.get('compression') or 'default'}"))
        before, after = first.get("options") or {}, second.get("options") or {}
        if gone := sorted(before.keys() - after.keys()):
            changes.append((column, f"RESET ({', '.join(map(ident, gone))})"))
        if after and after != before:
            changes.append((column, f"SET ({options(after)})"))
    view = f"ALTER MATERIALIZED VIEW {qualified(new.path)}"
    return [Step(f"{view} ALTER COLUMN {ident(column)} {words}", Phase.INSTALL) for column, words in changes]


def _drop_materialized(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP MATERIALIZED VIEW {qualified(old.path)}", Phase.RETIRE)]


def _alter_materialized(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    view = f"ALTER MATERIALIZED VIEW {qualified(new.path)}"
    if facets <= SET_IN_PLACE:
        steps = _column_settings(old, new)
        if "options" in facets:
            was, now = old.get("options") or {}, new.get("options") or {}
            gone = sorted(was.keys() - now.keys())
            steps += [Step(f"{view} RESET ({', '.join(map(ident, gone))})", Phase.INSTALL)] if gone else []
            steps += [Step(f"{view} SET ({options(now)})", Phase.INSTALL)] if now else []
        if "clustered_on" in facets:
            index = new.get("clustered_on")
            steps.append(
                Step(
                    f"{view} {'CLUSTER ON ' + ident(index) if index else 'SET WITHOUT CLUSTER'}",
                    Phase.INSTALL,
                )
            )
        if "tablespace" in facets:
            steps.append(
                Step(f"{view} SET TABLESPACE {ident(new.get('tablespace') or 'pg_default')}", Phase.INSTALL)
            )
        if "access_method" in facets:
            steps.append(
                Step(f"{view} SET ACCESS METHOD {ident(new.get('access_method') or 'heap')}", Phase.INSTALL)
            )
        return Alteration(tuple(steps))
    return None


VIEW = Kind(_create, _drop, _alter)
MATERIALIZED_VIEW = Kind(_create_materialized, _drop_materialized, _alter_materialized)
