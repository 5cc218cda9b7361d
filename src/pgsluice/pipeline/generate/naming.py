"""Quoting, literals, and the words by which SQL refers to an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pglast.keywords import COL_NAME_KEYWORDS, RESERVED_KEYWORDS, TYPE_FUNC_NAME_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pgsluice.pipeline.snapshot import Object

QUOTED_WORDS: Final = frozenset(COL_NAME_KEYWORDS) | RESERVED_KEYWORDS | TYPE_FUNC_NAME_KEYWORDS
PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
NAME_BYTES: Final = 63

# How `comment on`, `alter … owner to` and `drop` name each kind that is `<words> <schema>.<name>`.
KEYWORDS: Final = {
    "table": "TABLE", "view": "VIEW", "materialized view": "MATERIALIZED VIEW", "sequence": "SEQUENCE",
    "index": "INDEX", "enum": "TYPE", "composite": "TYPE", "range": "TYPE", "base type": "TYPE",
    "domain": "DOMAIN", "statistics": "STATISTICS", "collation": "COLLATION", "conversion": "CONVERSION",
    "schema": "SCHEMA", "extension": "EXTENSION", "publication": "PUBLICATION",
    "event trigger": "EVENT TRIGGER",
    "foreign data wrapper": "FOREIGN DATA WRAPPER", "server": "SERVER", "language": "LANGUAGE",
    "text search dictionary": "TEXT SEARCH DICTIONARY",
    "text search configuration": "TEXT SEARCH CONFIGURATION",
    "text search parser": "TEXT SEARCH PARSER", "text search template": "TEXT SEARCH TEMPLATE",
    "access method": "ACCESS METHOD",
}  # fmt: skip


def ident(name: str) -> str:
    """One identifier, quoted where PostgreSQL would quote it."""
    if name and not name[0].isdigit() and PLAIN.issuperset(name) and name not in QUOTED_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def qualified(path: Iterable[str]) -> str:
    """A dotted name of quoted parts."""
    return ".".join(ident(part) for part in path)


def alter_column(path: Sequence[str]) -> str:
    """`alter table … alter column …` for a column's path."""
    return f"ALTER TABLE {qualified(path[:2])} ALTER COLUMN {ident(path[2])}"


def literal(text: str) -> str:
    """A string constant that reads the same under any `standard_conforming_strings`."""
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def role(name: str | None) -> str:
    """A grantee: PUBLIC for None, the role that runs the migration for `@owner` and `@runner`."""
    if name is None:
        return "PUBLIC"
    return "CURRENT_USER" if name in ("@owner", "@runner") else ident(name)


def options(values: Mapping[str, str | None], *, order: Sequence[str] = ()) -> str:
    """Storage parameters as `a='1', b='2'`: those of `order` first, the rest sorted by name."""
    names = [name for name in order if name in values]
    names += sorted(values.keys() - set(names))
    return ", ".join(
        qualified(name.split(".", 1)) + (f"={literal(value)}" if (value := values[name]) is not None else "")
        for name in names
    )


def automatic(first: str, second: str | None, label: str) -> str:
    """The name that PostgreSQL makes up: `first_second_label`, the longer part cut first to 63 bytes."""
    head, tail = first.encode(), (second or "").encode()
    room = NAME_BYTES - len(label) - 1 - (1 if second is not None else 0)
    while len(head) + len(tail) > room:
        if len(head) > len(tail):
            head = head[:-1]
        else:
            tail = tail[:-1]
    parts = [
        head.decode(errors="ignore"),
        *([tail.decode(errors="ignore")] if second is not None else []),
        label,
    ]
    return "_".join(parts)


def identity(obj: Object) -> str:
    """The object as `comment on …` names it."""
    kind, path = obj.address
    if kind == "column":
        return f"COLUMN {qualified(path)}"
    if kind in ("constraint", "trigger", "rule", "policy"):
        return f"{kind.upper()} {ident(path[2])} ON {qualified(path[:2])}"
    if kind == "domain constraint":
        return f"CONSTRAINT {ident(path[2])} ON DOMAIN {qualified(path[:2])}"
    if kind == "function":
        return f"{'PROCEDURE' if obj.get('form') == 'procedure' else 'FUNCTION'} {signature(obj)}"
    if kind == "aggregate":
        return f"AGGREGATE {signature(obj)}"
    if kind == "operator":
        return f"OPERATOR {ident(path[0])}.{path[1]} ({path[2]}, {path[3]})"
    if kind in ("operator class", "operator family"):
        return f"{kind.upper()} {qualified(path[:2])} USING {ident(path[2])}"
    if kind == "cast":
        return f"CAST ({path[0]} AS {path[1]})"
    if kind == "user mapping":
        return (
            f"USER MAPPING FOR {'PUBLIC' if path[1] == 'PUBLIC' else ident(path[1])} SERVER {ident(path[0])}"
        )
    if kind == "transform":
        return f"TRANSFORM FOR {path[0]} LANGUAGE {ident(path[1])}"
    if kind == "table" and obj.get("form") == "foreign":
        return f"FOREIGN TABLE {qualified(path)}"
    return f"{KEYWORDS[kind]} {qualified(path)}"


def signature(obj: Object) -> str:
    """A routine with its input types, as `drop` and `grant` want it; `*` for an aggregate over nothing."""
    schema, name, arguments = obj.path
    aggregate = obj.get("aggregate")
    if aggregate is not None:
        arguments = _aggregate_arguments(aggregate, arguments)
    return f"{qualified((schema, name))}({arguments})"


def _aggregate_arguments(aggregate: Mapping[str, object], types: str) -> str:
    if aggregate["kind"] == "n":
        return types or "*"
    return str(aggregate["arguments"])
