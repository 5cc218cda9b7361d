"""The report in each of its formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pgsluice.errors import Location
from pgsluice.pipeline.lint.model import Engine, FileKind, LintFile, LintFinding, LintReport, Severity
from pgsluice.pipeline.lint.reports.github import github_report
from pgsluice.pipeline.lint.reports.gitlab import gitlab_report
from pgsluice.pipeline.lint.reports.sarif import sarif_report
from pgsluice.pipeline.lint.reports.text import text_report
from pgsluice.pipeline.lint.rules import RULES, found

NAME: Final = "schema/app/my file, 100%.sql"
FILE: Final = LintFile(Path("/p", NAME), NAME, FileKind.SCHEMA, None)
STYLE: Final = LintFinding(
    Engine.SQLFLUFF,
    "CP01",
    Severity.ERROR,
    "keywords must be lower case",
    Location(NAME, 3, 1),
    "pgsluice lint --fix",
    None,
    is_fixable=True,
)
GRANT: Final = found("grant-to-public", "PUBLIC gets: 100% of it", Location(NAME, 7, 2), end_line=9)
GAP: Final = found("sqlfluff-cannot-parse", "sqlfluff cannot parse this, PostgreSQL can", Location(NAME, 9))
REPORT: Final = LintReport((FILE,), (STYLE, GRANT, GAP), closed=(GRANT,), outside=("x.sql",))


def test_text_gives_the_place_the_rule_and_the_recipe_once() -> None:
    again = (STYLE,) * 7
    assert text_report(LintReport((FILE,), again)) == (
        f"{NAME}:3:1: error: keywords must be lower case [sqlfluff/CP01]\n"
        "  recipe: pgsluice lint --fix\n"
        + f"{NAME}:3:1: error: keywords must be lower case [sqlfluff/CP01]\n"
        * 4
        + f"{NAME}: and 2 more [sqlfluff/CP01]\n"
        "1 file: 7 errors; 7 for pgsluice lint --fix"
    )


def test_text_ends_with_a_summary() -> None:
    assert text_report(REPORT).splitlines()[-1] == (
        "1 file: 1 error, 1 warning, 1 note; 1 in closed migrations, shown by --closed; "
        "1 outside of the targets passed over; 1 for pgsluice lint --fix"
    )
    assert text_report(LintReport((), ())) == "0 files: nothing found"
    fixed = LintReport((FILE,), (), fixed=("a.sql",), unfixed=(("b.sql", "why not"),))
    assert text_report(fixed).splitlines()[:2] == ["fixed a.sql", "not fixed in b.sql: why not"]


def test_github_commands_are_escaped_and_the_worst_comes_first() -> None:
    lines = github_report(LintReport((FILE,), (GAP, GRANT, STYLE))).splitlines()
    file = "schema/app/my file%2C 100%25.sql"
    assert lines[0] == (
        f"::error file={file},line=3,col=1,title=pgsluice lint%3A sqlfluff/CP01::"
        "keywords must be lower case%0Apgsluice lint --fix"
    )
    assert lines[1] == (
        f"::warning file={file},line=7,endLine=9,title=pgsluice lint%3A grant-to-public::"
        "PUBLIC gets: 100%25 of it%0Agrant to the roles that need it"
    )
    assert lines[2].startswith(f"::notice file={file},line=9,title=")


def test_sarif_has_the_shape_that_its_schema_asks_for() -> None:
    document: dict[str, Any] = sarif_report(REPORT)
    assert (document["version"], len(document["runs"])) == ("2.1.0", 1)
    run = document["runs"][0]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert [rule["id"] for rule in rules] == ["grant-to-public", "sqlfluff-cannot-parse", "sqlfluff/CP01"]
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
    assert len(results) == 3
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"] == {
            "uri": "schema/app/my%20file%2C%20100%25.sql",
            "uriBaseId": "PROJECTROOT",
        }
        assert place["region"]["startLine"] >= 1
    assert rules[0]["help"]["text"] == (f"{RULES['grant-to-public'].why} Grant to the roles that need it.")
    assert results[1]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 7,
        "startColumn": 2,
        "endLine": 9,
    }


def test_fingerprints_stay_when_lines_move_and_differ_among_equals() -> None:
    def marks(report: LintReport) -> list[str]:
        document: dict[str, Any] = sarif_report(report)
        return [result["partialFingerprints"]["pgsluiceLint/v1"] for result in document["runs"][0]["results"]]

    moved = LintFinding(STYLE.engine, STYLE.rule, STYLE.severity, STYLE.message, Location(NAME, 30, 1))
    assert marks(LintReport((FILE,), (STYLE,))) == marks(LintReport((FILE,), (moved,)))
    assert len(set(marks(LintReport((FILE,), (STYLE, moved))))) == 2
    issues = gitlab_report(LintReport((FILE,), (STYLE, moved)))
    assert len({issue["fingerprint"] for issue in issues}) == 2


def test_gitlab_issues() -> None:
    assert gitlab_report(REPORT)[1] == {
        "description": "PUBLIC gets: 100% of it; grant to the roles that need it",
        "check_name": "grant-to-public",
        "fingerprint": gitlab_report(REPORT)[1]["fingerprint"],
        "severity": "minor",
        "location": {"path": NAME, "lines": {"begin": 7}},
    }
