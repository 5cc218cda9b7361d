"""The second opinion in a proof: two dumps, made beside the other steps and compared at the end."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsluice.errors import FindingError
from pgsluice.pipeline.opinion.dump import DumpScope, RunningDumps, dump
from pgsluice.pipeline.opinion.entries import Entries, compare_entries
from pgsluice.pipeline.opinion.programs import find_pg_dump

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgsluice.config import Target
    from pgsluice.pipeline.devdb import DevServer

ENTRIES_SHOWN: Final = 10
LINES_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The dump of the goal, as a promise, and the means to make others; none where `pg_dump` is missing."""

    server: DevServer
    scope: DumpScope
    program: Path | None
    running: RunningDumps
    pool: ThreadPoolExecutor
    goal: Future[Entries] | None

    @property
    def note(self) -> str | None:
        """What a build tells of an opinion that it could not have."""
        if self.program is not None:
            return None
        return f"pg_dump of major {self.server.major} not found: second opinion left out"

    def start(self, conninfo: str) -> Future[Entries] | None:
        """Begin to dump a database that stays as it is until the opinion is given."""
        if self.program is None:
            return None
        return self.pool.submit(dump, self.program, conninfo, self.scope, running=self.running)

    def refuse_differences(self, migrated: Future[Entries] | None, *, what: str, way_out: str) -> None:
        """Raise when the migrated database is not dumped as the goal is.

        Args:
            what: Begins the message, such as `proof of 0002_add_email.sql failed`.
            way_out: How to go on; a part of the hint.

        Raises:
            FindingError: It names the entries with the lines that differ, or `pg_dump` failed.
        """
        if migrated is None or self.goal is None:
            return
        differing = compare_entries(self.goal.result(), migrated.result())
        if not differing:
            return
        raise FindingError(
            f"{what}: pg_dump sees a difference that the catalog comparison does not",
            details=tuple(_shown(differing)),
            hint=f"report it as a fault of pgsluice, with these lines; to go on, {way_out}",
        )


@contextmanager
def second_opinion(server: DevServer, target: Target, goal: str) -> Iterator[SecondOpinion]:
    """An opinion for the `with` block; its dump of `goal`, a template, is made meanwhile.

    Dumps that nobody waited for are given up at the end.
    """
    program = find_pg_dump(server.major, server.bin_dir)
    scope = DumpScope(target.manages, target.ignore)
    running = RunningDumps()
    with ThreadPoolExecutor(2, thread_name_prefix="pg_dump") as pool:
        wanted = None
        if program is not None:
            wanted = pool.submit(_dump_template, server, program, goal, scope=scope, running=running)
        try:
            yield SecondOpinion(server, scope, program, running, pool, wanted)
        finally:
            running.stop()


def _dump_template(
    server: DevServer, program: Path, template: str, *, scope: DumpScope, running: RunningDumps
) -> Entries:
    with server.clone(template) as conninfo:
        return dump(program, conninfo, scope, running=running)


def _shown(differing: tuple[tuple[str, tuple[str, ...]], ...]) -> Iterator[str]:
    for name, lines in differing[:ENTRIES_SHOWN]:
        yield name
        yield from (f"  {line[:300]}" for line in lines[:LINES_SHOWN])
        if len(lines) > LINES_SHOWN:
            yield f"  ... {len(lines) - LINES_SHOWN} more lines"
    if len(differing) > ENTRIES_SHOWN:
        yield f"... {len(differing) - ENTRIES_SHOWN} more entries"
