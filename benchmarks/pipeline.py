"""Measure `verify` and `build` as whole processes, beside two differs on the same states.

    python benchmarks/pipeline.py                       50, 500 and 2,000 tables
    python benchmarks/pipeline.py --sizes 50 --repeat 3 --json figures.json
    python benchmarks/pipeline.py --profile 500         where a warm one-column build spends its time

Nothing is asserted: the figures are of this machine, and mean something only when nothing else runs on it.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import psycopg
from processes import Measured, ProcessError, Sample, run
from psycopg.conninfo import conninfo_to_dict
from rivals import DIFFERENCE_FOUND, install_rivals
from workload import Workload

from pgsluice.config import load_project
from pgsluice.pipeline.build import build_target
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.devdb import open_dev, stop_dev

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PGSLUICE: Final = (sys.executable, "-m", "pgsluice")
FLOOR: Final = (sys.executable, "-c", "import typer, pydantic")
CONFIG: Final = '[targets.app]\nmanages = ["app"]\n'
SIZES: Final = (50, 500, 2_000)
OLD_MIGRATIONS: Final = 1_000
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "pgsluice-benchmarks"


@dataclass(slots=True)
class Report:
    """Figures by number of tables and name of the measurement; `problems` are the ones that are missing."""

    figures: dict[int, dict[str, Measured]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def add(self, tables: int, name: str, samples: Sequence[Sample]) -> None:
        """Keep a measurement, and print it."""
        measured = self.figures.setdefault(tables, {})[name] = Measured(tuple(samples))
        print(
            f"{tables:>6}  {name:<34} {measured.median_s:8.3f} {measured.least_s:8.3f} {measured.cpu_s:8.3f}",
            flush=True,
        )

    def ratio(self, above: tuple[int, str], below: tuple[int, str]) -> float | None:
        """One median in terms of another; None where one is missing."""
        one, other = (self.figures.get(tables, {}).get(name) for tables, name in (above, below))
        return None if one is None or other is None else one.median_s / other.median_s

    def goals(self) -> Iterator[tuple[str, float | None, float]]:
        """What is aimed at: its words, the ratio reached, and the ratio aimed at."""
        for tables in self.figures:
            if tables:
                yield (
                    f"{tables} tables: no-change build, in verify",
                    self.ratio((tables, "build, no change"), (tables, "verify")),
                    2.0,
                )
        yield (
            "500 tables: proved one-column build, in migra's diff alone",
            self.ratio((500, "build, one column"), (500, "migra, one column")),
            1.0,
        )
        for name in ("verify", "build, no change", "build, one column", "build, first"):
            ratio = self.ratio((2_000, name), (500, name))
            yield f"500 to 2,000 tables: {name}, in linear growth", ratio and ratio / 4, 1.3
        yield (
            "verify of 1,000 migrations and 500 tables, in the floor",
            self.ratio((500, "verify, 1,000 migrations"), (0, "floor: import typer, pydantic")),
            3.0,
        )

    def as_json(self) -> dict[str, object]:
        """All of it, for a file."""
        return {
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "load_average": os.getloadavg(),
            "figures": [
                {"tables": tables, "name": name, **measured.as_json()}
                for tables, names in self.figures.items()
                for name, measured in names.items()
            ],
            "goals": [{"goal": goal, "ratio": ratio, "aim": aim} for goal, ratio, aim in self.goals()],
            "problems": self.problems,
        }


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="TABLES")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--tools", type=Path, default=CACHE, help=f"where rivals live (default {CACHE})")
    parser.add_argument("--without-rivals", action="store_true")
    parser.add_argument("--profile", type=int, metavar="TABLES", help="profile one build instead")
    given = parser.parse_args()
    if given.profile:
        profile(given.profile)
        return
    report = Report()
    print(
        f"{'tables':>6}  {'':<34} {'median':>8} {'least':>8} {'cpu':>8}   seconds; cpu without the server's"
    )
    report.add(0, "floor: import typer, pydantic", [run(FLOOR, Path.cwd()) for _ in range(given.repeat * 2)])
    for tables in given.sizes:
        with _project() as root:
            measure_pipeline(report, root, Workload(tables), repeat=given.repeat)
            if not given.without_rivals:
                measure_rivals(report, root, Workload(tables), repeat=given.repeat, tools=given.tools)
            if tables == 500:
                measure_long_history(report, root, Workload(tables), repeat=given.repeat)
    print_goals(report)
    if given.json:
        given.json.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")


@contextmanager
def _project() -> Iterator[Path]:
    """A project in a temporary folder, its server stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="pgsluice-bench-") as name:
        root = Path(name)
        (root / "pgsluice.toml").write_text(CONFIG, encoding="utf-8")
        try:
            yield root
        finally:
            stop_dev(root)


def measure_pipeline(report: Report, root: Path, workload: Workload, *, repeat: int) -> None:
    """A first build without a server, then verify, and builds with and without a change."""
    schema, tables = root / "schema" / "app", workload.tables
    workload.write(schema)
    report.add(tables, "build, first", [run((*PGSLUICE, "build", "first"), root)])
    report.add(tables, "verify", [run((*PGSLUICE, "verify"), root) for _ in range(repeat)])
    report.add(tables, "build, no change", [run((*PGSLUICE, "build"), root) for _ in range(repeat)])
    run((*PGSLUICE, "release"), root)
    samples = []
    for number in range(repeat + 1):  # the first one replays the history, which is cached from then on
        workload.write(schema, changed=f"extra_{number}")
        samples.append(run((*PGSLUICE, "build", "extra"), root))
    report.add(tables, "build, one column", samples[1:])


def measure_rivals(report: Report, root: Path, workload: Workload, *, repeat: int, tools: Path) -> None:
    """The same two states in two databases of the same server, diffed and nothing else."""
    with (
        open_dev(load_project(root).dev, root=root) as server,
        server.clone(None) as have,
        server.clone(None) as want,
    ):
        for conninfo, changed in ((have, None), (want, "extra")):
            with psycopg.connect(conninfo, autocommit=True) as conn:
                conn.execute(workload.script(changed=changed).encode())
        for rival in install_rivals(tools):
            command = rival.command(_url(have), _url(want))
            try:
                if rival.problem:
                    raise ProcessError(rival.problem)
                samples = [run(command, root, accepted=(0, DIFFERENCE_FOUND)) for _ in range(repeat)]
            except ProcessError as exc:
                report.problems[rival.name] = str(exc)
                print(f"{workload.tables:>6}  {rival.name}: {exc}")
                continue
            report.add(workload.tables, f"{rival.name}, one column", samples)


def measure_long_history(report: Report, root: Path, workload: Workload, *, repeat: int) -> None:
    """Verify beside a thousand migrations."""
    run((*PGSLUICE, "release"), root)
    folder = root / "migrations" / "app"
    for number in range(OLD_MIGRATIONS - len(list(folder.glob("*.sql")))):
        text = f"alter table app.item_{number % workload.tables:04d} set (fillfactor = {50 + number % 50});\n"
        (folder / f"{29990101000000 + number}_tune_{number}.sql").write_text(text, encoding="utf-8")
    (folder / SUM_NAME).write_bytes(compute_sum(folder).render())
    samples = [run((*PGSLUICE, "verify"), root) for _ in range(repeat * 2)]
    report.add(workload.tables, "verify, 1,000 migrations", samples)


def print_goals(report: Report) -> None:
    """The ratios that are aimed at."""
    print()
    for goal, ratio, aim in report.goals():
        if ratio is not None:
            print(f"{goal}: {ratio:.2f}, aim {aim:g}: {'reached' if ratio <= aim else 'not reached'}")


def profile(tables: int) -> None:
    """Print where a warm one-column build spends its time in this process; waiting for the server counts."""
    with _project() as root:
        workload, schema = Workload(tables), root / "schema" / "app"
        workload.write(schema)
        for changed in (None, "extra_0"):
            workload.write(schema, changed=changed)
            run((*PGSLUICE, "build", f"build_{changed}".lower()), root)
        workload.write(schema, changed="extra_1")
        project = load_project(root)
        profiler = cProfile.Profile()
        profiler.enable()
        build_target(project, project.target(None), name="build_extra_0")
        profiler.disable()
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(70)


def _url(conninfo: str) -> str:
    given: Mapping[str, object] = conninfo_to_dict(conninfo)
    place = urlencode({"host": given["host"], "port": given["port"]}, quote_via=quote)
    return f"postgresql://{given['user']}@/{given['dbname']}?{place}"


if __name__ == "__main__":
    main()
