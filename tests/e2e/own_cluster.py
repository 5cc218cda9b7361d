"""A server of a test's own, to be stopped, killed, started again or made a standby."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg

from pgsluice.pipeline.devdb.account import popen_options, server_account
from pgsluice.pipeline.devdb.binaries import CLEAN_ENVIRONMENT, find_binaries, usable_bin_dir
from pgsluice.pipeline.devdb.cluster import cached_cluster, copy_cluster, server_command
from pgsluice.pipeline.devdb.spec import EmbeddedSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgsluice.pipeline.devdb.account import ServerAccount

START_S: Final = 60.0
PAUSE_S: Final = 0.02
# What the settings of a scratch server leave out: for standbys, for what a crash must not forget, and
# for transactions of two phases.
DURABLE: Final = (
    *("-c", "wal_level=replica", "-c", "synchronous_commit=on"),
    *("-c", "max_prepared_transactions=2"),
)


@dataclass
class Cluster:
    """A server on a data folder; it listens on a socket in the same folder."""

    folder: Path
    bin_dir: Path
    account: ServerAccount | None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The database that tests use."""
        return f"host={self.folder} port=5432 user=pgsluice_dev dbname=postgres"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [*server_command(self.bin_dir, self.folder / "data", self.folder), *DURABLE]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, env=CLEAN_ENVIRONMENT, cwd="/", stdout=log, stderr=log, **popen_options(self.account)
            )
        self.processes.append(process)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                assert process.poll() is None, (self.folder / "log").read_text()
                time.sleep(PAUSE_S)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT is fast, SIGQUIT at once as in a crash."""
        process = self.processes.pop()
        process.send_signal(number)
        process.wait(START_S)


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """A running server; its folder has a short name, because a socket lies in it."""
    account = server_account()
    bin_dir = usable_bin_dir(find_binaries(EmbeddedSpec()), account, progress=print)
    folder = Path(tempfile.mkdtemp(prefix="pgs-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        copy_cluster(cached_cluster(bin_dir, "tests", account, progress=print), folder / "data", account)
        if account is not None:
            account.own(folder)
        cluster = Cluster(folder, bin_dir, account)
        cluster.start()
        try:
            yield cluster
        finally:
            while cluster.processes:
                cluster.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder)
