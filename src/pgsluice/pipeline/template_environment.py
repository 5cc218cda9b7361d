"""The Jinja environment of migrations: strict, sandboxed, the same output for the same input.

Templates know `target` (its name), `migration` (the template's name, empty without one), `tables` (what the
migration touches, as SQL names) and `transactional`; the skeleton also `plan`. There is no clock, no
randomness, no environment and no file access but to other templates.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import jinja2
from jinja2 import nodes
from jinja2.environment import TemplateModule
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from pglast import ast
from pglast.parser import ParseError, parse_sql

from pgsluice.errors import InputError
from pgsluice.pipeline.marks import leave_out_blocks, mark_template, mark_word
from pgsluice.pipeline.quoting import dollar_quote, join_name, quote_identifier, quote_literal, split_name
from pgsluice.pipeline.written import split_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from pgsluice.pipeline.template_source import TemplateLoader

VARIABLES: Final = ("migration", "tables", "target", "transactional")
LOCK_MODES: Final = (
    "access share",
    "row share",
    "row exclusive",
    "share update exclusive",
    "share",
    "share row exclusive",
    "exclusive",
    "access exclusive",
)
TEMPLATE_FAULTS: Final = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class NamedUndefined(jinja2.StrictUndefined):
    """Says what is missing in a template's own words."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        name = str(self._undefined_name)
        if isinstance(self._undefined_obj, TemplateModule):
            macros = [key for key in vars(self._undefined_obj) if not key.startswith("_")]
            return f"{self._undefined_obj.__name__} has no macro {name}{_near(name, macros)}"
        if self._undefined_obj is missing:
            return f"{name} is not defined{_near(name, VARIABLES)}"
        return super()._undefined_message


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates with marks, and gives macros their filters.

    Of the blocks in `left_out` the project's versions are passed over, not even run.
    """

    def __init__(
        self, loader: TemplateLoader, *, lock_order: Sequence[str], left_out: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(
            loader=loader,
            undefined=NamedUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
            cache_size=0,
        )
        self.files = loader
        self.left_out = left_out
        del self.globals["lipsum"]
        del self.filters["random"]
        self.globals["say"] = mark_word
        self.globals["fail"] = _fail
        self.filters |= macro_filters(tuple(lock_order))

    def compile(
        self,
        source: str | nodes.Template,
        name: str | None = None,
        filename: str | None = None,
        *args: Any,  # passed through
        **options: Any,
    ) -> Any:
        """Compile with marks: blocks of every template, lines of the project's."""
        if isinstance(source, str):
            source = self.parse(source, name, filename)
            is_own = filename is not None and self.files.is_project_file(filename)
            if is_own and source.find(nodes.Extends) is not None:
                leave_out_blocks(source, self.left_out)
            mark_template(source, file=filename if is_own else None)
        return super().compile(source, name, filename, *args, **options)


def macro_filters(lock_order: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    """The filters that `macros.sql.j2` uses; a project's own macros may, too."""
    order = {split_name(name): place for place, name in enumerate(lock_order)}

    def in_lock_order(tables: str | Sequence[str]) -> tuple[str, ...]:
        given = [tables] if isinstance(tables, str) else list(tables)
        names = {_table(name) for name in given}
        if not names:
            raise jinja2.TemplateRuntimeError("there is no table to lock")
        return tuple(map(join_name, sorted(names, key=lambda name: (order.get(name, len(order)), name))))

    return {
        "literal": lambda text: quote_literal(str(text)),
        "dollar": lambda body, tag: dollar_quote(str(body), tag),
        "identifier": lambda name: quote_identifier(_column(name)),
        "table": lambda name: join_name(_table(name)),
        "parts": _table,
        "column": _column,
        "in_lock_order": in_lock_order,
        "lock_mode": _lock_mode,
        "query": _query,
        "update": _update,
        "sqlstate": _sqlstate,
        "between": _between,
    }


def template_error(exc: Exception, loader: TemplateLoader) -> InputError:
    """What a template did wrong, with its file and line; a fault outside of templates is raised again."""
    if isinstance(exc, jinja2.TemplateSyntaxError):
        file = exc.filename or exc.name or ""
        return InputError(
            _sentence(exc.message or "syntax error"), location=loader.location(file, exc.lineno)
        )
    place = _place(exc.__traceback__, loader)
    if place is None and not isinstance(exc, jinja2.TemplateError):
        raise exc
    location = loader.location(*place) if place else None
    if isinstance(exc, jinja2.TemplatesNotFound | jinja2.TemplateNotFound):
        return InputError(f"there is no template {exc.name}", location=location)
    details = (f"templates know {', '.join(VARIABLES)}",) if isinstance(exc, jinja2.UndefinedError) else ()
    return InputError(_sentence(str(exc) or type(exc).__name__), location=location, details=details)


def _place(trace: TracebackType | None, loader: TemplateLoader) -> tuple[str, int] | None:
    """The innermost line of the project's templates, else of the package's."""
    found: tuple[str, int] | None = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file in loader.texts and (loader.is_project_file(file) or found is None):
            found = (file, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _sentence(message: str) -> str:
    text = " ".join(message.split()).rstrip(".")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f", did you mean {near[0]}?" if near else ""


def _table(name: object) -> tuple[str, ...]:
    """Schema and table of a SQL name such as `app.users`."""
    parts = split_name(name) if isinstance(name, str) else None
    if parts is None or len(parts) != 2:
        raise jinja2.TemplateRuntimeError(
            f"a table is named as schema.table, in SQL spelling, not {_shown(name)}"
        )
    return parts


def _column(name: object) -> str:
    """A column as the catalog has it."""
    parts = split_name(name) if isinstance(name, str) else None
    if parts is None or len(parts) != 1:
        raise jinja2.TemplateRuntimeError(f"a column is one name, in SQL spelling, not {_shown(name)}")
    return parts[0]


def _fail(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)


def _lock_mode(mode: object) -> str:
    if mode not in LOCK_MODES:
        raise jinja2.TemplateRuntimeError(f"unknown lock mode {_shown(mode)}{_near(str(mode), LOCK_MODES)}")
    return str(mode)


def _sqlstate(code: object) -> str:
    if (
        not isinstance(code, str)
        or len(code) != 5
        or not code.isascii()
        or not code.isalnum()
        or code != code.upper()
    ):
        raise jinja2.TemplateRuntimeError(
            f"a SQLSTATE has five digits or capital letters, not {_shown(code)}"
        )
    if code.endswith("000"):
        raise jinja2.TemplateRuntimeError(f"SQLSTATE {code} names a class; give a condition in it")
    return code


def _between(number: object, low: int, high: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise jinja2.TemplateRuntimeError(f"expected a number from {low} to {high}, not {_shown(number)}")
    return number


def _query(rows: object) -> str:
    """One query, without its semicolon."""
    return _one_statement(rows, ast.SelectStmt, "one query")


def _update(statement: object) -> str:
    """One `update`, as the macro put it together from the template's words."""
    return _one_statement(statement, ast.UpdateStmt, "the parts of one update")


def _one_statement(sql: object, kind: type, expected: str) -> str:
    text = str(sql).strip()
    try:
        found = split_text(text)
        parsed = parse_sql(text)
    except ParseError as exc:
        raise jinja2.TemplateRuntimeError(f"expected {expected}: {exc.args[0]}: {_shown(text)}") from exc
    if len(parsed) != 1 or not isinstance(parsed[0].stmt, kind):
        raise jinja2.TemplateRuntimeError(f"expected {expected}, not {_shown(text)}")
    return found[0].sql


def _shown(value: object) -> str:
    text = " ".join(str(value).split())
    return (text if len(text) <= 80 else f"{text[:77]}...") or "nothing"
