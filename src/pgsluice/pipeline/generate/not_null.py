"""Not-null constraints by name: PostgreSQL 18 has them, older servers know only the fact."""

from __future__ import annotations

from pgsluice.pipeline.generate.naming import automatic, ident, literal, qualified
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase


def is_plain(constraint: Object) -> bool:
    """Whether the name is all that is special: `constraint name not null` in a column says the rest."""
    bare = f"NOT NULL {ident(constraint.get('columns')[0])}"
    return constraint.get("definition") == bare and not constraint.get("not_valid")


def is_key_of_inherited(constraint: Object, scene: Scene) -> bool:
    """Whether it is a primary key of columns that are not null by their parent alone.

    Inside of `create table` it would give them not-null constraints of the table's own.
    """
    if constraint.get("type") != "p":
        return False
    named = (scene.not_nulls.get((*constraint.path[:2], name)) for name in constraint.get("columns"))
    return any(one is not None and one.get("inherited") == "only" for one in named)


def written_not_null(column: Object, scene: Scene) -> str | None:
    """`not null` as a column's own definition says it; None where it may be null or a parent says it."""
    if not column.get("not_null"):
        return None
    named = scene.not_nulls.get(column.path)
    if named is None:
        return _automatic(column, scene)
    if named.get("inherited") == "only" and column.get("inherited") is not None:
        return None
    return f"CONSTRAINT {ident(named.path[2])} NOT NULL" if is_plain(named) else "NOT NULL"


def _automatic(column: Object, scene: Scene) -> str:
    """`not null`, with the automatic name spelt out where another table's constraint has it already."""
    schema, table, name = column.path
    wanted = automatic(table, name, "not_null")
    others = scene.not_null_names.get((schema, wanted), frozenset()) - {table}
    return f"CONSTRAINT {ident(wanted)} NOT NULL" if others else "NOT NULL"


def name_not_null(new: Object) -> list[Step]:
    """Give a column the not-null constraint with this name or form; older servers get only the fact."""
    table = qualified(new.path[:2])
    target = ident(new.get("columns")[0])
    add = literal(f"ALTER TABLE {table} ADD CONSTRAINT {ident(new.path[2])} {new.get('definition')}")
    drop = literal(f"ALTER TABLE {table} ALTER COLUMN {target} DROP NOT NULL")
    fact = literal(f"ALTER TABLE {table} ALTER COLUMN {target} SET NOT NULL")
    anew = f"    EXECUTE {drop};\n    EXECUTE {add};"
    older = "" if new.get("not_valid") else f"\n  ELSE\n    EXECUTE {fact};"
    sql = (
        "DO $pgsluice$\nBEGIN\n  IF pg_catalog.current_setting('server_version_num')::int >= 180000 THEN\n"
        f"{anew}{older}\n  END IF;\nEND\n$pgsluice$"
    )
    if is_plain(new):
        rename = _renaming((new.path[0], new.path[1]), new.path[2])
        sql = (
            "DO $pgsluice$\nDECLARE\n  found_name name;\nBEGIN\n"
            "  IF pg_catalog.current_setting('server_version_num')::int < 180000 THEN\n"
            f"    EXECUTE {fact};\n    RETURN;\n  END IF;\n"
            f"{_lookup((new.path[0], new.path[1]), new.get('columns')[0])}"
            f"  IF found_name IS NULL THEN\n    EXECUTE {add};\n"
            f"  ELSIF found_name <> {literal(new.path[2])} THEN\n    {rename}\n  END IF;\nEND\n$pgsluice$"
        )
    return [Step(sql, Phase.ENFORCE)]


def unname_not_null(old: Object, scene: Scene) -> list[Step]:
    """Drop a named not-null constraint; where the column stays not null, only the name goes."""
    schema, table, _ = old.path
    column = old.get("columns")[0]
    kept = scene.after.objects.get(Address("column", (schema, table, column)))
    stays = kept is not None and kept.get("not_null")
    if stays and is_renamable(old):
        wanted = automatic(table, column, "not_null")
        comment = [uncomment_not_null((schema, table), column)] if old.get("comment") is not None else []
        return [
            Step(sql, Phase.PREPARE) for sql in (*comment, rename_not_null((schema, table), column, wanted))
        ]
    head = f"ALTER TABLE {qualified((schema, table))} ALTER COLUMN {ident(column)}"
    steps = [Step(f"{head} DROP NOT NULL", Phase.PREPARE)]
    return [*steps, Step(f"{head} SET NOT NULL", Phase.PREPARE)] if stays else steps


def is_renamable(constraint: Object) -> bool:
    """Whether another name is all that the constraint lacks to be an automatic one."""
    plain = "NO INHERIT" not in str(constraint.get("definition")) and not constraint.get("not_valid")
    return plain and constraint.get("inherited") != "only"


def rename_not_null(table: tuple[str, str], column: str, new_name: str) -> str:
    """Rename a column's not-null constraint where the server has one (18 and later), whatever it is called.

    One that is inherited follows its parent's name.
    """
    own = _lookup(table, column, condition=" AND k.coninhcount = 0")
    return (
        f"DO $pgsluice$\nDECLARE\n  found_name name;\nBEGIN\n{own}"
        f"  IF found_name <> {literal(new_name)} THEN\n"
        f"    {_renaming(table, new_name)}\n  END IF;\nEND\n$pgsluice$"
    )


def uncomment_not_null(table: tuple[str, str], column: str) -> str:
    """Take the comment off a column's not-null constraint where the server has one."""
    name = qualified(table).replace("%", "%%")
    pattern = literal(f"COMMENT ON CONSTRAINT %I ON {name} IS NULL")
    return (
        f"DO $pgsluice$\nDECLARE\n  found_name name;\nBEGIN\n{_lookup(table, column)}"
        f"  IF found_name IS NOT NULL THEN\n"
        f"    EXECUTE pg_catalog.format({pattern}, found_name);\n  END IF;\nEND\n$pgsluice$"
    )


def _lookup(table: tuple[str, str], column: str, *, condition: str = "") -> str:
    relation = literal(qualified(table))
    return (
        "  SELECT k.conname INTO found_name\n"
        "  FROM pg_catalog.pg_constraint AS k\n"
        "  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]\n"
        f"  WHERE k.contype = 'n' AND k.conrelid = {relation}::pg_catalog.regclass\n"
        f"    AND a.attname = {literal(column)}{condition};\n"
    )


def _renaming(table: tuple[str, str], new_name: str) -> str:
    parts = [part.replace("%", "%%") for part in (qualified(table), ident(new_name))]
    pattern = literal(f"ALTER TABLE {parts[0]} RENAME CONSTRAINT %I TO {parts[1]}")
    return f"EXECUTE pg_catalog.format({pattern}, found_name);"
