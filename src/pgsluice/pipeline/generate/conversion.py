"""How a column's values get from the type that was put aside to the new one of its name."""

from __future__ import annotations

from dataclasses import dataclass

from pgsluice.pipeline.generate.held import HELD
from pgsluice.pipeline.generate.naming import ident, qualified
from pgsluice.pipeline.generate.step import Scene, Step
from pgsluice.pipeline.snapshot import Address, Object
from pgsluice.pipeline.statement import Phase


@dataclass(frozen=True)
class Conversion:
    """Conversions between old and new types; `rebuilt` are all types and collations that are made anew."""

    rebuilt: frozenset[Address]
    scene: Scene

    def of_column(self, old: Object, new: Object) -> list[Step] | None:
        """The statement for one column, none for an inherited one.

        Returns:
            None where no expression converts the values: arrays of a composite whose attributes moved.
        """
        if old.get("inherited") is not None:
            return []
        column = f"ALTER TABLE {qualified(new.path[:2])} ALTER COLUMN {ident(new.path[2])}"
        sql = f"{column} TYPE {new.get('type')}"
        if new.get("collation"):
            sql += f" COLLATE {qualified(new.get('collation'))}"
        held = next((one for one in sorted(old.needs & self.rebuilt) if one.kind != "collation"), None)
        table = self.scene.before.objects.get(Address("table", old.path[:2]))
        if held is not None and (table is None or table.get("form") != "foreign"):
            value = self._value(ident(new.path[2]), str(old.get("type")), str(new.get("type")), held=held)
            if value is None:
                return None
            sql += f" USING {value}"
        return [Step(sql, Phase.EXPAND)]

    def moves_attributes_in(self, old: Object) -> bool:
        """Whether the text form of the column's values cannot be read by its new type."""
        return any(self._moves_attributes(one) for one in old.needs & self.rebuilt)

    def _moves_attributes(self, held: Address) -> bool:
        old, new = self.scene.before.objects[held], self.scene.after.objects.get(held)
        inner = [one for one in old.needs & self.rebuilt if one.kind in HELD]
        if held.kind == "composite" and new is not None:
            was, now = ([one[0] for one in obj.get("attributes") or []] for obj in (old, new))
            if was != now:
                return True
        return held.kind in ("composite", "domain") and any(self._moves_attributes(one) for one in inner)

    def _value(self, value: str, was: str, now: str, *, held: Address) -> str | None:
        """An expression of type `now` from `value`, which is of the old type `held` or an array of it."""
        if self._moves_attributes(held):
            is_plain = held.kind == "composite" and not was.endswith("[]")
            return self._row(value, now, held=held) if is_plain else None
        is_direct = held.kind == "domain" and not self.scene.before.objects[held].needs & self.rebuilt
        return f"{value}::{now}" if is_direct else f"{value}::text::{now}"

    def _row(self, value: str, now: str, *, held: Address) -> str | None:
        """A composite built attribute by attribute; what is new is null."""
        was = {one[0]: str(one[1]) for one in self.scene.before.objects[held].get("attributes") or []}
        fields: list[str | None] = []
        for name, type_name, _ in self.scene.after.objects[held].get("attributes") or []:
            field, inner = f"({value}).{ident(name)}", self._type_named(was.get(name, ""))
            if name not in was:
                fields.append("NULL")
            elif inner is None:
                fields.append(f"{field}::{type_name}")
            else:
                fields.append(self._value(field, was[name], str(type_name), held=inner))
        if None in fields:
            return None
        row = f"ROW({', '.join(field for field in fields if field is not None)})::{now}"
        return f"CASE WHEN {value} IS NOT DISTINCT FROM NULL THEN NULL ELSE {row} END"

    def _type_named(self, type_name: str) -> Address | None:
        bare = type_name.removesuffix("[]")
        return next((one for one in sorted(self.rebuilt) if qualified(one.path[:2]) == bare), None)
