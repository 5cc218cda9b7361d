"""Plans that need a word from the user: rows without a value for a new column, data that would be lost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.errors import InputError, Location, RefusedError
from pgsluice.pipeline.quoting import join_name, quote_identifier
from pgsluice.pipeline.written import Written, runs_code, spellings, written_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.statement import Backfill, Loss, Plan

SQL_LINES: Final = 10
HEAD: Final = '{% extends "migration.sql.j2" %}\n'
IMPORT: Final = '{% import "macros.sql.j2" as sql %}\n'
SAMPLES: Final = (
    (r"(small|big)?int(eger)?|numeric.*|decimal.*|real|double precision|oid", "0"),
    (r"text|character.*|varchar.*|name|citext", "''"),
    (r"boolean", "false"),
    (r"timestamp.*", "now()"),
    (r"date", "current_date"),
    (r"jsonb?", "'{}'"),
    (r"uuid", "gen_random_uuid()"),
    (r".*\[\]", "'{}'"),
)


@dataclass(frozen=True, slots=True)
class TemplateWords:
    """What the template says about data.

    `backfill` are the hand-written statements of block backfill; `empty` are (schema, table) or (schema,
    table, column); `losses` are the accepted ones, with where it says so.
    """

    path: str
    text: str | None
    backfill: tuple[str, ...] = ()
    empty: frozenset[tuple[str, ...]] = frozenset()
    losses: tuple[tuple[str, Location | None], ...] = ()


def refuse_unsaid(plan: Plan, words: TemplateWords, *, allow_destructive: bool) -> None:
    """Refuse what the template should have said, all at once.

    Raises:
        InputError: The template accepts a loss that the plan does not have.
        RefusedError: A column has no backfill, or a loss is not accepted.
    """
    _refuse_unknown_losses(plan, words)
    columns = [backfill for backfill in plan.backfills if not _is_filled(backfill, words)]
    accepted = {_plain(what) for what, _ in words.losses}
    losses = [
        loss
        for loss in plan.losses
        if _plain(loss.what) not in accepted and (loss.rename is not None or not allow_destructive)
    ]
    messages: list[str] = []
    details: list[str] = []
    hints: list[str] = []
    if columns:
        messages.append(_missing(columns))
        details += [f"{_column(column)} {column.type}" for column in columns]
        details += _renames(columns, plan)
        hints.append(_backfill_hint(columns, words))
    if losses:
        messages.append("this change loses data" if len(losses) == 1 else f"{len(losses)} changes lose data")
        details += [line for loss in losses for line in _loss_lines(loss)]
        hints.append(_loss_hint(losses, words, first=not columns))
    if messages:
        raise RefusedError("; ".join(messages), details=tuple(details), hint="\n".join(hints))


def _refuse_unknown_losses(plan: Plan, words: TemplateWords) -> None:
    known = [_plain(loss.what) for loss in plan.losses]
    for what, location in words.losses:
        if _plain(what) not in known:
            raise InputError(
                f"the template accepts the loss of {_plain(what)}, which this migration does not lose",
                location=location,
                hint=f"what it loses: {', '.join(known)}"
                if known
                else "take accept_loss out: it loses nothing",
            )


def _is_filled(backfill: Backfill, words: TemplateWords) -> bool:
    address = (backfill.schema, backfill.table, backfill.column)
    if address[:2] in words.empty or address in words.empty:
        return True
    return any(fills(sql, backfill) for sql in words.backfill)


def fills(sql: str, backfill: Backfill) -> bool:
    """Whether a statement writes the column, or runs code that mentions it and its table."""
    written = {Written(backfill.schema, backfill.table, backfill.column)}
    if backfill.schema == "public":
        written.add(Written(None, backfill.table, backfill.column))
    if written & written_columns(sql):
        return True
    return runs_code(sql) and all(_mentions(sql, name) for name in (backfill.table, backfill.column))


def _mentions(sql: str, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", sql, re.IGNORECASE) is not None


def _missing(columns: Sequence[Backfill]) -> str:
    if len(columns) == 1:
        column = columns[0]
        table = join_name((column.schema, column.table))
        return (
            f"column {_column(column)} is not null without a default, and rows of {table} would get no value"
        )
    return (
        f"{len(columns)} columns are not null without a default, and rows of their tables would get no value"
    )


def _column(backfill: Backfill) -> str:
    return join_name((backfill.schema, backfill.table, backfill.column))


def _renames(columns: Sequence[Backfill], plan: Plan) -> list[str]:
    """Columns that go away from the same tables may be the old names."""
    lines: list[str] = []
    for schema, table in dict.fromkeys((column.schema, column.table) for column in columns):
        for start in dict.fromkeys(f"column {name}." for name in spellings(schema, table)):
            lines += [
                f"{_plain(loss.what)} goes away: if it was renamed, write -- pgsluice: renamed from "
                f"{_plain(loss.what).removeprefix(start)} beside the new one"
                for loss in plan.losses
                if loss.rename is None and loss.what.startswith(start)
            ]
    return lines


def _backfill_hint(columns: Sequence[Backfill], words: TemplateWords) -> str:
    calls = [
        "{{ sql.backfill("
        f"table={_jinja(join_name((column.schema, column.table)))}, "
        f"set={_jinja(f'{quote_identifier(column.column)} = {_sample(column.type)}')}, "
        f"where={_jinja(f'{quote_identifier(column.column)} is null')}) }}}}"
        for column in columns
    ]
    block = "\n".join(("{% block backfill %}", *calls, "{% endblock %}"))
    return f"fill {'it' if len(columns) == 1 else 'them'} in {words.path}:\n{_head(words)}{block}"


def _loss_hint(losses: Sequence[Loss], words: TemplateWords, *, first: bool) -> str:
    """How to agree to the losses; what looks like a rename needs the template's word."""
    calls = [f"{{{{ sql.accept_loss({_jinja(loss.what)}) }}}}" for loss in losses]
    block = "\n".join(("{% block preflight %}", *calls, "{{ super() }}", "{% endblock %}"))
    head = _head(words) if first else ""
    flag = "" if any(loss.rename for loss in losses) else "--allow-destructive, or "
    return f"{flag}say in {words.path} that it is meant:\n{head}{block}"


def _head(words: TemplateWords) -> str:
    """The first lines that the template still needs."""
    text = words.text
    if text is None:
        return HEAD + IMPORT
    return "" if re.search(r"{%-?\s*import\s+.*\sas\s+sql\b", text) else IMPORT


def _loss_lines(loss: Loss) -> tuple[str, ...]:
    lines = [loss.what, *(f"  {line}" for line in loss.sql.splitlines()[:SQL_LINES])]
    if loss.rename is not None:
        new, directive = loss.rename
        lines.append(f"  it looks renamed to {new}: to keep the data, write {directive} beside it")
    return tuple(lines)


def _sample(type_name: str) -> str:
    for pattern, value in SAMPLES:
        if re.fullmatch(pattern, type_name):
            return value
    return f"<a value of type {type_name}>"


def _jinja(text: str) -> str:
    """`text` as a string in a template."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _plain(what: str) -> str:
    """A loss by its object alone, which is enough for the template to name it."""
    return re.sub(r" and its (values|rows)$", "", " ".join(what.split()))
