"""Files named after objects."""

from __future__ import annotations

import pytest

from pgsluice.pipeline.adopt.homes import Home
from pgsluice.pipeline.adopt.paths import file_paths, safe_name


def test_one_schema_has_its_kinds_at_the_top() -> None:
    homes = [Home("tables", "app", "users"), Home("", "app", "schema"), Home("publications", "", "feed")]
    assert file_paths(homes) == {
        homes[0]: "tables/users.sql",
        homes[1]: "schema.sql",
        homes[2]: "publications/feed.sql",
    }


def test_several_schemas_have_a_folder_each() -> None:
    homes = [Home("tables", "app", "users"), Home("tables", "audit", "users"), Home("", "", "casts")]
    assert list(file_paths(homes).values()) == [
        "casts.sql",
        "app/tables/users.sql",
        "audit/tables/users.sql",
    ]


def test_names_that_differ_in_case_or_in_what_no_file_name_has_get_numbers() -> None:
    homes = [Home("tables", "app", name) for name in ("Users", "a/b", "a_b", "users")]
    assert list(file_paths(homes).values()) == [
        "tables/Users.sql",
        "tables/a_b.sql",
        "tables/a_b-2.sql",
        "tables/users-2.sql",
    ]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("plain", "plain"),
        ('say "hi"', "say__hi_"),
        ("../../etc/passwd", "_._.._etc_passwd"),
        (".hidden", "_hidden"),
        ("-rf", "_rf"),
        ("größe", "größe"),
        ("CON", "CON_"),
        ("nul.txt", "nul.txt_"),
        ("...", "_"),
        ("a\nb", "a_b"),
    ],
)
def test_a_name_is_safe_as_part_of_a_path(name: str, safe: str) -> None:
    assert safe_name(name) == safe
