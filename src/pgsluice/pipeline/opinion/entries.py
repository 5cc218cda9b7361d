"""The output of `pg_dump --schema-only` as a set of entries, without the order of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What is under one name; overloads apart, nearly always one text.
Entries = Mapping[str, tuple[str, ...]]

HEADER: Final = re.compile(
    r"^--\n-- Name: (?P<name>.*); Type: (?P<type>.*); Schema: (?P<schema>.*?); Owner: (?P<owner>.*)\n--\n",
    re.MULTILINE,
)
TRAILER: Final = re.compile(r"^--\n-- PostgreSQL database dump complete\n--\n", re.MULTILINE)
# pg_dump sets these ahead of the header of the entry that they are for.
BETWEEN: Final = "SET default_"
# Kinds whose lines may stand in any order: columns, options, grants.
UNORDERED: Final = frozenset(
    {"ACL", "DEFAULT ACL", "FOREIGN DATA WRAPPER", "FOREIGN TABLE", "SERVER", "TABLE", "USER MAPPING"}
)
OPTIONS: Final = re.compile(r"\bWITH \(([^()']*(?:'[^']*'[^()']*)*)\)")
NOT_NULL_NAME: Final = re.compile(r'^("(?:[^"]|"")*"|\S+) (.*) CONSTRAINT ("(?:[^"]|"")*"|\S+) NOT NULL')
# Entries about another object, whose name begins with its kind: `TABLE users`, `CONSTRAINT c ON users`.
ABOUT: Final = frozenset({"ACL", "COMMENT", "SECURITY LABEL"})
KIND: Final = re.compile(r"(?:[A-Z]+ )+")
PART_OF: Final = re.compile(r".* ON ")


def parse_dump(text: str, *, ignore: Sequence[str] = ()) -> Entries:
    """Split a dump into entries by kind and name.

    Args:
        ignore: Patterns such as `app.scratch_*` over `schema.name`; entries of such objects stay out.
    """
    trailer = TRAILER.search(text)
    text = text[: trailer.start()] if trailer else text
    headers = list(HEADER.finditer(text))
    ends = [*(header.start() for header in headers[1:]), len(text)]
    found: dict[str, list[str]] = {}
    for header, end_of_body in zip(headers, ends, strict=False):  # without a header there is one end
        if any(_is_ignored(header, pattern) for pattern in ignore):
            continue
        body = text[header.end() : end_of_body]
        found.setdefault(_key(header), []).append(_normal_form(header, body))
    return {key: tuple(sorted(bodies)) for key, bodies in found.items()}


def compare_entries(expected: Entries, actual: Entries) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each entry that differs, with the lines that only one side has."""
    return tuple(
        (key, tuple(_differing_lines(expected.get(key), actual.get(key))))
        for key in sorted(expected.keys() | actual.keys())
        if expected.get(key) != actual.get(key)
    )


def _key(header: re.Match[str]) -> str:
    """Such as `TABLE app.users` and `COMMENT COLUMN app.users.email`."""
    schema = "" if header["schema"] == "-" else f"{header['schema']}."
    kind, name = "", header["name"]
    if header["type"] in ABOUT and (match := KIND.match(name)):
        kind, name = match[0], name[match.end() :]
    return f"{header['type']} {kind}{schema}{name}"


def _normal_form(header: re.Match[str], body: str) -> str:
    lines = body.strip("\n").split("\n")
    while lines and (not lines[-1] or lines[-1].startswith(BETWEEN)):
        lines.pop()
    if header["type"] in UNORDERED:
        lines = [line.strip().rstrip(",") for line in lines]
        lines = sorted(_without_automatic_name(line, header["name"]) for line in lines if line)
    owner = header["owner"].split("; Tablespace: ")
    lines = [f"owner {owner[0]}", *(f"tablespace {name}" for name in owner[1:]), *lines]
    return "\n".join(OPTIONS.sub(_sorted_options, line) for line in lines)


def _sorted_options(match: re.Match[str]) -> str:
    """Storage options in one order: the catalog keeps that of their setting."""
    return f"WITH ({', '.join(sorted(match[1].split(', ')))})"


def _without_automatic_name(line: str, table: str) -> str:
    """Leave out a not-null constraint's name that PostgreSQL 18 chose, when another number was free."""
    match = NOT_NULL_NAME.match(line)
    if match is None:
        return line
    column, name = (part.strip('"').replace('""', '"') for part in (match[1], match[3]))
    if re.fullmatch(re.escape(f"{table}_{column}_not_null") + r"\d*", name) is None:
        return line
    return f"{match[1]} {match[2]} NOT NULL{line[match.end() :]}"


def _differing_lines(expected: tuple[str, ...] | None, actual: tuple[str, ...] | None) -> Iterator[str]:
    if expected is None or actual is None:
        yield "missing" if actual is None else "not expected"
        return
    want = Counter(line for body in expected for line in body.split("\n"))
    have = Counter(line for body in actual for line in body.split("\n"))
    only = [f"expected: {line.strip()}" for line in (want - have).elements()]
    only += [f"found:    {line.strip()}" for line in (have - want).elements()]
    yield from only or ("the same lines in another order",)


def _is_ignored(header: re.Match[str], pattern: str) -> bool:
    """Whether a pattern means this entry's object, or the one that the entry is about, as for a comment."""
    name = header["name"]
    if header["type"] in ABOUT:
        name = PART_OF.sub("", KIND.sub("", name, count=1), count=1)
    bare = re.sub(r"\(.*\)$", "", name).replace('"', "")
    return fnmatchcase(f"{header['schema']}.{bare}", pattern)
