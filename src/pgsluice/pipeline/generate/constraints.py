"""Constraints of tables and domains, and indexes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.generate.lineage import (
    brought_by,
    joins_tree,
    joins_with,
    leaves_parent,
    must_be_made_anew,
)
from pgsluice.pipeline.generate.naming import ident, literal, options, qualified
from pgsluice.pipeline.generate.not_null import name_not_null, unname_not_null
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.generate.tables import constraint_body
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Hazard, Phase, RowCheck, Work

if TYPE_CHECKING:
    from collections.abc import Mapping

ONLY: Final = re.compile(r"^(CREATE (?:UNIQUE )?INDEX .*?) ON ONLY ", re.DOTALL)


def _create(new: Object, scene: Scene) -> list[Step]:
    if new.get("inherited") == "only" and not scene.settling:
        return _bring(new, scene)
    table = ".".join(new.path[:2])
    if new.get("type") == "n":
        return name_not_null(new)
    hazards = (
        ()
        if new.get("not_valid")
        else (Hazard("scans-table", f"{table} is checked or indexed under a lock"),)
    )
    sql = f"ALTER TABLE {qualified(new.path[:2])} ADD CONSTRAINT {ident(new.path[2])} {constraint_body(new)}"
    comment = [*_own_index_statistics(None, new), *_index_comment(None, new)]
    work = _work(new, scene)
    return [Step(sql, Phase.ENFORCE, hazards, checks=violations(new, scene), work=work), *comment]


def _work(new: Object, scene: Scene) -> Work | None:
    """What a new constraint does with rows, unless only one statement can make it."""
    table = scene.after.objects.get(Address("table", new.path[:2]))
    kind, form = new.get("type"), table.get("form") if table is not None else "foreign"
    if form == "foreign" or new.get("not_valid") or scene.settling:
        return None
    if kind == "c" or (kind == "f" and form is None):
        return Work.CHECK_ROWS
    return Work.BUILD_KEY if kind in ("p", "u") and form is None else None


def _bring(new: Object, scene: Scene) -> list[Step]:
    """A check or not-null constraint that a table must have before it joins the tree that has it."""
    if new.get("type") == "c" and joins_with(new, scene):
        head = f"ALTER TABLE {qualified(new.path[:2])} ADD CONSTRAINT {ident(new.path[2])}"
        return [Step(f"{head} {constraint_body(new)}", Phase.EXPAND)]
    if new.get("type") == "n" and joins_tree(new, scene):
        return name_not_null(new)
    return []


def _own_index_statistics(old: Object | None, new: Object) -> list[Step]:
    """Of the index that stands behind an exclusion constraint."""
    name = qualified((new.path[0], new.path[2]))
    return _targets(name, old.get("index_statistics") if old else None, new.get("index_statistics"))


def _index_comment(old: Object | None, new: Object) -> list[Step]:
    text = new.get("index_comment")
    if (old.get("index_comment") if old else None) == text:
        return []
    name = qualified((new.path[0], new.path[2]))
    return [Step(f"COMMENT ON INDEX {name} IS {'NULL' if text is None else literal(text)}", Phase.INSTALL)]


def violations(new: Object, scene: Scene) -> tuple[RowCheck, ...]:
    """A query for the rows that break a new constraint, where the old schema can already be asked."""
    if new.get("not_valid") or Address("table", new.path[:2]) not in scene.before.objects:
        return ()
    kind, name = new.get("type"), f"{new.path[2]} of {'.'.join(new.path[:2])}"
    columns = [*new.path[:2]], new.get("columns") or []
    if not all(_unchanged(Address("column", (*columns[0], column)), scene) for column in columns[1]):
        return ()
    if any(needed.kind not in ("table", "column") and not _same(needed, scene) for needed in new.needs):
        return ()
    table = qualified(new.path[:2])
    listed = [ident(column) for column in columns[1]]
    hint = "mend or move these rows first, or in block preflight of the migration's template"
    if kind == "c":
        expression = re.sub(
            r"^CHECK (.*?)( NO INHERIT)?( NOT VALID)?$", r"\1", new.get("definition"), flags=re.DOTALL
        )
        return (
            RowCheck(
                f"select * from {table} where not {expression}", f"rows break the new check {name}", hint
            ),
        )
    if kind in ("p", "u"):
        return (
            _duplicates(
                table,
                listed,
                f"rows are not unique for {name}",
                nulls="NULLS NOT DISTINCT" in new.get("definition"),
            ),
        )
    if kind == "f":
        return _orphans(new, table, listed, scene, hint)
    return ()


def _same(needed: Address, scene: Scene) -> bool:
    old, new = scene.before.objects.get(needed), scene.after.objects.get(needed)
    return old is not None and new is not None and old.facets == new.facets


def _duplicates(table: str, listed: list[str], message: str, *, nulls: bool) -> RowCheck:
    filled = "" if nulls else f" where {' and '.join(f'{column} is not null' for column in listed)}"
    names = ", ".join(listed)
    rows = f"select {names}, count(*) as rows from {table}{filled} group by {names} having count(*) > 1"
    return RowCheck(
        rows, message, "remove the duplicates first, or in block preflight of the migration's template"
    )


def _orphans(new: Object, table: str, listed: list[str], scene: Scene, hint: str) -> tuple[RowCheck, ...]:
    schema, name, keys = new.get("references")
    if not all(_unchanged(Address("column", (schema, name, key)), scene) for key in keys):
        return ()
    filled = " and ".join(f"child.{column} is not null" for column in listed)
    same = " and ".join(
        f"parent.{ident(key)} = child.{column}" for column, key in zip(listed, keys, strict=True)
    )
    rows = (
        f"select {', '.join(f'child.{column}' for column in listed)} from {table} as child where {filled} "
        f"and not exists (select from {qualified((schema, name))} as parent where {same})"
    )
    message = f"rows have no parent for the new foreign key {new.path[2]} of {'.'.join(new.path[:2])}"
    return (RowCheck(rows, message, hint),)


def _unchanged(column: Address, scene: Scene) -> bool:
    old, new = scene.before.objects.get(column), scene.after.objects.get(column)
    return old is not None and new is not None and old.get("type") == new.get("type")


def _drop(old: Object, scene: Scene) -> list[Step]:
    if old.get("inherited") == "only" and not scene.settling and not leaves_parent(old, scene):
        return []
    if old.get("type") == "n":
        return unname_not_null(old, scene)
    return [
        Step(f"ALTER TABLE {qualified(old.path[:2])} DROP CONSTRAINT {ident(old.path[2])}", Phase.PREPARE)
    ]


def _alter(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if "inherited" in facets and new.get("type") == "c":
        if must_be_made_anew(old, new, scene):
            return Alteration((), frozenset({Address("table", old.path[:2])}))
        if _must_give_way(old, new, scene):
            return None
        if new.get("inherited") == "merged" and old.get("inherited") == "only" and facets == {"inherited"}:
            return Alteration(tuple(_create(new, scene)))
    inherited = new.get("inherited") == "only" and not scene.settling
    if inherited or facets == {"inherited"}:
        return Alteration()
    bare = str(old.get("definition")).removesuffix(" NOT VALID") == new.get("definition")
    if facets <= {"not_valid", "definition"} and old.get("not_valid") and not new.get("not_valid") and bare:
        hazard = Hazard("scans-table", f"{'.'.join(new.path[:2])} is scanned, reads and writes go on")
        sql = f"ALTER TABLE {qualified(new.path[:2])} VALIDATE CONSTRAINT {ident(new.path[2])}"
        step = Step(sql, Phase.ENFORCE, (hazard,), checks=violations(new, scene), work=Work.VALIDATE)
        return Alteration((step,))
    if facets <= {"index_options", "index_tablespace", "index_comment", "index_statistics"}:
        index = f"ALTER INDEX {qualified((new.path[0], new.path[2]))}"
        return Alteration(
            (
                *_storage(index, old, new, facet="index_options"),
                *_own_index_statistics(old, new),
                *_index_comment(old, new),
            )
        )
    return None


def _must_give_way(old: Object, new: Object, scene: Scene) -> bool:
    """Whether the table's own check would merge with the one that a parent brings and that shall be alone."""
    above = brought_by(new, scene.after)
    return new.get("inherited") == "only" and above is not None and above not in scene.before.objects


def _storage(index: str, old: Object, new: Object, *, facet: str) -> list[Step]:
    was, now = old.get(facet) or {}, new.get(facet) or {}
    gone = sorted(was.keys() - now.keys())
    steps = [Step(f"{index} RESET ({', '.join(map(ident, gone))})", Phase.INSTALL)] if gone else []
    return steps + ([Step(f"{index} SET ({options(now)})", Phase.INSTALL)] if now and now != was else [])


def _create_index(new: Object, scene: Scene) -> list[Step]:
    if new.get("parent") is not None and not scene.settling:
        return []
    sql = str(new.get("definition"))
    if new.get("table_kind") == "p" and not new.get("invalid"):
        sql = ONLY.sub(r"\1 ON ", sql)
    if new.get("tablespace"):
        words = f" TABLESPACE {ident(new.get('tablespace'))}"
        sql = sql.replace(" WHERE ", words + " WHERE ", 1) if " WHERE " in sql else sql + words
    table = ".".join(new.get("table"))
    steps = [
        Step(
            sql,
            Phase.ENFORCE,
            (Hazard("blocks-writes", f"writes to {table} wait while the index is built"),),
            checks=_index_checks(new, scene),
            work=Work.BUILD_INDEX if _is_alone(new) else None,
        )
    ]
    if new.get("parent") is not None:
        steps.append(
            Step(
                f"ALTER INDEX {qualified(new.get('parent'))} ATTACH PARTITION {qualified(new.path)}",
                Phase.ENFORCE,
            )
        )
    return steps + _index_statistics(None, new)


def _index_checks(new: Object, scene: Scene) -> tuple[RowCheck, ...]:
    table = tuple(new.get("table"))
    if not new.get("unique") or Address("table", table) not in scene.before.objects or new.get("predicate"):
        return ()
    known = {
        column.path[2]
        for column in scene.before.objects.values()
        if column.kind == "column" and column.path[:2] == table
    }
    listed = [str(column) for column in new.get("columns")]
    if not all(
        column.strip('"') in known and _unchanged(Address("column", (*table, column.strip('"'))), scene)
        for column in listed
    ):
        return ()
    message = f"rows are not unique for the new index {new.path[1]} of {'.'.join(table)}"
    return (_duplicates(qualified(table), listed, message, nulls=bool(new.get("nulls_not_distinct"))),)


def _index_statistics(old: Object | None, new: Object) -> list[Step]:
    had = old.get("column_statistics") if old else None
    return _targets(qualified(new.path), had, new.get("column_statistics"))


def _targets(index: str, had: Mapping[str, int] | None, want: Mapping[str, int] | None) -> list[Step]:
    was, now = had or {}, want or {}
    return [
        Step(f"ALTER INDEX {index} ALTER COLUMN {number} SET STATISTICS {now.get(number, -1)}", Phase.INSTALL)
        for number in sorted(was.keys() | now.keys())
        if was.get(number) != now.get(number)
    ]


def _drop_index(old: Object, scene: Scene) -> list[Step]:
    if old.get("parent") is not None and not leaves_parent(old, scene):
        return []
    work = Work.DROP_INDEX if _is_alone(old) else None
    return [Step(f"DROP INDEX {qualified(old.path)}", Phase.RETIRE, work=work)]


def _is_alone(index: Object) -> bool:
    """Whether it is on one table, so that it can be built and dropped beside other work."""
    return index.get("table_kind") != "p" and index.get("parent") is None and not index.get("invalid")


def _alter_index(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"parent"} and new.get("parent") is not None:
        if not scene.settling:
            return Alteration()
        sql = f"ALTER INDEX {qualified(new.get('parent'))} ATTACH PARTITION {qualified(new.path)}"
        return Alteration((Step(sql, Phase.ENFORCE),))
    if facets == {"parent"} and _leaves_tree(new, scene):
        return Alteration()
    if facets <= {"column_statistics", "tablespace"}:
        steps = _index_statistics(old, new)
        if "tablespace" in facets:
            steps.append(
                Step(
                    f"ALTER INDEX {qualified(new.path)} SET TABLESPACE "
                    f"{ident(new.get('tablespace') or 'pg_default')}",
                    Phase.ENFORCE,
                )
            )
        return Alteration(tuple(steps))
    if old.get("parent") is not None and new.get("parent") is not None and not scene.settling:
        return Alteration()
    return None


def _leaves_tree(index: Object, scene: Scene) -> bool:
    """Whether the index stays behind on a table that is detached."""
    table = Address("table", tuple(index.get("table")))
    old, new = scene.before.objects.get(table), scene.after.objects.get(table)
    return old is not None and new is not None and old.get("parent") is not None and new.get("parent") is None


def _create_domain_check(new: Object, scene: Scene) -> list[Step]:
    return [
        Step(
            f"ALTER DOMAIN {qualified(new.path[:2])} ADD CONSTRAINT {ident(new.path[2])} "
            f"{new.get('definition')}",
            Phase.ENFORCE,
        )
    ]


def _drop_domain_check(old: Object, scene: Scene) -> list[Step]:
    return [
        Step(f"ALTER DOMAIN {qualified(old.path[:2])} DROP CONSTRAINT {ident(old.path[2])}", Phase.PREPARE)
    ]


def _alter_domain_check(old: Object, new: Object, scene: Scene) -> Alteration | None:
    bare = str(old.get("definition")).removesuffix(" NOT VALID") == new.get("definition")
    if old.get("not_valid") and not new.get("not_valid") and bare:
        sql = f"ALTER DOMAIN {qualified(new.path[:2])} VALIDATE CONSTRAINT {ident(new.path[2])}"
        return Alteration((Step(sql, Phase.ENFORCE),))
    return None


CONSTRAINT = Kind(_create, _drop, _alter)
INDEX = Kind(_create_index, _drop_index, _alter_index)
DOMAIN_CONSTRAINT = Kind(_create_domain_check, _drop_domain_check, _alter_domain_check)
