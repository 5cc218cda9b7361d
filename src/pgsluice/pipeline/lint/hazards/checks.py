"""Which checks a file of each kind gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.hazards.enums import check_enums
from pgsluice.pipeline.lint.hazards.functions import check_functions
from pgsluice.pipeline.lint.hazards.grants import check_grants
from pgsluice.pipeline.lint.hazards.locks import check_locks
from pgsluice.pipeline.lint.hazards.names import check_cascades, check_names
from pgsluice.pipeline.lint.hazards.rows import check_rows
from pgsluice.pipeline.lint.hazards.transactions import check_transactions
from pgsluice.pipeline.lint.hazards.views import check_views
from pgsluice.pipeline.lint.model import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pgsluice.pipeline.lint.hazards.context import Context
    from pgsluice.pipeline.lint.model import LintFinding

    Check = Callable[[Context], Iterator[LintFinding]]

_EVERYWHERE: Final[tuple[Check, ...]] = (check_functions, check_grants)
CHECKS: Final[Mapping[FileKind, tuple[Check, ...]]] = {
    FileKind.SCHEMA: _EVERYWHERE,
    FileKind.TEMPLATE: (),
    FileKind.MIGRATION: (
        check_transactions,
        check_names,
        check_cascades,
        check_enums,
        check_locks,
        check_views,
        check_rows,
        *_EVERYWHERE,
    ),
}


def check_hazards(context: Context) -> Iterator[LintFinding]:
    """Everything that the checks of the file's kind find."""
    for check in CHECKS[context.kind]:
        yield from check(context)
