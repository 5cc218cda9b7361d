"""Hand-written SQL: its statements and comments, and what a migration file may not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pglast import ast, enums
from pglast.parser import parse_sql, scan, split
from pglast.visitors import Visitor

from pgsluice.pipeline.quoting import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMENTS: Final = frozenset({"SQL_COMMENT", "C_COMMENT"})


@dataclass(frozen=True, slots=True)
class WrittenStatement:
    """A statement without its semicolon, with the comments around it.

    `offset` is where it starts in the text it was read from; `sql` is empty for comments at the end.
    """

    sql: str
    offset: int
    before: tuple[str, ...] = ()
    after: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A column that a statement writes; `schema` is None when the statement names the table alone."""

    schema: str | None
    table: str
    column: str


def split_text(text: str) -> tuple[WrittenStatement, ...]:
    """The statements of `text`, with every comment kept.

    Raises:
        pglast.parser.ParseError: A syntax error; its second argument is the offset.
    """
    slices = list(split(text, with_parser=True, only_slices=True)) if text.strip() else []
    tokens = scan(text) if text.strip() else []
    words = [token for token in tokens if token.name not in COMMENTS]
    ends = [max(token.end for token in words if part.start <= token.start < part.stop) + 1 for part in slices]
    comments = [
        (token.start, text[token.start : token.end + 1]) for token in tokens if token.name in COMMENTS
    ]
    found: list[WrittenStatement] = []
    gap = 0
    for part, end in zip(slices, ends, strict=True):
        found = _with_after(found, text, gap)
        before = _between(comments, gap, part.start, skip=bool(found and found[-1].after))
        found.append(WrittenStatement(text[part.start : end], part.start, before))
        gap = end
    found = _with_after(found, text, gap)
    rest = _between(comments, gap, len(text), skip=bool(found and found[-1].after))
    return (*found, WrittenStatement("", len(text), rest)) if rest else tuple(found)


def forbidden(sql: str, *, transactional: bool) -> tuple[str, str] | None:
    """What is wrong with one statement in a migration file and what to do, or None.

    A file holds no transaction control, and leaves no session state behind.
    """
    statement = parse_sql(sql)[0].stmt
    if isinstance(statement, ast.TransactionStmt):
        how = "the file runs in one transaction" if transactional else "each statement is its own transaction"
        return "a migration holds no transaction control", f"take it out: {how}"
    if not transactional:
        return None
    if (
        isinstance(statement, ast.VariableSetStmt)
        and not statement.is_local
        and statement.name != "TRANSACTION"
    ):
        return "a migration leaves no session state behind", "write set local"
    if _is_lasting_temporary(statement):
        return "a migration leaves no session state behind", "create the temporary table with on commit drop"
    return None


def written_columns(sql: str) -> frozenset[Written]:
    """The columns that `update`, `insert` and `merge` write, also inside of `with`."""
    visitor = _WriteVisitor()
    visitor(parse_sql(sql))
    return frozenset(visitor.found)


def runs_code(sql: str) -> bool:
    """Whether the statement calls code whose writes its tree does not show."""
    return isinstance(parse_sql(sql)[0].stmt, ast.DoStmt | ast.CallStmt | ast.SelectStmt)


def _is_lasting_temporary(statement: object) -> bool:
    """Whether a temporary table is made that outlives the transaction."""
    if isinstance(statement, ast.CreateStmt):
        relation, at_commit = statement.relation, statement.oncommit
    elif isinstance(statement, ast.CreateTableAsStmt) and statement.into is not None:
        relation, at_commit = statement.into.rel, statement.into.onCommit
    else:
        return False
    return (
        relation is not None
        and relation.relpersistence == "t"
        and at_commit != enums.OnCommitAction.ONCOMMIT_DROP
    )


class _WriteVisitor(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[Written] = set()

    def visit_UpdateStmt(self, _ancestors: object, node: ast.UpdateStmt) -> None:  # noqa: N802
        self._add(node.relation, node.targetList)

    def visit_InsertStmt(self, _ancestors: object, node: ast.InsertStmt) -> None:  # noqa: N802
        self._add(node.relation, node.cols)
        if node.onConflictClause is not None:
            self._add(node.relation, node.onConflictClause.targetList)

    def visit_MergeStmt(self, _ancestors: object, node: ast.MergeStmt) -> None:  # noqa: N802
        for clause in node.mergeWhenClauses or ():
            self._add(node.relation, clause.targetList)

    def _add(self, relation: ast.RangeVar | None, targets: Sequence[ast.ResTarget] | None) -> None:
        if relation is not None and relation.relname is not None:
            self.found.update(
                Written(relation.schemaname, relation.relname, target.name)
                for target in targets or ()
                if target.name is not None
            )


def _with_after(found: list[WrittenStatement], text: str, gap: int) -> list[WrittenStatement]:
    """Give the last statement the comment that stands behind it on its line."""
    if not found:
        return found
    line, *_ = text[gap:].split("\n", 1)
    comment = line.strip().removeprefix(";").strip()
    if not comment.startswith("--"):
        return found
    last = found[-1]
    return [*found[:-1], WrittenStatement(last.sql, last.offset, last.before, comment)]


def _between(comments: Sequence[tuple[int, str]], start: int, end: int, *, skip: bool) -> tuple[str, ...]:
    found = tuple(comment for place, comment in comments if start <= place < end)
    return found[1:] if skip else found


def spellings(*names: str) -> Iterator[str]:
    """Names joined by dots, as they are and quoted."""
    yield ".".join(names)
    yield ".".join(map(quote_identifier, names))
