"""From a plan and a template to the text of a migration: a pure function of its inputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jinja2 import TemplateSyntaxError

from pgsluice.errors import InputError, Location
from pgsluice.pipeline.assembly import RenderedStatement, assemble
from pgsluice.pipeline.marks import Piece, Word, mark_generated, read_marks
from pgsluice.pipeline.quoting import join_name
from pgsluice.pipeline.refusals import TemplateWords, refuse_unsaid
from pgsluice.pipeline.statement import PHASE_ORDER, Phase, Plan, Statement
from pgsluice.pipeline.template_environment import TEMPLATE_FAULTS, TemplateEnvironment, template_error
from pgsluice.pipeline.template_source import SKELETON, Chain, TemplateLoader, check_chain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgsluice.config import Target

__all__ = ["Rendered", "RenderedStatement", "render_migration", "written_statements"]

OUTSIDE_TRANSACTION: Final = "-- atlas:txmode none"
SUFFIX: Final = ".sql.j2"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A migration's text and what it consists of.

    `name` is for messages, such as `app/add_email`; `template` is where its hand-written parts are, or would
    be; `sources` are the project's template files that it was made from.
    """

    text: str
    statements: tuple[RenderedStatement, ...]
    name: str = "migration"
    template: str | None = None
    transactional: bool = True
    sources: tuple[str, ...] = ()


def render_migration(
    plan: Plan, *, template: Path | None, target: Target, root: Path, allow_destructive: bool
) -> Rendered:
    """Print a plan through the skeleton, or through a migration's own template that extends it.

    Args:
        template: The migration's own template; one that does not exist counts as none, but messages name it.
        allow_destructive: Whether the user has agreed to every loss of data.

    Raises:
        InputError: The template is wrong; the message names file and line.
        RefusedError: A new column has no backfill, or data would be lost.
    """
    loader = _loader(template, target=target, root=root)
    text, statements, words, transactional = _printed(plan, loader, target=target)
    path = _path(template, target=target, loader=loader)
    said = _words(statements, words, path=path, loader=loader)
    refuse_unsaid(plan, said, allow_destructive=allow_destructive)
    return Rendered(
        text=text,
        statements=statements,
        name=f"{target.name}/{_stem(template) or 'migration'}",
        template=path,
        transactional=transactional,
        sources=loader.sources(),
    )


def written_statements(
    template: Path | None, *, target: Target, root: Path, block: str
) -> tuple[RenderedStatement, ...]:
    """The hand-written statements of one block, as they are before any plan is known.

    Raises:
        InputError: The template is wrong; the message names file and line.
    """
    if template is None or not template.is_file():
        return ()
    _, statements, _, _ = _printed(Plan(), _loader(template, target=target, root=root), target=target)
    return tuple(one for one in statements if one.block == block and one.template is not None)


def _loader(template: Path | None, *, target: Target, root: Path) -> TemplateLoader:
    own = template if template is not None and template.is_file() else None
    return TemplateLoader(root=root, own=own, target_dir=target.templates_dir)


def _printed(
    plan: Plan, loader: TemplateLoader, *, target: Target
) -> tuple[str, tuple[RenderedStatement, ...], tuple[Word, ...], bool]:
    """Text, statements, the template's words about data, and whether it runs in a transaction."""
    own = loader.own
    environment = TemplateEnvironment(loader, lock_order=target.lock_order)
    name = loader.shown(own) if own else SKELETON
    chain = _checked(environment, loader, name)
    environment.globals["transactional"] = chain.transactional
    try:
        raw = environment.get_template(name).render(_context(plan, target=target, template=own))
    except TEMPLATE_FAULTS as exc:
        raise template_error(exc, loader) from exc
    pieces, words = read_marks(raw)
    _refuse_dropped(plan, pieces, chain=chain, loader=loader)
    header = _header(plan, target=target, loader=loader, transactional=chain.transactional)
    text, statements = assemble(pieces, plan, loader=loader, header=header, transactional=chain.transactional)
    return text, statements, tuple(words), chain.transactional


def _checked(environment: TemplateEnvironment, loader: TemplateLoader, name: str) -> Chain:
    try:
        return check_chain(environment, loader, name)
    except TemplateSyntaxError as exc:
        raise template_error(exc, loader) from exc


def _context(plan: Plan, *, target: Target, template: Path | None) -> dict[str, object]:
    """What templates know; phases are places that `assemble` fills."""
    printed: dict[str, object] = {phase.value: _places(plan, phase) for phase in PHASE_ORDER}
    creates = (
        "create function",
        "create or replace function",
        "create procedure",
        "create or replace procedure",
    )
    printed |= {
        "checks": plan.checks,
        "waits": template is not None
        or bool(plan.touched)
        or any(_meets_others(one) for one in plan.statements),
        "creates_functions": any(
            " ".join(statement.sql[:40].lower().split()).startswith(creates) for statement in plan.statements
        ),
    }
    return {
        "target": target.name,
        "migration": _stem(template),
        "tables": tuple(join_name(table) for table in sorted(plan.touched)),
        "plan": printed,
    }


def _meets_others(statement: Statement) -> bool:
    """Whether it works on something that was there before, so that it may have to wait for its lock."""
    return not statement.claim.startswith(("create ", "settle ", "tie "))


def _places(plan: Plan, phase: Phase) -> str:
    return "\n".join(
        mark_generated(index) for index, statement in enumerate(plan.statements) if statement.phase is phase
    )


def _header(plan: Plan, *, target: Target, loader: TemplateLoader, transactional: bool) -> tuple[str, ...]:
    lines = [] if transactional else [OUTSIDE_TRANSACTION, ""]
    lines.append(f"-- generated by pgsluice from {loader.shown(target.schema_dir)}; do not edit")
    if loader.own is not None:
        lines.append(f"-- hand-written parts come from {loader.shown(loader.own)}")
    lines += [f"-- note: {' '.join(note.split())}" for note in plan.notes]
    return tuple(lines)


def _stem(template: Path | None) -> str:
    return template.name.removesuffix(SUFFIX) if template else ""


def _path(template: Path | None, *, target: Target, loader: TemplateLoader) -> str:
    return loader.shown(template or target.templates_dir / f"<name>{SUFFIX}")


def _refuse_dropped(plan: Plan, pieces: Sequence[Piece], *, chain: Chain, loader: TemplateLoader) -> None:
    """Every generated statement is printed exactly once, whatever a template overrides."""
    printed = Counter(piece.generated for piece in pieces if piece.generated is not None)
    for phase in PHASE_ORDER:
        own = [index for index, statement in enumerate(plan.statements) if statement.phase is phase]
        dropped = [index for index in own if index not in printed]
        if not dropped and all(printed[index] == 1 for index in own):
            continue
        wrong = dropped or [index for index in own if printed[index] > 1]
        count = f"{len(wrong)} generated statement{'' if len(wrong) == 1 else 's'}"
        raise InputError(
            f"block {phase} drops {count}" if dropped else f"block {phase} prints {count} more than once",
            location=loader.location(*chain.block_lines[phase.value]),
            details=tuple(plan.statements[index].claim for index in wrong[:5]),
            hint=f"add {{{{ super() }}}} to block {phase}" if dropped else "print {{ super() }} once",
        )


def _words(
    statements: Sequence[RenderedStatement], words: Sequence[Word], *, path: str, loader: TemplateLoader
) -> TemplateWords:
    def place(word: Word) -> Location | None:
        return loader.location(word.origin.file, word.origin.line) if word.origin else None

    return TemplateWords(
        path=path,
        text=loader.texts.get(loader.shown(loader.own)) if loader.own else None,
        backfill=tuple(
            statement.sql
            for statement in statements
            if statement.template is not None and statement.block == Phase.BACKFILL
        ),
        empty=frozenset(word.values for word in words if word.kind == "assume_empty"),
        losses=tuple((word.values[0], place(word)) for word in words if word.kind == "accept_loss"),
    )
