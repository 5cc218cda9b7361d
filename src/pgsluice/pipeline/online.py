"""Split a plan into files between which a database stays in use.

Only statements that would keep others waiting for long are made in another way; the rest stays as it is, in
the first file, with its hazards. What must follow a statement follows it into a later file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline import online_sql as sql
from pgsluice.pipeline.generate.naming import ident, qualified
from pgsluice.pipeline.parts import PARTS, Part
from pgsluice.pipeline.refusals import fills
from pgsluice.pipeline.snapshot import Address
from pgsluice.pipeline.statement import PHASE_ORDER, Backfill, Hazard, Phase, Plan, RowCheck, Statement, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.snapshot import Object, Snapshot

RELATIONS: Final = frozenset({"table", "view", "materialized view", "sequence", "index"})
BUILDS: Final = frozenset({Work.BUILD_INDEX, Work.BUILD_KEY})


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What one file of an online migration does."""

    part: Part
    plan: Plan


def split_online(
    plan: Plan, before: Snapshot, after: Snapshot, *, backfill: Sequence[str] = ()
) -> tuple[FilePlan, ...]:
    """The plan as four files, of which some may have nothing to do.

    Args:
        plan: The whole, as one transaction would run it.
        before: The catalog that the plan starts from.
        after: The catalog that it leads to.
        backfill: The hand-written statements that fill rows; they run in the second file.
    """
    split = _Split(plan, before, after, tuple(backfill))
    split.place_all()
    checks = split.checks_by_part()
    return tuple(
        FilePlan(
            part,
            Plan(
                statements=tuple(
                    sorted(split.statements_of(part), key=lambda one: PHASE_ORDER.index(one.phase))
                ),
                checks=checks[part],
                touched=plan.touched,
            ),
        )
        for part in PARTS
    )


@dataclass
class _Split:
    """The state of one split: `done` says in which file each statement's effect is complete."""

    plan: Plan
    before: Snapshot
    after: Snapshot
    backfill: tuple[str, ...]
    done: dict[int, Part] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    main: dict[Part, list[Statement]] = field(default_factory=lambda: defaultdict(list))
    helpers: dict[Part, list[Statement]] = field(default_factory=lambda: defaultdict(list))
    validations: list[Statement] = field(default_factory=list)
    endings: dict[Part, list[Statement]] = field(default_factory=lambda: defaultdict(list))

    @cached_property
    def earlier(self) -> dict[int, list[int]]:
        """For each statement those that it follows."""
        found: dict[int, list[int]] = defaultdict(list)
        for first, second in sorted(self.plan.order):
            found[second].append(first)
        return found

    @cached_property
    def later(self) -> dict[int, list[int]]:
        """For each statement those that follow it."""
        found: dict[int, list[int]] = defaultdict(list)
        for first, second in sorted(self.plan.order):
            found[first].append(second)
        return found

    @cached_property
    def replaced(self) -> dict[int, int]:
        """Builds of an index whose name another one has, with the drop that frees it."""
        found: dict[int, int] = {}
        for number, statement in enumerate(self.plan.statements):
            if statement.work not in BUILDS or statement.address is None:
                continue
            for one in self.earlier[number]:
                if _index_name(self.plan.statements[one]) == _index_name(statement):
                    found[number] = one
        return found

    @cached_property
    def relations(self) -> set[str]:
        """Names that no new index may take."""
        found = set()
        for snapshot in (self.before, self.after):
            for address in snapshot.objects:
                if address.kind in RELATIONS:
                    found.add(address.path[1])
                elif address.kind == "constraint":
                    found.add(address.path[2])
        return found

    def place_all(self) -> None:
        """Put every statement into its file or files."""
        deferred = {drop for build, drop in self.replaced.items() if self._is_swap(build, drop)}
        for number, statement in enumerate(self.plan.statements):
            if number in deferred:
                self.done[number] = Part.VALIDATE
                continue
            self.done[number] = self._place(number, statement)
        self._loosen_retired_columns()

    def statements_of(self, part: Part) -> list[Statement]:
        """The statements of one file: long scans first, what takes a strong lock after them."""
        first = self.validations if part is Part.VALIDATE else self.helpers[part]
        return [*first, *self.main[part], *self.endings[part]]

    def _place(self, number: int, statement: Statement) -> Part:
        work, address = statement.work, statement.address
        if work is None or address is None:
            return self._place_whole(number, statement)
        if work is Work.VALIDATE and self._floor(number) is not Part.RETIRE:
            self.validations.append(replace(statement, phase=Phase.ENFORCE))
            return Part.VALIDATE
        if work is Work.CHECK_ROWS and self._floor(number, aside=True) is Part.EXPAND:
            return self._check_later(statement, address)
        if work is Work.FILL_COLUMN and self._floor(number) in (Part.EXPAND, Part.CONCURRENTLY):
            return self._prove_filled(statement, address)
        if work in BUILDS and self._can_build(number):
            if work is Work.BUILD_INDEX:
                return self._build_index(number, statement, address)
            if sql.build_key_index(self.after.objects[address], "name") is not None:
                return self._build_key(number, statement, address)
        if work is Work.DROP_INDEX and self._can_drop_beside(number):
            self._add(Part.CONCURRENTLY, statement, sql.drop_index_concurrently(*address.path), ending=True)
            return Part.CONCURRENTLY
        return self._place_whole(number, statement)

    def _place_whole(self, number: int, statement: Statement) -> Part:
        """As it is: in the first file, in the last one if it retires something, or after what it follows."""
        natural = Part.RETIRE if statement.phase is Phase.RETIRE else Part.EXPAND
        part = max(natural, self._floor(number), key=PARTS.index)
        part = Part.VALIDATE if part is Part.CONCURRENTLY else part
        phase = statement.phase
        if part is Part.VALIDATE:
            phase = _not_before_enforce(statement)
        self.whole.add(number)
        self.main[part].append(replace(statement, phase=phase))
        return part

    def _floor(self, number: int, *, aside: bool = False) -> Part:
        """The file before which a statement cannot stand; `aside` leaves out columns that become not null."""
        return max(
            (
                self.done[one]
                for one in self.earlier[number]
                if not (aside and self.plan.statements[one].work is Work.FILL_COLUMN)
                and one != self.replaced.get(number)
            ),
            key=PARTS.index,
            default=Part.EXPAND,
        )

    def _add(self, part: Part, like: Statement, text: str, *, ending: bool = False) -> None:
        """A statement that keeps nobody waiting for long, for the object that `like` is for."""
        phase = like.phase if part is Part.EXPAND else _not_before_enforce(like)
        target = self.endings if ending else self.main
        target[part].append(replace(like, sql=text, phase=phase, hazards=()))

    def _validate_later(self, like: Statement, table: tuple[str, ...], name: str) -> None:
        hazard = Hazard("scans-table", f"{'.'.join(table)} is scanned, reads and writes go on")
        text = sql.validate_constraint(table, name)
        self.validations.append(replace(like, sql=text, phase=Phase.ENFORCE, hazards=(hazard,)))

    def _check_later(self, statement: Statement, address: Address) -> Part:
        self._add(Part.EXPAND, statement, f"{statement.sql} NOT VALID")
        self._validate_later(statement, address.path[:2], address.path[2])
        return Part.VALIDATE

    def _prove_filled(self, statement: Statement, address: Address) -> Part:
        """By a check that is validated first: `set not null` trusts it and does not scan."""
        name = sql.helper_name(address, self._constraints_of(address.path[:2]))
        if self._is_filled_later(address):
            text = sql.add_helper_again(address, name)
            self.helpers[Part.CONCURRENTLY].append(
                replace(statement, sql=text, phase=Phase.ENFORCE, hazards=())
            )
        else:
            self._add(Part.EXPAND, statement, sql.add_helper(address, name))
        self._validate_later(statement, address.path[:2], name)
        self._add(Part.VALIDATE, statement, statement.sql)
        self._add(Part.VALIDATE, statement, sql.drop_helper(address, name), ending=True)
        return Part.VALIDATE

    def _is_filled_later(self, column: Address) -> bool:
        """Whether rows without a value may be there, or come, until the backfill has run."""
        schema, table, name = column.path
        wanted = Backfill(schema, table, name, "")
        return column not in self.before.objects or any(fills(text, wanted) for text in self.backfill)

    def _constraints_of(self, table: tuple[str, ...]) -> set[str]:
        return {
            address.path[2]
            for snapshot in (self.before, self.after)
            for address in snapshot.objects
            if address.kind == "constraint" and address.path[:2] == table
        }

    def _can_build(self, number: int) -> bool:
        drop = self.replaced.get(number)
        if drop is not None and not self._is_swap(number, drop):
            return False
        return self._floor(number, aside=True) in (Part.EXPAND, Part.CONCURRENTLY)

    def _is_swap(self, build: int, drop: int) -> bool:
        """Whether the old index can stay until the new one is there: nothing else waits for its end."""
        address = self.plan.statements[build].address
        followers = {self.plan.statements[one].address for one in self.later[drop]}
        return followers <= {address} and not self.earlier[drop] and self._is_known_form(build)

    def _is_known_form(self, build: int) -> bool:
        statement = self.plan.statements[build]
        assert statement.address is not None
        if statement.work is Work.BUILD_KEY:
            return sql.build_key_index(self.after.objects[statement.address], "name") is not None
        return sql.build_concurrently(statement.sql, statement.address, "name") is not None

    def _build_index(self, number: int, statement: Statement, address: Address) -> Part:
        schema, name = address.path
        old = self.replaced.get(number)
        interim = name if old is None else sql.interim_name(name, self.relations)
        text = sql.build_concurrently(statement.sql, address, interim)
        if text is None:
            return self._place_whole(number, statement)
        self._add(Part.CONCURRENTLY, statement, sql.drop_index_concurrently(schema, interim))
        self._add(Part.CONCURRENTLY, statement, text)
        if old is None:
            return Part.CONCURRENTLY
        self._add(Part.VALIDATE, self.plan.statements[old], self.plan.statements[old].sql)
        self._add(Part.VALIDATE, statement, sql.rename_index(schema, old=interim, new=name))
        return Part.VALIDATE

    def _build_key(self, number: int, statement: Statement, address: Address) -> Part:
        key: Object = self.after.objects[address]
        schema, name = address.path[0], address.path[2]
        old = self.replaced.get(number)
        interim = name if old is None else sql.interim_name(name, self.relations)
        build, use = sql.build_key_index(key, interim), sql.use_index(key, interim)
        assert build is not None
        assert use is not None
        self._add(Part.CONCURRENTLY, statement, sql.drop_index_concurrently(schema, interim))
        self._add(Part.CONCURRENTLY, statement, build)
        if old is not None:
            self._add(Part.VALIDATE, self.plan.statements[old], self.plan.statements[old].sql)
        self._add(Part.VALIDATE, statement, use)
        return Part.VALIDATE

    def _can_drop_beside(self, number: int) -> bool:
        """Whether all that follows the drop of an index stands in a later file."""
        followers = [self.plan.statements[one] for one in self.later[number]]
        return self._floor(number) in (Part.EXPAND, Part.CONCURRENTLY) and all(
            one.phase is Phase.RETIRE or one.work is Work.FILL_COLUMN for one in followers
        )

    def _loosen_retired_columns(self) -> None:
        """Code that no longer knows a column must be able to insert rows before the column goes."""
        for statement in self.main[Part.RETIRE]:
            address = statement.address
            if address is None or address.kind != "column" or not self._must_be_given(address):
                continue
            table, column = qualified(address.path[:2]), ident(address.path[2])
            text = f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL"
            claim = f"loosen {address}"
            self.endings[Part.EXPAND].append(Statement(text, claim, Phase.ENFORCE, address=address))

    def _must_be_given(self, column: Address) -> bool:
        old = self.before.objects.get(column)
        if old is None or column in self.after.objects or not old.get("not_null"):
            return False
        has_default = Address("default", column.path) in self.before.objects
        has_value = old.get("identity") or old.get("generated") or has_default
        table = self.before.objects.get(Address("table", column.path[:2]))
        is_plain = table is not None and not table.get("replica_identity") and not old.get("inherited")
        in_key = any(
            one.kind == "constraint"
            and one.path[:2] == column.path[:2]
            and one.get("type") in ("p", "n")
            and column.path[2] in one.get("columns")
            for one in self.before.objects.values()
        )
        return is_plain and not has_value and not in_key

    def checks_by_part(self) -> dict[Part, tuple[RowCheck, ...]]:
        """Where rows are looked at first: before anything is done, unless a backfill mends them."""
        found: dict[Part, dict[RowCheck, None]] = {part: {} for part in PARTS}
        owner = {check: number for number, one in enumerate(self.plan.statements) for check in one.checks}
        for check in self.plan.checks:
            part = self._check_part(owner.get(check))
            if part is not None:
                found[part][check] = None
        return {part: tuple(checks) for part, checks in found.items()}

    def _check_part(self, number: int | None) -> Part | None:
        """None where the statement itself says which rows are in its way, after the backfill."""
        if number is None or not self.backfill:
            return next((part for part in PARTS if self.statements_of(part)), Part.EXPAND)
        if number in self.whole:
            return self.done[number]
        return None if self.plan.statements[number].work in BUILDS else Part.VALIDATE


def _not_before_enforce(statement: Statement) -> Phase:
    return max(statement.phase, Phase.ENFORCE, key=PHASE_ORDER.index)


def _phase(statement: Statement) -> int:
    return PHASE_ORDER.index(statement.phase)


def _index_name(statement: Statement) -> tuple[str, str] | None:
    """Schema and name of the index that a statement makes or drops, also as part of a constraint."""
    address = statement.address
    if address is None or address.kind not in ("index", "constraint"):
        return None
    return address.path[0], address.path[-1]
