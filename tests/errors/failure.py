"""The whole text of an error, and that it is of exactly the kind that was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgsluice.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable


def failure(kind: type[PipelineError], act: Callable[[], object]) -> str:
    """The whole text of the error that ends an action."""
    with pytest.raises(PipelineError) as caught:
        act()
    assert type(caught.value) is kind
    return str(caught.value)
