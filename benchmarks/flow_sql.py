"""Measure what a task costs the server from start to completion, beside the same messages in PGMQ alone.

    python benchmarks/flow_sql.py                          embedded and Debian's PostgreSQL 15, 30 rounds
    python benchmarks/flow_sql.py --rounds 3 --servers embedded --json figures.json
    python benchmarks/flow_sql.py --unprepared             each call parsed anew, as behind some poolers

Nothing is asserted: the figures are of this machine, and mean something only when nothing else runs on it.
docs/reference/benchmarks.md says what a batch is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import flow_work as work
import psycopg

from pgsluice.pipeline.devdb import bootstrap, open_dev, stop_dev
from pgsluice.pipeline.sources import load_schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pgsluice.pipeline.devdb import DevServer

ROOT: Final = Path(__file__).parents[1]
SERVERS: Final = ("embedded", "local:/usr/lib/postgresql/15/bin")
SIZES: Final = (1, 20, 100)
AIM: Final = 4.0
FUNCTIONS_SHOWN: Final = 16

WORK: Final[dict[str, Callable[[work.Session, int], None]]] = {
    "empty statement": work.do_nothing,
    "floor, archive all": work.floor_all,
    "floor, archive each": work.floor_each,
    "map": work.run_map,
    "floor, send and archive each": work.floor_singles,
    "single runs": work.run_singles,
}
FLOORS: Final = {
    "map": ("floor, archive each", "floor, archive all"),
    "single runs": ("floor, send and archive each", "floor, archive all"),
}
FLOWS: Final = tuple(FLOORS)
AS_IT_IS: Final = ""
WITHOUT_FOREIGN_KEYS: Final = "without foreign keys"
WITHOUT_NOTIFY: Final = "without pg_notify"
WITHOUT_EVENTS: Final = "without events"
REPLICA: Final = "session_replication_role = replica"
EMIT: Final = "select pg_catalog.pg_get_functiondef('pgflow._emit(jsonb, text, text)'::regprocedure)"
NO_EVENTS: Final = """
create or replace function pgflow._emit(payload jsonb, event text, topic text) returns void
language sql as 'select'
"""
VACUUM: Final = (
    "vacuum analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks, pgmq.q_bench_map, pgmq.a_bench_map,"
    " pgmq.q_bench_single, pgmq.a_bench_single, pgmq.q_bench_floor, pgmq.a_bench_floor"
)
UNFINISHED: Final = "select count(*) from pgflow.runs where status <> 'completed'"
FUNCTIONS: Final = """
select s.schemaname || '.' || s.funcname, sum(s.calls)::bigint, sum(s.self_time), sum(s.total_time)
from pg_catalog.pg_stat_user_functions as s
group by 1
order by 3 desc
"""


@dataclass(slots=True)
class Figures:
    """What one kind of batch took a task in each round: by part, microseconds of server and wall."""

    parts: list[dict[str, tuple[float, float]]] = field(default_factory=list)

    def rounds(self, part: str | None = None, *, wall: bool = False) -> list[float]:
        """One part, or all of them together, in each round."""
        return [sum(spent[wall] for name, spent in one.items() if part in (None, name)) for one in self.parts]

    def median(self, part: str | None = None, *, wall: bool = False) -> float:
        return statistics.median(self.rounds(part, wall=wall))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Of the server's time in all."""
        found = self.rounds()
        first, _, third = statistics.quantiles(found, n=4) if len(found) > 1 else (found[0],) * 3
        return first, third

    def as_json(self) -> dict[str, object]:
        """Medians, and the rounds that they come from."""
        return {
            "server_us": round(self.median(), 2),
            "wall_us": round(self.median(wall=True), 2),
            "quartiles_us": [round(one, 2) for one in self.quartiles],
            "parts_us": {part: round(self.median(part), 2) for part in self.parts[0]},
            "rounds_us": [round(one, 2) for one in self.rounds()],
        }


@dataclass(slots=True)
class Report:
    """The figures of one server by kind of work, variant and size; and functions by kind of work."""

    server: str
    figures: dict[tuple[str, str, int], Figures] = field(default_factory=dict)
    functions: dict[str, list[tuple[str, float, float, float]]] = field(default_factory=dict)

    def add(self, key: tuple[str, str, int], spent: Mapping[str, tuple[float, float]], *, tasks: int) -> None:
        """Keep one round."""
        a_task = {part: (server * 1e6 / tasks, wall * 1e6 / tasks) for part, (server, wall) in spent.items()}
        self.figures.setdefault(key, Figures()).parts.append(a_task)

    def ratio(self, above: tuple[str, str, int], below: tuple[str, str, int]) -> tuple[float, float, float]:
        """The server's time of one kind in that of another, round by round: median and quartiles."""
        pairs = zip(self.figures[above].rounds(), self.figures[below].rounds(), strict=True)
        ratios = Figures([{"": (one / other, 0.0)} for one, other in pairs])
        return ratios.median(), *ratios.quartiles

    def goals(self) -> Iterator[tuple[str, float, float]]:
        """What is aimed at: its words, the ratio reached, and the ratio aimed at."""
        for flow, (floor, _) in FLOORS.items():
            for size in sorted({size for *_, size in self.figures})[-1:]:
                ratio, *_ = self.ratio((flow, AS_IT_IS, size), (floor, AS_IT_IS, size))
                yield f"{flow}, batches of {size}, in {floor}", ratio, AIM

    def as_json(self) -> dict[str, object]:
        """All of it, for a file."""
        return {
            "server": self.server,
            "figures": [
                {"work": kind, "variant": variant, "batch": size, **figures.as_json()}
                for (kind, variant, size), figures in self.figures.items()
            ],
            "functions": {
                kind: [
                    {"function": name, "calls": calls, "self_us": own, "total_us": total}
                    for name, calls, own, total in rows
                ]
                for kind, rows in self.functions.items()
            },
            "goals": [{"goal": goal, "ratio": ratio, "aim": aim} for goal, ratio, aim in self.goals()],
        }


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", nargs="+", default=SERVERS, metavar="SERVER", help="as `dev =` takes")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="TASKS", help="of a batch")
    parser.add_argument("--rounds", type=int, default=30, help="after one that does not count (default 30)")
    parser.add_argument("--tasks", type=int, default=200, help="of each kind and size a round (default 200)")
    parser.add_argument("--unprepared", action="store_true", help="parse each call anew")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    given = parser.parse_args()
    reports = []
    for spec in given.servers:
        with _server(spec) as server, ExitStack() as stack:
            report = Report(server.description)
            databases = {name: stack.enter_context(_database(server, name)) for name in (AS_IT_IS, *SILENT)}
            measure(report, databases, given)
            profile(report, databases[AS_IT_IS], given)
        print_report(report)
        reports.append(report)
    if given.json:
        machine = {"processors": os.cpu_count(), "load_average": os.getloadavg()}
        how = {"prepared": not given.unprepared, "rounds": given.rounds, "tasks": given.tasks}
        text = json.dumps({**machine, **how, "servers": [one.as_json() for one in reports]}, indent=2)
        given.json.write_text(text + "\n", encoding="utf-8")


@contextmanager
def _server(spec: str) -> Iterator[DevServer]:
    """A server of this run's own, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="pgsluice-bench-") as name:
        root = Path(name)
        try:
            with open_dev(spec, root=root) as server:
                yield server
        finally:
            stop_dev(root)


def _no_notify(conn: psycopg.Connection[Any]) -> None:
    """Let events do all but the notification."""
    row = conn.execute(EMIT).fetchone()
    assert row is not None
    changed = row[0].replace("pg_notify(", "concat(")
    assert changed != row[0], "no pg_notify in pgflow._emit"
    conn.execute(changed.encode())


SILENT: Final[dict[str, Callable[[psycopg.Connection[Any]], object]]] = {
    WITHOUT_NOTIFY: _no_notify,
    WITHOUT_EVENTS: lambda conn: conn.execute(NO_EVENTS),
}


@contextmanager
def _database(server: DevServer, variant: str) -> Iterator[str]:
    """A database with PGMQ, pgflow, the flows, and a queue for the floor."""
    with server.clone(bootstrap(server, ["pgmq"], root=ROOT)) as conninfo:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            load_schema(conn, read_schema(ROOT / "schema/pgflow", root=ROOT), search_path="pgflow")
            conn.execute(work.SET_UP)
            if change := SILENT.get(variant):
                change(conn)
        yield conninfo


def measure(report: Report, databases: Mapping[str, str], given: argparse.Namespace) -> None:
    """Rounds of every kind, variant and size, each in another order; tables are vacuumed between rounds."""
    plan = [(kind, AS_IT_IS, size) for kind in WORK for size in given.sizes]
    plan += [
        (flow, variant, size)
        for flow in FLOWS
        for variant in (WITHOUT_FOREIGN_KEYS, *SILENT)
        for size in given.sizes[-1:]
    ]
    with ExitStack() as stack:
        sessions = {
            variant: stack.enter_context(
                work.open_session(
                    databases.get(variant, databases[AS_IT_IS]),
                    is_prepared=not given.unprepared,
                    settings=(REPLICA,) if variant == WITHOUT_FOREIGN_KEYS else (),
                )
            )
            for variant in (AS_IT_IS, WITHOUT_FOREIGN_KEYS, *SILENT)
        }
        keepers = [stack.enter_context(psycopg.connect(one, autocommit=True)) for one in databases.values()]
        for number in range(given.rounds + 1):  # the first one fills caches, and does not count
            turn = number * 7 % len(plan)
            for kind, variant, size in plan[turn:] + plan[:turn]:
                times = max(1, given.tasks // size)
                for _ in range(times):
                    WORK[kind](sessions[variant], size)
                spent = sessions[variant].take()
                if number:
                    report.add((kind, variant, size), spent, tasks=times * size)
            for keeper in keepers:
                keeper.execute(VACUUM)
                if keeper.execute(UNFINISHED).fetchone() != (0,):
                    raise AssertionError("a run did not complete")


def profile(report: Report, conninfo: str, given: argparse.Namespace) -> None:
    """Time in each function, for the largest batches; counting calls costs some time itself."""
    size = given.sizes[-1]
    times = max(1, given.tasks * 5 // size)
    with psycopg.connect(conninfo, autocommit=True) as keeper:
        for flow in FLOWS:
            with work.open_session(conninfo, is_prepared=not given.unprepared) as session:
                WORK[flow](session, size)  # plans are made, and the statistics reset, before what counts
            keeper.execute("select pg_catalog.pg_stat_reset()")
            settings = ("track_functions = 'all'",)
            with work.open_session(conninfo, is_prepared=not given.unprepared, settings=settings) as session:
                for _ in range(times):
                    WORK[flow](session, size)
            tasks = times * size  # the session has ended, and so sent what it counted
            report.functions[flow] = [
                (name, calls / tasks, own * 1e3 / tasks, total * 1e3 / tasks)
                for name, calls, own, total in keeper.execute(FUNCTIONS)
            ]


def print_report(report: Report) -> None:
    """Tables of totals, of what variants save, and of functions; then the goals."""
    print(f"\n{report.server}: microseconds of the server a task\n")
    print(f"{'batch':>5}  {'':<30} {'median':>8} {'quartiles':>17} {'wall':>8}   parts")
    for size in sorted({size for *_, size in report.figures}):
        for kind in WORK:
            figures = report.figures[kind, AS_IT_IS, size]
            parts = ", ".join(f"{part} {figures.median(part):.1f}" for part in figures.parts[0])
            first, third = figures.quartiles
            print(
                f"{size:>5}  {kind:<30} {figures.median():8.1f} {first:8.1f}–{third:8.1f}"
                f" {figures.median(wall=True):8.1f}   {parts}"
            )
        for flow, floors in FLOORS.items():
            for floor in floors:
                ratio, first, third = report.ratio((flow, AS_IT_IS, size), (floor, AS_IT_IS, size))
                print(f"{size:>5}  {flow} / {floor}: {ratio:.2f} ({first:.2f}–{third:.2f})")
        print()
    for (kind, variant, size), figures in report.figures.items():
        if variant:
            ratio, first, third = report.ratio((kind, variant, size), (kind, AS_IT_IS, size))
            print(
                f"{size:>5}  {kind} {variant}: {figures.median():.1f},"
                f" {ratio:.2f} of all ({first:.2f}–{third:.2f})"
            )
    for flow, rows in report.functions.items():
        print(f"\n{flow}: {'function':<40} {'calls':>7} {'self':>8} {'total':>8}   a task")
        for name, calls, own, total in rows[:FUNCTIONS_SHOWN]:
            print(f"{'':<{len(flow)}}  {name:<40} {calls:7.2f} {own:8.1f} {total:8.1f}")
    print()
    for goal, ratio, aim in report.goals():
        print(f"{goal}: {ratio:.2f}, aim {aim:g}: {'reached' if ratio <= aim else 'not reached'}")


if __name__ == "__main__":
    main()
