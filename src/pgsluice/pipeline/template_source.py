"""Template files: where they are looked for, how they are read, and what a migration's own may not do."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jinja2
from jinja2 import nodes

from pgsluice.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SKELETON: Final = "migration.sql.j2"
MACROS: Final = "macros.sql.j2"
PACKAGE: Final = "pgsluice/"
BLOCKS: Final = (
    "settings",
    "locks",
    "preflight",
    "prepare",
    "expand",
    "backfill",
    "enforce",
    "install",
    "retire",
    "postflight",
)
TXMODE: Final = "txmode"
EXTENDS: Final = f'{{% extends "{SKELETON}" %}}'
HIDDEN: Final = (nodes.Block, nodes.Macro, nodes.AssignBlock)


@dataclass(slots=True)
class TemplateLoader(jinja2.BaseLoader):
    """Finds templates by name.

    The migration's own is asked for by its path. Others come from the target's folder, then `templates/`,
    then the package; the two names that the package ships come from `templates/` or the package alone, and
    `pgsluice/<name>` is always the package's, so that a project's skeleton can extend it.
    """

    root: Path
    own: Path | None
    target_dir: Path
    texts: dict[str, str] = field(default_factory=dict)

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """Jinja's seam; the file's name is what messages show."""
        file, text = self._read(template)
        self.texts[file] = text
        return text, file, lambda: True

    def shown(self, path: Path) -> str:
        """`path` relative to the root, as messages show it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def location(self, file: str, line: int | None, column: int | None = None) -> Location:
        """A place in a template that was read, with the text of its line."""
        lines = self.texts.get(file, "").split("\n")
        source = lines[line - 1] if line is not None and 0 < line <= len(lines) else None
        return Location(file, line, column, source)

    def is_project_file(self, file: str) -> bool:
        """Whether a template is the user's, not the package's."""
        return not file.startswith(PACKAGE)

    def sources(self) -> tuple[str, ...]:
        """The project's template files that were read, sorted."""
        return tuple(sorted(filter(self.is_project_file, self.texts)))

    def _read(self, name: str) -> tuple[str, str]:
        if self.own is not None and name == self.shown(self.own):
            return name, read_template(self.own, name)
        if not name.startswith(PACKAGE):
            for folder in self._folders(name):
                path = Path(folder, *jinja2.loaders.split_template_path(name))
                if path.is_file() and path != self.own:
                    return self.shown(path), read_template(path, self.shown(path))
        packaged = name.removeprefix(PACKAGE)
        resource = files("pgsluice.pipeline").joinpath("resources", packaged)
        if packaged not in (SKELETON, MACROS) or not resource.is_file():
            raise jinja2.TemplateNotFound(name)
        return f"{PACKAGE}{packaged}", resource.read_text(encoding="utf-8")

    def _folders(self, name: str) -> tuple[Path, ...]:
        shared = self.root / "templates"
        return (shared,) if name in (SKELETON, MACROS) else (self.target_dir, shared)


def read_template(path: Path, shown: str) -> str:
    """The text of a template with LF line ends.

    Raises:
        InputError: It cannot be read, is not UTF-8, starts with a byte order mark or holds a NUL.
    """
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise InputError(f"cannot read {shown}: {exc.strerror}") from exc
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        message = f"the template is not valid UTF-8: byte 0x{data[exc.start]:02x}"
        raise InputError(message, location=Location(shown, line)) from exc
    if text.startswith("\ufeff"):
        raise InputError("the template starts with a byte order mark", location=Location(shown, 1, 1))
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise InputError("the template holds a NUL character", location=Location(shown, line))
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class Chain:
    """A migration's template and what it extends, down to the skeleton, checked.

    `block_lines` says which file defines a block last, and in which line.
    """

    transactional: bool
    block_lines: dict[str, tuple[str, int]]


def check_chain(environment: jinja2.Environment, loader: TemplateLoader, name: str) -> Chain:
    """Follow `extends` from template `name`, and refuse what Jinja would drop in silence.

    Raises:
        InputError: Syntax; a template that does not end at the skeleton; an unknown block; text outside
            blocks; a `txmode` other than "none".
    """
    trees: list[tuple[str, nodes.Template]] = []
    extended: Location | None = None
    while True:
        try:
            source, file, _ = loader.get_source(environment, name)
        except jinja2.TemplateNotFound as exc:
            raise InputError(f"there is no template {name}", location=extended, hint=EXTENDS) from exc
        tree = environment.parse(source, name, file)
        if any(file == seen for seen, _ in trees):
            raise InputError("the template extends itself", location=loader.location(file, 1))
        trees.append((file, tree))
        parent = _parent(tree, file, loader)
        if parent is None:
            break
        name, extended = parent
    skeleton_file, skeleton = trees[-1]
    known = _skeleton_blocks(skeleton, skeleton_file, loader)
    for file, tree in trees[:-1]:
        _refuse_unknown_blocks(tree, file, loader=loader, known=known)
        _refuse_text_outside(tree, file, loader)
    block_lines = {
        block.name: (file, block.lineno)
        for file, tree in reversed(trees)
        for block in tree.find_all(nodes.Block)
    }
    return Chain(_is_transactional(trees[0][1], trees[0][0], loader), block_lines)


def _parent(tree: nodes.Template, file: str, loader: TemplateLoader) -> tuple[str, Location] | None:
    """The name that the template extends and where it says so, None for the skeleton."""
    extends = [node for node in tree.body if isinstance(node, nodes.Extends)]
    if extends:
        name, location = extends[0].template, loader.location(file, extends[0].lineno)
        if isinstance(name, nodes.Const) and isinstance(name.value, str):
            return name.value, location
        raise InputError("extends must name its template", location=location, hint=EXTENDS)
    if file == f"{PACKAGE}{SKELETON}" or file == loader.shown(loader.root / "templates" / SKELETON):
        return None
    raise InputError(
        f"the template does not extend {SKELETON}",
        location=loader.location(file, 1),
        hint=f"write {EXTENDS} in its first line",
    )


def _skeleton_blocks(tree: nodes.Template, file: str, loader: TemplateLoader) -> tuple[str, ...]:
    found = tuple(block.name for block in tree.find_all(nodes.Block))
    if tuple(name for name in found if name in BLOCKS) != BLOCKS:
        raise InputError(
            "the skeleton must have these blocks in this order: " + ", ".join(BLOCKS),
            location=loader.location(file, 1),
            hint=f'write {{% extends "{PACKAGE}{SKELETON}" %}} in it, and only the blocks to change',
        )
    return found


def _refuse_unknown_blocks(
    tree: nodes.Template, file: str, *, loader: TemplateLoader, known: tuple[str, ...]
) -> None:
    for block in tree.find_all(nodes.Block):
        if block.name not in known:
            near = get_close_matches(block.name, known, n=1)
            raise InputError(
                f"unknown block {block.name}" + (f", did you mean {near[0]}?" if near else ""),
                location=loader.location(file, block.lineno),
                hint=None if near else f"the blocks are {', '.join(known)}",
            )


def _refuse_text_outside(tree: nodes.Template, file: str, loader: TemplateLoader) -> None:
    for node in _outside(tree):
        text = node.data if isinstance(node, nodes.TemplateData) else "{{ }}"
        if text.strip():
            line = node.lineno + text[: len(text) - len(text.lstrip())].count("\n")
            raise InputError(
                "text outside of blocks would be left out",
                location=loader.location(file, line),
                hint="move it into a block; a comment can be {# ... #}",
            )


def _outside(node: nodes.Node) -> Iterator[nodes.Expr]:
    for child in node.iter_child_nodes():
        if isinstance(child, nodes.Output):
            yield from child.nodes
        elif not isinstance(child, HIDDEN):
            yield from _outside(child)


def _is_transactional(tree: nodes.Template, file: str, loader: TemplateLoader) -> bool:
    """False when the template says `{% set txmode = "none" %}`."""
    for node in tree.find_all(nodes.Assign):
        if isinstance(node.target, nodes.Name) and node.target.name == TXMODE:
            if isinstance(node.node, nodes.Const) and node.node.value == "none" and node in tree.body:
                return False
            raise InputError(
                "txmode can only be set to none, outside of blocks",
                location=loader.location(file, node.lineno),
                hint=f'{{% set {TXMODE} = "none" %}}',
            )
    return True
