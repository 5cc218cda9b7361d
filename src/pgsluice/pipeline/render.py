"""From a plan and a template to the text of a migration: a pure function of its inputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
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
    from pgsluice.pipeline.online import FilePlan
    from pgsluice.pipeline.parts import Part

__all__ = ["Rendered", "RenderedStatement", "render_migration", "render_online", "written_statements"]

OUTSIDE_TRANSACTION: Final = "-- atlas:txmode none"
SUFFIX: Final = ".sql.j2"
SETTINGS: Final = "settings"
ONLINE: Final = "built online"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A migration's text and what it consists of.

    `name` is for messages, such as `app/add_email`; `template` is where its hand-written parts are, or would
    be; `sources` are the project's template files that it was made from; `suffix` is what the file's name
    adds to the migration's, empty for its first file.
    """

    text: str
    statements: tuple[RenderedStatement, ...]
    name: str = "migration"
    template: str | None = None
    transactional: bool = True
    sources: tuple[str, ...] = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class _Printed:
    """One file as the templates print it, before it is put together."""

    plan: Plan
    pieces: tuple[Piece, ...]
    words: tuple[Word, ...]
    transactional: bool

    def assembled(
        self, loader: TemplateLoader, header: Sequence[str] = ()
    ) -> tuple[str, tuple[RenderedStatement, ...]]:
        """Text and statements."""
        first = () if self.transactional else (OUTSIDE_TRANSACTION, "")
        return assemble(
            self.pieces,
            self.plan,
            loader=loader,
            header=(*first, *header),
            transactional=self.transactional,
        )


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
    printed = _printed(plan, loader, target=target)
    text, statements = printed.assembled(loader, _header(plan, target=target, loader=loader))
    path = _path(template, target=target, loader=loader)
    said = _words(statements, printed.words, path=path, loader=loader)
    refuse_unsaid(plan, said, allow_destructive=allow_destructive)
    return Rendered(
        text=text,
        statements=statements,
        name=f"{target.name}/{_stem(template) or 'migration'}",
        template=path,
        transactional=printed.transactional,
        sources=loader.sources(),
    )


def render_online(
    plan: Plan,
    files: Sequence[FilePlan],
    *,
    template: Path | None,
    target: Target,
    root: Path,
    allow_destructive: bool,
) -> tuple[Rendered, ...]:
    """Print each file of an online migration, with the template's blocks that belong into it.

    Files without a statement are left out. Settings stand in every transactional file, all else once.

    Args:
        plan: The whole, of which `files` are the parts.

    Raises:
        InputError: The template is wrong; the message names file and line.
        RefusedError: A new column has no backfill, or data would be lost.
    """
    loader = _loader(template, target=target, root=root)
    printed = [(file, _printed(file.plan, loader, target=target, part=file.part)) for file in files]
    found = [(file, one, one.assembled(loader)[1]) for file, one in printed]
    path = _path(template, target=target, loader=loader)
    statements = tuple(statement for _, _, own in found for statement in own)
    words = tuple(word for _, one in printed for word in one.words)
    refuse_unsaid(
        plan, _words(statements, words, path=path, loader=loader), allow_destructive=allow_destructive
    )
    kept = [
        (file, one) for file, one, own in found if any(statement.block != SETTINGS for statement in own)
    ] or printed[:1]
    stem = _stem(template) or "migration"
    rendered = []
    for number, (file, one) in enumerate(kept, start=1):
        advice = (f"-- part {number} of {len(kept)} of {stem}, {ONLINE}: {file.part.advice}",)
        noted = replace(file.plan, notes=plan.notes if number == 1 else ())
        header = _header(noted, target=target, loader=loader, advice=advice)
        text, own = one.assembled(loader, header)
        suffix = "" if number == 1 else f"_{file.part}"
        rendered.append(
            Rendered(
                text=text,
                statements=own,
                name=f"{target.name}/{stem}{suffix}",
                template=path,
                transactional=one.transactional,
                sources=loader.sources(),
                suffix=suffix,
            )
        )
    return tuple(rendered)


def written_statements(
    template: Path | None, *, target: Target, root: Path, block: str, part: Part | None = None
) -> tuple[RenderedStatement, ...]:
    """The hand-written statements of one block, as they are before any plan is known.

    Args:
        part: The file of an online migration that holds the block; None when there is one file.

    Raises:
        InputError: The template is wrong; the message names file and line.
    """
    if template is None or not template.is_file():
        return ()
    loader = _loader(template, target=target, root=root)
    _, statements = _printed(Plan(), loader, target=target, part=part).assembled(loader)
    return tuple(one for one in statements if one.block == block and one.template is not None)


def _loader(template: Path | None, *, target: Target, root: Path) -> TemplateLoader:
    own = template if template is not None and template.is_file() else None
    return TemplateLoader(root=root, own=own, target_dir=target.templates_dir)


def _printed(plan: Plan, loader: TemplateLoader, *, target: Target, part: Part | None = None) -> _Printed:
    """What templates print for the whole migration, or for one file of it."""
    own = loader.own
    left_out = part.others if part is not None else frozenset[str]()
    environment = TemplateEnvironment(loader, lock_order=target.lock_order, left_out=left_out)
    name = loader.shown(own) if own else SKELETON
    chain = _checked(environment, loader, name)
    transactional = part.transactional if part is not None else chain.transactional
    environment.globals["transactional"] = transactional
    try:
        raw = environment.get_template(name).render(_context(plan, target=target, template=own))
    except TEMPLATE_FAULTS as exc:
        raise template_error(exc, loader) from exc
    pieces, words = read_marks(raw)
    _refuse_dropped(plan, pieces, chain=chain, loader=loader)
    kept = tuple(
        piece
        for piece in pieces
        if piece.block not in left_out or piece.origin is None or piece.generated is not None
    )
    return _Printed(plan, kept, tuple(words), transactional)


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


def _header(
    plan: Plan, *, target: Target, loader: TemplateLoader, advice: tuple[str, ...] = ()
) -> tuple[str, ...]:
    lines = [f"-- generated by pgsluice from {loader.shown(target.schema_dir)}; do not edit", *advice]
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
