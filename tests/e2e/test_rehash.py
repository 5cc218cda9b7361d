"""From a folder that another tool wrote to one that verifies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.e2e.conftest import MakeProject

SCHEMA: Final = "create table jobs (\n  job_id bigint primary key,\n  note text\n);\n"
THEIRS: Final = {
    "migrations/app/00.00.00_01_initial.sql": "create table jobs (job_id bigint primary key, a text);\n",
    "migrations/app/00.05.00_01_drop_a.sql": "alter table jobs drop column a;\n",
    "migrations/app/00.05.00_02_add_note.sql": "alter table jobs add column note text;\n",
}


def test_folder_of_another_tool_becomes_one_that_verifies(make: MakeProject) -> None:
    project = make({**THEIRS, "schema/app/schema.sql": SCHEMA}, config="[targets.app]\n")
    assert project.fails(1, "verify").endswith("hint: pgsluice build\n")
    assert project.ok("rehash") == (
        "wrote migrations/app/atlas.sum: 3 migrations\n"
        "  new: 00.00.00_01_initial.sql\n"
        "  new: 00.05.00_01_drop_a.sql\n"
        "  new: 00.05.00_02_add_note.sql\n"
        "next: pgsluice build\n"
    )
    assert project.ok("build") == "nothing to do: the migrations of app lead to this schema already\n"
    assert project.ok("verify") == "app: as built\n"
    project.write("schema/app/schema.sql", SCHEMA.replace("text\n", "text,\n  done boolean\n"))
    project.ok("build", "done")
    assert project.migrations()[-1].name.startswith("20")
    assert project.ok("verify") == "app: as built\n"


def test_folder_that_does_not_lead_to_its_schema_is_not_recorded_as_proved(make: MakeProject) -> None:
    project = make({**THEIRS, "schema/app/schema.sql": SCHEMA.replace("text", "integer")})
    project.ok("rehash")
    assert "alter column public.jobs.note" in project.fails(2, "build")
    assert "pgsluice.lock is missing" in project.fails(1, "verify")


def test_numbers_without_leading_zeros_are_named_by_rehash_and_verify(make: MakeProject) -> None:
    files = {f"migrations/app/V{number}__a.sql": f"create table t{number} ();\n" for number in (1, 2, 10)}
    schema = "".join(f"create table t{number} ();\n" for number in (1, 2, 10))
    project = make({**files, "schema/app/schema.sql": schema})
    warning = "warning: migrations/app/V10__a.sql runs before V1__a.sql"
    done = project.run("rehash")
    assert (done.code, done.stderr.startswith(warning)) == (0, True)
    project.ok("build")
    done = project.run("verify")
    assert (done.code, done.stderr.startswith(warning)) == (0, True)
    (finding,) = project.json("verify")["findings"]
    assert (finding["code"], finding["file"]) == ("number-order", "migrations/app/V10__a.sql")


def test_rehash_after_a_build_asks_for_another_proof(make: MakeProject) -> None:
    project = make({"schema/app/a.sql": "create table a ();\n"})
    project.ok("build", "one")
    project.write("schema/app/b.sql", "create table b ();\n")
    project.ok("build", "two")
    (_, second) = project.migrations()
    second.unlink()
    assert project.ok("rehash", "--accept", "0002*").endswith("next: pgsluice build\n")
    assert "was written anew after the last proved build" in project.fails(1, "verify")
    assert "wrote migrations/app/0002_three.sql" in project.ok("build", "three")
    assert "CREATE TABLE public.b" in project.newest()
    assert project.ok("verify") == "app: as built\n"


def test_a_history_that_leads_to_the_schema_again_is_recorded_by_build(make: MakeProject) -> None:
    project = make({"schema/app/a.sql": "create table a ();\n"})
    project.ok("build", "one")
    project.ok("release")
    project.write("migrations/app/0002_rows.sql", "select 1;\n")
    project.ok("rehash")
    assert "atlas.sum was written anew" in project.fails(1, "verify")
    project.ok("build")
    assert project.ok("verify") == "app: as built\n"
