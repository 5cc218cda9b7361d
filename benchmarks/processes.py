"""Whole processes, measured."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class ProcessError(Exception):
    """A measured program failed; what it said is in the message."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: time on the wall, and processor time of the process with its children (not of the server)."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """All runs of one command, the median of them, and the fastest one."""

    samples: tuple[Sample, ...]

    @property
    def median_s(self) -> float:
        return statistics.median(sample.wall_s for sample in self.samples)

    @property
    def least_s(self) -> float:
        return min(sample.wall_s for sample in self.samples)

    @property
    def cpu_s(self) -> float:
        return statistics.median(sample.cpu_s for sample in self.samples)

    def as_json(self) -> dict[str, object]:
        """The figures with the samples that they come from."""
        figures = {"median_s": self.median_s, "least_s": self.least_s, "cpu_s": self.cpu_s}
        rounded = {name: round(value, 4) for name, value in figures.items()}
        return {**rounded, "samples": [asdict(sample) for sample in self.samples]}


def run(command: Sequence[str | Path], folder: Path, *, accepted: Sequence[int] = (0,)) -> Sample:
    """Run a program to its end.

    Args:
        accepted: Exit codes that mean success.

    Raises:
        ProcessError: It ended with another exit code.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    wall_s, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in accepted:
        said = (done.stderr or done.stdout).strip().splitlines()[-6:]
        raise ProcessError(f"{' '.join(map(str, command))}: exit code {done.returncode}: {' / '.join(said)}")
    return Sample(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
