"""What migra's proposals alone bring home of the diff cases, beside what pgsluice builds.

    python benchmarks/migra_alone.py [--dev local:/usr/lib/postgresql/15/bin] [--pairs "[0-9]*"]

Each pair of tests/cases is judged by PostgreSQL: the statements are applied in one transaction to *before*
with its rows; then `pg_dump` and the catalog snapshot must equal those of *after*, and each query of the
pair must give the same rows as before. `loop` is right, but the same differ proposes again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg

from pgsluice.config import load_project
from pgsluice.errors import ExitCode, PipelineError
from pgsluice.pipeline.build import build_target
from pgsluice.pipeline.devdb import DevServer, open_dev
from pgsluice.pipeline.opinion.dump import DumpScope, RunningDumps, dump
from pgsluice.pipeline.opinion.migra import propose
from pgsluice.pipeline.opinion.programs import find_pg_dump
from pgsluice.pipeline.snapshot import compare, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection

CASES: Final = Path(__file__).parent.parent / "tests/cases"
ALL: Final = ("*",)
CONFIG: Final = """\
dev = "{dev}"
postgres = ["15", "18"]
[targets.app]
manages = ["*"]
versioning = "sequence"
"""


def main() -> None:
    """Measure, and print one line a pair and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dev", action="append", help="server to measure on; may be repeated")
    parser.add_argument("--pairs", default="*", metavar="PATTERN", help="pairs whose name fits")
    arguments = parser.parse_args()
    cases = sorted(path.parent for path in CASES.glob(f"{arguments.pairs}/before.sql"))
    for dev in arguments.dev or ["embedded"]:
        totals: dict[str, Counter[str]] = {"migra": Counter(), "pgsluice": Counter()}
        with tempfile.TemporaryDirectory() as folder, open_dev(dev, root=Path(folder)) as server:
            print(f"\n## {server.description}\n\n| pair | migra | pgsluice |\n|---|---|---|", flush=True)
            for case in cases:
                outcomes = judge_case(case, server, Path(folder), dev=dev)
                print(f"| {case.name} | {outcomes[0]} | {outcomes[1]} |", flush=True)
                totals["migra"][outcomes[0]] += 1
                totals["pgsluice"][outcomes[1]] += 1
        for name, counts in totals.items():
            print(f"\n{name}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))


def judge_case(case: Path, server: DevServer, root: Path, *, dev: str) -> tuple[str, str]:
    """What becomes of one pair by migra's statements, and by a migration that pgsluice builds."""
    try:
        with loaded(server, case, "before.sql") as before, loaded(server, case, "after.sql") as after:
            by_migra = proposals(before, after)
            first = by_migra if isinstance(by_migra, str) else judge(server, case, after, statements=by_migra)
            built = build(case, root, dev=dev)
            second = built if isinstance(built, str) else judge(server, case, after, statements=built)
            if first == "silently wrong" and not by_migra:
                first = "nothing emitted"
            if first == "right" and again(server, case, after, statements=by_migra):
                first = "loop"
    except psycopg.errors.SyntaxError:
        return "does not load on this major", "does not load on this major"
    return first, second


@contextmanager
def loaded(server: DevServer, case: Path, *names: str) -> Iterator[str]:
    """A scratch database with some files of a pair."""
    with server.clone(None) as conninfo, psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute((CASES / "roles.sql").read_bytes(), prepare=False)
        for name in names:
            if (case / name).exists():
                conn.execute((case / name).read_bytes(), prepare=False)
        conn.close()
        yield conninfo


def proposals(before: str, after: str) -> Sequence[str] | str:
    """migra's statements, or how it crashes."""
    with psycopg.connect(before, autocommit=True) as have, psycopg.connect(after, autocommit=True) as want:
        try:
            return propose(have, want, manages=ALL)
        except psycopg.Error:
            raise
        except Exception as exc:  # noqa: BLE001 - whatever a library of others raises is its outcome
            return f"crashes: {type(exc).__name__}"


def build(case: Path, root: Path, *, dev: str) -> Sequence[str] | str:
    """The migration that pgsluice builds, or its refusal."""
    with tempfile.TemporaryDirectory(dir=root) as folder:
        work = Path(folder)
        (work / "schema/app").mkdir(parents=True)
        (work / "templates/app").mkdir(parents=True)
        (work / "pgsluice.toml").write_text(CONFIG.format(dev=dev), encoding="utf-8")
        project = load_project(work)
        target = project.target(None)
        try:
            for name in ("before", "after"):
                (work / "schema/app/all.sql").write_bytes((case / f"{name}.sql").read_bytes())
                template = case / f"{name}.sql.j2"
                if template.exists():
                    (work / "templates/app" / template.name).write_bytes(template.read_bytes())
                built = build_target(project, target, name=name, allow_destructive=True)
        except PipelineError as exc:
            return "refused" if exc.exit_code == ExitCode.REFUSED else f"error: {exc.message}"
        return [] if built.rendered is None else [built.rendered.text]


def judge(server: DevServer, case: Path, after: str, *, statements: Sequence[str]) -> str:
    """Apply statements to *before* with its rows, and compare with *after*."""
    with loaded(server, case, "before.sql", "seed.sql") as conninfo:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            rows = answers(conn, case)
            try:
                apply(conn, statements)
            except psycopg.Error:
                return "fails to apply"
            if answers(conn, case) != rows:
                return "rows lost"
        return "right" if same(server, conninfo, after) else "silently wrong"


def again(server: DevServer, case: Path, after: str, *, statements: Sequence[str] | str) -> bool:
    """Whether migra still proposes something where its statements were applied."""
    with loaded(server, case, "before.sql") as conninfo:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            apply(conn, statements)
        return bool(proposals(conninfo, after))


def apply(conn: Connection[Any], statements: Sequence[str] | str) -> None:
    """Run statements in one transaction."""
    with conn.transaction():
        for statement in statements:
            conn.execute(statement.encode(), prepare=False)


def answers(conn: Connection[Any], case: Path) -> list[object]:
    """What the pair's own queries give."""
    return [
        conn.execute(path.read_bytes(), prepare=False).fetchall() for path in sorted(case.glob("check*.sql"))
    ]


def same(server: DevServer, have: str, want: str) -> bool:
    """Whether `pg_dump` and the snapshot see the same in two databases."""
    program = find_pg_dump(server.major, server.bin_dir)
    assert program is not None, "pg_dump is not installed"
    running = RunningDumps()
    scope = DumpScope(ALL)
    if dump(program, have, scope, running=running) != dump(program, want, scope, running=running):
        return False
    with psycopg.connect(have) as one, psycopg.connect(want) as other:
        return compare(read_snapshot(other, manages=ALL), read_snapshot(one, manages=ALL)) == ()


if __name__ == "__main__":
    main()
