"""The messages that the sources can give, read from their syntax trees.

A message is a row of literal texts with holes (None) for what is only known at run time. Names are followed
to what was assigned to them, parameters to what callers pass, calls to what functions return.
"""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import TemplateRuntimeError

from pgsluice import errors
from pgsluice.errors import ExitCode
from pgsluice.pipeline.finding import Finding
from tests.errors.sources import (
    CallSite,
    Function,
    Scope,
    Sources,
    argument,
    argument_at,
    assigned,
    collected,
    parameters,
    returned,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src/pgsluice"
FAIL_IN_MACRO: Final = re.compile(r"""\{\{ fail\((?:"([^"\n]+)"|'([^'\n]+)')\) \}\}""")

Parts = tuple[str | None, ...]
HOLE: Final[Parts] = (None,)
DEEPEST: Final = 8
MOST_WORDS: Final = 12
"""In a hole: with more words than these it stays a hole."""
SHORTEST_WORD: Final = 4
"""In a hole: shorter ones (an `s`, an `is`) tell nothing."""
ENOUGH: Final = 5
"""A row with as many letters and digits of its own tells enough."""
STRING_METHODS: Final = frozenset({"strip", "rstrip", "lstrip", "removeprefix", "removesuffix", "lower"})


@dataclass(frozen=True, slots=True)
class Text:
    """Parts of a message; `site` is the call that passed them in, `where` the function it stands in."""

    parts: Parts
    site: CallSite | None = None

    def __add__(self, other: Text) -> Text:
        return Text(_joined((*self.parts, *other.parts)), self.site or other.site)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of one place."""

    file: str
    line: int
    function: str
    exit_code: ExitCode
    parts: Parts

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"

    @property
    def text(self) -> str:
        """Its words, with holes that have no name."""
        return "".join("<…>" if part is None else part for part in self.parts)

    @property
    def is_fixed(self) -> bool:
        """Whether a word of it is known before the program runs."""
        return any(re.search(r"[^\W\d_]{3}", part) for part in self.words)

    @property
    def pattern(self) -> re.Pattern[str]:
        """The message with anything in its holes."""
        return _pattern(self.parts)

    @property
    def words(self) -> tuple[str, ...]:
        """Its texts without the holes, the longest first."""
        return _words(self.parts)


@cache
def _pattern(parts: Parts) -> re.Pattern[str]:
    return re.compile("".join(".*?" if part is None else re.escape(part) for part in parts))


@cache
def _words(parts: Parts) -> tuple[str, ...]:
    return tuple(sorted((part for part in parts if part is not None), key=len, reverse=True))


def read_messages(folder: Path = PACKAGE) -> tuple[Message, ...]:
    """Every message of the package, by file and line."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }
    found = {*messages_of(texts), *_of_macros(folder)}
    return tuple(sorted(found, key=lambda one: (one.file, one.line, one.text)))


def messages_of(texts: Mapping[str, str]) -> frozenset[Message]:
    """The messages of Python modules, whose texts are given by file."""
    return frozenset(_Reader(Sources(texts)).messages())


def _of_macros(folder: Path) -> Iterator[Message]:
    for path in sorted(folder.rglob("*.j2")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for match in FAIL_IN_MACRO.finditer(line):
                file = path.relative_to(ROOT).as_posix()
                yield Message(file, number, "fail", errors.InputError.exit_code, (match[1] or match[2],))


class _Reader:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.codes = _exit_codes(sources)
        self.finding = (Finding.__module__, Finding.__name__)

    def messages(self) -> Iterator[Message]:
        for module in self.sources.modules.values():
            if module.name == "pgsluice.errors":
                continue
            for site in module.calls:
                if (found := self._sink(site)) is None:
                    continue
                code, expression = found
                for text in self._expand(expression, site.scope, DEEPEST):
                    yield _message(text, site, code)

    def _sink(self, site: CallSite) -> tuple[ExitCode, ast.expr] | None:
        """The exit code and the message of a call that makes an error."""
        called = site.call.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        origin, known = self.sources.origin(site.scope[0], name)
        if (origin.name, known) == self.finding:
            expression = argument_at(site.call, 1, "message")
            return (ExitCode.FINDING, expression) if expression is not None else None
        if name in self.codes and not self._has_own_init(name):
            expression = argument_at(site.call, 0, "message")
            return (self.codes[name], expression) if expression is not None else None
        if (
            name == "__init__"
            and site.inside is not None
            and site.inside.name in self.codes
            and (expression := argument_at(site.call, 0, "message")) is not None
        ):
            return self.codes[site.inside.name], expression
        return None

    def _has_own_init(self, name: str) -> bool:
        found = (module.classes.get(name) for module in self.sources.modules.values())
        return any(
            one is not None
            and one.name != errors.PipelineError.__name__
            and any(isinstance(part, Function) and part.name == "__init__" for part in one.body)
            for one in found
        )

    def _expand(self, node: ast.expr, scope: Scope, depth: int) -> list[Text]:
        """What an expression may be."""
        if depth == 0:
            return [Text(HOLE)]
        match node:
            case ast.Constant(value=None):
                return []
            case ast.Constant(value=str(text)):
                return [Text((text,) if text else ())]
            case ast.JoinedStr(values=pieces):
                return self._joined(pieces, scope, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], scope, depth)
            case ast.IfExp(body=body, orelse=orelse):
                return [*self._expand(body, scope, depth), *self._expand(orelse, scope, depth)]
            case ast.BoolOp(op=ast.Or(), values=values):
                every = [text for one in values for text in self._expand(one, scope, depth)]
                return [one for one in every if one.parts] or [Text(HOLE)]
            case ast.Name(id=name):
                return self._named(name, scope, depth)
            case ast.Subscript(value=value, slice=ast.Constant(value=int(number))):
                return self._item(value, number, scope, depth)
            case ast.Call():
                return self._called(node, scope, depth)
        return [Text(HOLE)]

    def _joined(self, pieces: Sequence[ast.expr], scope: Scope, depth: int) -> list[Text]:
        """What pieces in a row may be. Callers are asked only where the row says little by itself."""
        own = sum(
            char.isalnum()
            for one in pieces
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
            for char in one.value
        )
        choices = [
            [Text(HOLE)] if own >= ENOUGH and _is_passed(one, scope) else self._piece(one, scope, depth)
            for one in pieces
        ]
        return [sum(row, start=Text(())) for row in itertools.product(*choices)]

    def _piece(self, node: ast.expr, scope: Scope, depth: int) -> list[Text]:
        """What a part of a message may be; a hole, unless there are some few words."""
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            return self._expand(node, scope, depth)
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        if isinstance(inner, ast.Call) and isinstance(node, ast.FormattedValue):
            return [Text(HOLE)]
        found = list(dict.fromkeys(self._expand(inner, scope, depth - 1)))
        is_told = 0 < len(found) <= MOST_WORDS and all(_is_told(one.parts) for one in found)
        return found if is_told else [Text(HOLE)]

    def _named(self, name: str, scope: Scope, depth: int) -> list[Text]:
        module, functions = scope
        for number, function in enumerate(functions):
            here = (module, functions[number:])
            if name in parameters(function):
                return self._passed(name, function, here, depth)
            if values := [*assigned(function, name)]:
                return [text for value in values for text in self._expand(value, here, depth - 1)]
        origin, known = self.sources.origin(module, name)
        if known in origin.values:
            return self._expand(origin.values[known], (origin, ()), depth - 1)
        return [Text(HOLE)]

    def _passed(self, name: str, function: Function, scope: Scope, depth: int) -> list[Text]:
        """What callers pass for a parameter; the call is then where the message is made."""
        found = []
        home = next(
            (one for one in scope[0].classes.values() if any(part is function for part in one.body)), None
        )
        for site in self.sources.callers(function, scope, of=home):
            if (value := argument(site.call, name, function)) is not None:
                texts = self._expand(value, site.scope, depth - 1)
                found += [replace(one, site=one.site or site) for one in texts]
        return found or [Text(HOLE)]

    def _item(self, value: ast.expr, number: int, scope: Scope, depth: int) -> list[Text]:
        """What an item of a tuple may be."""
        found = []
        for one, place in self._values(value, scope):
            if isinstance(one, ast.Tuple) and number < len(one.elts):
                found += self._expand(one.elts[number], place, depth - 1)
            elif not (isinstance(one, ast.Constant) and one.value is None):
                found.append(Text(HOLE))
        return found or [Text(HOLE)]

    def _values(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        if isinstance(node, ast.Name) and scope[1]:
            for value in assigned(scope[1][0], node.id):
                if not isinstance(value, ast.Name):
                    yield from self._values(value, scope)
        elif isinstance(node, ast.Call) and (found := self.sources.function(scope, node.func)) is not None:
            yield from ((value, found[1]) for value in returned(found[0]))
        else:
            yield node, scope

    def _called(self, call: ast.Call, scope: Scope, depth: int) -> list[Text]:
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.Name(id=name)]):
                items = [*collected(scope[1][0], name)] if scope[1] else []
                return [text for one in items for text in self._expand(one, scope, depth - 1)] or [Text(HOLE)]
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                return [Text(_joined(_of_format(text)))]
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in STRING_METHODS:
                return self._expand(value, scope, depth - 1)
        if (found := self.sources.function(scope, call.func)) is None:
            return [Text(HOLE)]
        function, place = found
        return [text for one in returned(function) for text in self._expand(one, place, depth - 1)]


def _exit_codes(sources: Sources) -> dict[str, ExitCode]:
    """The exit code of each class of errors, by its name."""
    codes = {
        name: found.exit_code
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.PipelineError)
    }
    codes[TemplateRuntimeError.__name__] = errors.InputError.exit_code
    classes = [found for module in sources.modules.values() for found in module.classes.values()]
    while True:
        more = {
            found.name: codes[base.id]
            for found in classes
            for base in found.bases
            if isinstance(base, ast.Name) and base.id in codes and found.name not in codes
        }
        if not more:
            return codes
        codes |= more


def _message(text: Text, site: CallSite, code: ExitCode) -> Message:
    made = text.site or site
    module, functions = made.scope
    function = functions[-1].name if functions else "<module>"
    return Message(module.file, made.call.lineno, function, code, _joined(text.parts))


def _is_told(parts: Parts) -> bool:
    return parts != HOLE and sum(len(part) for part in parts if part) >= SHORTEST_WORD


def _is_passed(node: ast.expr, scope: Scope) -> bool:
    inner = node.value if isinstance(node, ast.FormattedValue) else node
    return isinstance(inner, ast.Name) and any(inner.id in parameters(one) for one in scope[1])


def _of_format(text: str) -> Parts:
    pieces = re.split(r"\{[^{}]*\}", text)
    return tuple(part for piece in pieces for part in (piece, None))[:-1]


def _joined(parts: Parts) -> Parts:
    """Neighbouring texts as one, neighbouring holes as one, no empty ones."""
    result: list[str | None] = []
    for part in parts:
        if part == "" or (part is None and result and result[-1] is None):
            continue
        if part is not None and result and (last := result[-1]) is not None:
            result[-1] = last + part
        else:
            result.append(part)
    return tuple(result)
