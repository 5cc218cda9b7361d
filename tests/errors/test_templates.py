"""What a template does wrong: the whole error, with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pgsluice.errors import InputError
from tests.errors.failure import failure
from tests.pipeline.templates import HEAD, RenderFolder

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE: Final = "templates/app/add_email.sql.j2"
UNREADABLE: Final = "/proc/self/mem"
"""Opens, and gives an error when it is read, to root too."""

BLOCKS: Final = {
    "{{ sql.refuse_if(rows='select 1', message='no', errcode='sl1') }}": (
        "a SQLSTATE has five digits or capital letters, not sl1"
    ),
    "{{ sql.refuse_if(rows='select 1', message='no', errcode='22000') }}": (
        "SQLSTATE 22000 names a class; give a condition in it"
    ),
    "{{ sql.backfill(table='a.b', set='c == 1', where='d') }}": (
        'expected the parts of one update: syntax error at or near "==": update a.b set c == 1 where d'
    ),
    "{{ sql.backfill(table='a.b', set='c = 1', where='c is null', batch=10, key='id') }}": (
        'a batched backfill commits, so the template must say {% set txmode = "none" %}'
    ),
}


@pytest.mark.parametrize("call", BLOCKS)
def test_a_macro_refuses_its_parameters(tmp_path: Path, call: str) -> None:
    folder = RenderFolder(tmp_path)
    assert failure(InputError, lambda: folder.block("backfill", call)) == (
        f"{TEMPLATE}:4: {BLOCKS[call]}\n  {call}"
    )


def test_a_template_that_extends_itself(tmp_path: Path) -> None:
    folder = RenderFolder(tmp_path)
    text = '{% extends "other.sql.j2" %}\n'
    folder.write("templates/app/other.sql.j2", text)
    assert failure(InputError, lambda: folder.render(text)) == (
        f"templates/app/other.sql.j2:1: the template extends itself\n  {text.strip()}"
    )


def test_a_template_whose_parent_is_computed(tmp_path: Path) -> None:
    folder = RenderFolder(tmp_path)
    assert failure(InputError, lambda: folder.render("\n{% extends target %}\n")) == (
        f"{TEMPLATE}:2: extends must name its template\n"
        "  {% extends target %}\n"
        'hint: {% extends "migration.sql.j2" %}'
    )


def test_a_part_that_cannot_be_read(tmp_path: Path) -> None:
    folder = RenderFolder(tmp_path)
    folder.template.parent.mkdir(parents=True)
    folder.template.with_name("part.sql").symlink_to(UNREADABLE)
    text = HEAD + '{% block backfill %}\n{% include "part.sql" %}\n{% endblock %}\n'
    assert failure(InputError, lambda: folder.render(text)) == (
        "cannot read templates/app/part.sql: Input/output error"
    )
