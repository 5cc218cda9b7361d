"""sqlfluff's Jinja templater for templates of migrations.

Such a template fills blocks of a skeleton. For style the blocks are read where they stand: the tags that tie
them to the skeleton (`extends`, `block`, `endblock`) are taken for comments of the same length, so that every
place stays where it is, and put back where sqlfluff rewrites the file. Macros are ours and the project's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sqlfluff.core.templaters.base import RawFileSlice, TemplatedFile
from sqlfluff.core.templaters.jinja import JinjaTemplater

from pgsluice.pipeline.template_environment import TemplateEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.lint.templates import OpenTemplate

_TAG: Final = re.compile(r"\{%([-+]?)(\s*(?:extends|block|endblock)\b(?:[^%]|%(?!\}))*?)([-+]?)%\}")
_ANY: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


class PlainEnvironment(TemplateEnvironment):
    """The environment of migrations without the marks by which a build finds its blocks again."""

    def compile(self, *args: Any, **options: Any) -> Any:  # Any: passed through
        """Compile as Jinja does."""
        return super(TemplateEnvironment, self).compile(*args, **options)


class MigrationTemplater(JinjaTemplater):
    """Reads templates of one target; `Any` because sqlfluff's own signatures are loose."""

    name = "jinja"

    def __init__(self, template: OpenTemplate) -> None:
        super().__init__()
        self.environment = PlainEnvironment(template.loader, lock_order=template.lock_order)
        self.environment.trim_blocks = self.environment.lstrip_blocks = False
        self.environment.globals |= {**template.context(), "super": _nothing, "say": _nothing}

    def __eq__(self, other: object) -> bool:
        """sqlfluff warns where a linter's templater is not the one that its configuration names."""
        return isinstance(other, JinjaTemplater)

    __hash__ = None  # type: ignore[assignment]

    def _get_jinja_env(self, config: Any = None) -> Any:
        return self.environment

    def _get_env_context(self, fname: Any, config: Any, env: Any) -> dict[str, Any]:
        return dict(env.globals)

    def process(self, *, in_str: str, fname: str, config: Any = None, formatter: Any = None) -> Any:
        """Render with the blocks laid bare; the file's own text is what places refer to."""
        bare = lay_bare(in_str)
        file, problems = super().process(in_str=bare, fname=fname, config=config, formatter=formatter)
        return _with_source(file, in_str), problems

    def process_with_variants(self, **options: Any) -> Iterator[Any]:
        """One rendering; branches that it does not take are not read."""
        yield self.process(**options)


def is_jinja(text: str, position: int) -> bool:
    """Whether the line of a character holds a part of a Jinja tag."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    stop = len(text) if end < 0 else end
    return any(match.start() < stop and match.end() > start for match in _ANY.finditer(text))


def lay_bare(text: str) -> str:
    """The text with its `extends` and block tags as comments of the same length."""
    return _TAG.sub(lambda match: f"{{#{match[1]}{_filler(match[2])}{match[3]}#}}", text)


def _nothing(*_: object) -> str:
    """What the words of a template print where no build listens."""
    return ""


def _filler(text: str) -> str:
    return re.sub(r"[^\n]", "x", text)


def _with_source(file: TemplatedFile, source: str) -> TemplatedFile:
    slices = [
        RawFileSlice(
            source[one.source_idx : one.source_idx + len(one.raw)],
            one.slice_type,
            one.source_idx,
            one.block_idx,
            one.tag,
        )
        for one in file.raw_sliced
    ]
    return TemplatedFile(
        source_str=source,
        templated_str=file.templated_str,
        fname=file.fname,
        sliced_file=file.sliced_file,
        raw_sliced=slices,
    )
