"""Names of database objects as schema files spell them, and what a statement defines and uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pgsluice.pipeline.quoting import split_name
from pgsluice.pipeline.sources.tree import strings

if TYPE_CHECKING:
    from pgsluice.pipeline.sources.tree import Node


class Space(StrEnum):
    """The name spaces of PostgreSQL's catalog that schema files refer to by name."""

    RELATION = "relation"
    TYPE = "type"
    ROUTINE = "routine"
    OPERATOR = "operator"
    SCHEMA = "schema"
    EXTENSION = "extension"
    COLLATION = "collation"
    SERVER = "server"
    WRAPPER = "wrapper"
    TEXT_SEARCH = "text search object"
    OPERATOR_CLASS = "operator class"
    LANGUAGE = "language"
    ACCESS_METHOD = "access method"
    PUBLICATION = "publication"
    MEMBER = "member"


class Name(NamedTuple):
    """A name in its name space; `schema` is None where the file does not say it."""

    space: Space
    schema: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema is not None else self.name


class Definition(NamedTuple):
    """An object that a statement creates.

    `word` is its kind (`view`), `signature` tells overloads apart, `arguments` are the least and the most
    arguments of a routine, and `may_exist` says `or replace` or `if not exists`. `table` is set, and `name`
    holds the bare name, where the object lives in a table (triggers, policies, rules).
    """

    name: Name
    word: str
    signature: str = ""
    arguments: tuple[int, float] | None = None
    may_exist: bool = False
    table: str | None = None

    def __str__(self) -> str:
        if self.table is None:
            return f"{self.word} {self.name}{self.signature}"
        table = f"{self.name.schema}.{self.table}" if self.name.schema is not None else self.table
        return f"{self.word} {self.name.name} on {table}"


class Use(NamedTuple):
    """A name that a statement refers to; `is_sure` is False where it may mean something else."""

    name: Name
    arguments: int | None = None
    is_sure: bool = True


class Trait(StrEnum):
    """What else matters about a statement when it is put in order."""

    IMPERATIVE = "imperative"
    EXTENSION = "extension"
    SCHEMA = "schema"
    EVENT_TRIGGER = "event trigger"
    DEFAULT_PRIVILEGES = "default privileges"
    ALL_IN_SCHEMA = "all in schema"
    OWNER = "owner"
    PARTITION = "partition"
    NAMES_CONSTRAINT = "names a constraint"
    ON_ONLY = "on only"
    RUNS_FUNCTIONS = "runs functions"
    RUNS_QUERY = "runs query"
    IS_STORED = "is stored"


@dataclass(slots=True)
class Facts:
    """What ordering needs to know about one statement.

    `implied` are names that come with the objects defined (a serial column's sequence, a key's index);
    `alters` are objects whose users in other files should come later; `keys` are the tables that inline
    foreign keys refer to, by the constraint's byte in the statement; `superuser` is the one of `roles` that
    must be one; `body` is a function's text in quotes.
    """

    definitions: tuple[Definition, ...] = ()
    implied: tuple[Name, ...] = ()
    uses: set[Use] = field(default_factory=set)
    alters: tuple[Name, ...] = ()
    keys: dict[int, Use] = field(default_factory=dict)
    roles: set[str] = field(default_factory=set)
    superuser: str | None = None
    traits: set[Trait] = field(default_factory=set)
    body: str | None = None


def qualified(space: Space, items: list[Node]) -> Name | None:
    """The name that a list of String nodes spells; a catalog name in front is dropped."""
    parts = strings(items)
    if not parts:
        return None
    return Name(space, parts[-2] if len(parts) > 1 else None, parts[-1])


def relation(node: Node) -> Name:
    """The name of a RangeVar node."""
    return Name(Space.RELATION, node.get("schemaname"), node["relname"])


def literal_name(space: Space, text: str) -> Name | None:
    """The name that a string such as `'app."My Seq"'` spells, as `regclass` would read it."""
    parts = split_name(text)
    if not parts:
        return None
    return Name(space, parts[-2] if len(parts) > 1 else None, parts[-1])
