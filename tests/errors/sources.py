"""The package's syntax trees: functions with who calls them, and what a name stands for."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = tuple["Module", tuple[Function, ...]]
"""A module, and the functions around an expression, the innermost first."""


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """A call and what stands around it."""

    call: ast.Call
    scope: Scope
    inside: ast.ClassDef | None


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """One file; `imports` says from which module a name comes and what it is called there."""

    name: str
    file: str
    tree: ast.Module
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    functions: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    calls: list[CallSite] = field(default_factory=list)


class Sources:
    """Modules by name, from their texts by file."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.modules: dict[str, Module] = {}
        for file, text in texts.items():
            parts = file.removeprefix("src/").removesuffix(".py").split("/")
            name = ".".join(part for part in parts if part != "__init__")
            self.modules[name] = _read(Module(name, file, ast.parse(text)))
        self._calls: dict[str, list[CallSite]] = defaultdict(list)
        for module in self.modules.values():
            for site in module.calls:
                name = _called_name(site.call)
                if isinstance(site.call.func, ast.Name):
                    name = self.origin(module, name)[1]
                self._calls[name].append(site)

    def origin(self, module: Module, name: str) -> tuple[Module, str]:
        """Where a name of a module is defined, through the packages that pass it on."""
        while name in module.imports and (found := self.modules.get(module.imports[name][0])) is not None:
            module, name = found, module.imports[name][1]
        return module, name

    def function(self, scope: Scope, called: ast.expr) -> tuple[Function, Scope] | None:
        """The function that a call leads to, where that is plain to see."""
        if isinstance(called, ast.Name):
            module, name = self.origin(scope[0], called.id)
        elif (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id == "self"
        ):
            module, name = scope[0], called.attr
        else:
            return None
        found = module.functions.get(name, [])
        return (found[0], (module, (found[0],))) if len(found) == 1 else None

    def callers(self, function: Function, scope: Scope, *, of: ast.ClassDef | None) -> Iterator[CallSite]:
        """The calls of a function, or of the class whose `__init__` it is."""
        module = scope[0]
        name = of.name if of is not None and function.name == "__init__" else function.name
        for site in self._calls[name]:
            called = site.call.func
            if isinstance(called, ast.Name):
                if self.origin(site.scope[0], called.id) == (module, name):
                    yield site
            elif isinstance(called, ast.Attribute) and _is_method(function):
                yield site


def assigned(function: Function | ast.Module, name: str) -> Iterator[ast.expr]:
    """What is assigned to a name; an item of a tuple as `Subscript` of the whole."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _paired(target, node.value, name)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield from _paired(node.target, node.value, name)
        elif isinstance(node, ast.For | ast.comprehension):
            yield from _paired(node.target, ast.Name("_"), name)


def collected(function: Function, name: str) -> Iterator[ast.expr]:
    """The items that are put into a list."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets) and isinstance(
                node.value, ast.List
            ):
                yield from node.value.elts
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "append"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == name
        ):
            yield from node.args


def returned(function: Function) -> Iterator[ast.expr]:
    """What a function returns."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def argument(call: ast.Call, parameter: str, function: Function) -> ast.expr | None:
    """What a call passes for a parameter; its default when the call leaves it out."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    if names and names[0] in ("self", "cls"):
        names = names[1:]
    if parameter in names and names.index(parameter) < len(call.args):
        return call.args[names.index(parameter)]
    return defaults.get(parameter)


def argument_at(call: ast.Call, place: int, keyword: str) -> ast.expr | None:
    """What a call passes at a place or under a name."""
    if len(call.args) > place:
        return call.args[place]
    return next((one.value for one in call.keywords if one.arg == keyword), None)


def parameters(function: Function) -> Sequence[str]:
    """The names of a function's parameters."""
    every = function.args
    return [one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)]


def _paired(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, ast.Tuple):
        for number, one in enumerate(target.elts):
            part = (
                value.elts[number]
                if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
                else ast.Subscript(value, ast.Constant(number))
            )
            yield from _paired(one, part, name)


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_method(function: Function) -> bool:
    return bool(function.args.args) and function.args.args[0].arg in ("self", "cls")


def _read(module: Module) -> Module:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                module.imports[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, ast.ClassDef):
            module.classes[node.name] = node
        elif isinstance(node, Function):
            module.functions[node.name].append(node)
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    module.values[target.id] = node.value
    module.calls.extend(_calls(module.tree, (module, ()), None))
    return module


def _calls(node: ast.AST, scope: Scope, inside: ast.ClassDef | None) -> Iterable[CallSite]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield from _calls(child, (scope[0], (child, *scope[1])), inside)
        elif isinstance(child, ast.ClassDef):
            yield from _calls(child, scope, child)
        else:
            if isinstance(child, ast.Call):
                yield CallSite(child, scope, inside)
            yield from _calls(child, scope, inside)
