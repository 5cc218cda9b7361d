"""Templates printed without a plan: whether Jinja and PostgreSQL accept what a user wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.lint.rules import found

if TYPE_CHECKING:
    from pathlib import Path

    from pgsluice.pipeline.lint.model import LintFile, LintFinding
    from pgsluice.pipeline.template_source import TemplateLoader

SAMPLE_TABLES: Final = ("public.lint_sample",)
PRIVATE: Final = "_"
TEMPLATE_SUFFIX: Final = ".sql.j2"


@dataclass(frozen=True, slots=True)
class OpenTemplate:
    """One template with what it may use."""

    loader: TemplateLoader
    name: str
    target: str
    lock_order: tuple[str, ...]
    transactional: bool = True

    def context(self) -> dict[str, object]:
        """What templates know, with an example where only a build knows more."""
        own = self.loader.own
        return {
            "target": self.target,
            "migration": own.name.removesuffix(TEMPLATE_SUFFIX) if own is not None else "",
            "tables": SAMPLE_TABLES,
            "transactional": self.transactional,
            "plan": _NoPlan(),
        }


class _NoPlan:
    """Stands for the generated statements, of which there are none."""

    waits = False
    creates_functions = False
    checks = ()

    def __getattr__(self, name: str) -> str:
        return ""


def open_template(file: LintFile, root: Path) -> OpenTemplate:
    """Prepare a template; nothing of it is read yet."""
    from pgsluice.pipeline.template_source import TemplateLoader

    target = file.target
    loader = TemplateLoader(
        root=root,
        own=file.path,
        target_dir=target.templates_dir if target is not None else file.path.parent,
    )
    return OpenTemplate(
        loader=loader,
        name=loader.shown(file.path),
        target=target.name if target is not None else "app",
        lock_order=target.lock_order if target is not None else (),
    )


def check_template(file: LintFile, root: Path) -> tuple[OpenTemplate, str, tuple[LintFinding, ...]]:
    """Print a template.

    Returns:
        The template, with its own idea of a transaction; the SQL that it printed; what is wrong with it.
    """
    template = open_template(file, root)
    try:
        return *_print(template, is_part=_is_part(file)), ()
    except InputError as exc:
        place = exc.location or Location(file.name, 1)
        details = f" ({'; '.join(exc.details)})" if exc.details else ""
        finding = found(
            "template-error",
            f"{exc.message}{details}" if place.file == file.name else f"{exc.message}{details}, in {place}",
            Location(place.file, place.line, place.column)
            if place.file == file.name
            else Location(file.name, 1),
            recipe=exc.hint,
        )
        return template, "", (finding,)


def print_text(file: LintFile, text: str, *, root: Path) -> str:
    """What a template would print if its file held `text`; nothing for one that only others use.

    Raises:
        InputError: The text is no template, or prints no SQL.
    """
    from pgsluice.pipeline.template_source import TemplateLoader

    class Replaced(TemplateLoader):
        """Reads `text` in the place of the file."""

        def _read(self, name: str) -> tuple[str, str]:
            return (name, text) if name == self.shown(file.path) else super()._read(name)

    template = open_template(file, root)
    loader = Replaced(root=root, own=file.path, target_dir=template.loader.target_dir)
    return _print(replace(template, loader=loader), is_part=_is_part(file))[1]


def _is_part(file: LintFile) -> bool:
    """Whether a template is for others to use: a project's macros, its skeleton, `_name.sql.j2`."""
    from pgsluice.pipeline.history import RESERVED_NAMES

    name = file.path.name.removesuffix(TEMPLATE_SUFFIX)
    return file.target is None or name in RESERVED_NAMES or name.startswith(PRIVATE)


def _print(template: OpenTemplate, *, is_part: bool) -> tuple[OpenTemplate, str]:
    from jinja2 import TemplateSyntaxError

    from pgsluice.pipeline.assembly import assemble
    from pgsluice.pipeline.marks import read_marks
    from pgsluice.pipeline.statement import Plan
    from pgsluice.pipeline.template_environment import TEMPLATE_FAULTS, TemplateEnvironment, template_error
    from pgsluice.pipeline.template_source import check_chain

    loader = template.loader
    environment: Any = TemplateEnvironment(loader, lock_order=template.lock_order)
    try:
        if is_part:
            environment.get_template(template.name)
            return template, ""
        chain = check_chain(environment, loader, template.name)
        opened = replace(template, transactional=chain.transactional)
        environment.globals["transactional"] = chain.transactional
        raw = environment.get_template(template.name).render(opened.context())
    except (TemplateSyntaxError, *TEMPLATE_FAULTS) as exc:
        raise template_error(exc, loader) from exc
    pieces, _ = read_marks(raw)
    text, _ = assemble(pieces, Plan(), loader=loader, header=(), transactional=chain.transactional)
    return opened, text
