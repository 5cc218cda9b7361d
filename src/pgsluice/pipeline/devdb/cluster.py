"""The initialised cluster that every new server starts from, and the server's settings."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from pgsluice.errors import UnreachableError
from pgsluice.pipeline.devdb.account import popen_options
from pgsluice.pipeline.devdb.binaries import CLEAN_ENVIRONMENT
from pgsluice.pipeline.devdb.filelock import make_passable
from pgsluice.pipeline.devdb.folders import STORAGE_VARIABLE, cache_base, forget_unused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgsluice.pipeline.devdb.account import ServerAccount

# A name that no database uses: what belongs to a `postgres` there must not belong to us here.
SUPERUSER: Final = "pgsluice_dev"
# Locale C everywhere: collation must not depend on what a machine has installed.
INITDB_OPTIONS: Final = (
    f"--username={SUPERUSER}",
    "--encoding=UTF8",
    "--locale=C",
    "--auth=trust",
    "--wal-segsize=1",
    "--no-sync",
    "--no-instructions",
)
SETTINGS: Final = (
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "max_connections=64",
    "max_locks_per_transaction=1024",
    "max_prepared_transactions=8",
    "shared_buffers=128MB",
    "dynamic_shared_memory_type=mmap",  # in the data folder: goes with it, even after SIGKILL
    "huge_pages=off",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_logical_replication_workers=0",
    "min_wal_size=8MB",
    "max_wal_size=256MB",
    "checkpoint_timeout=1h",
    "autovacuum=off",
    "jit=off",
    "max_parallel_workers=0",
    "max_parallel_workers_per_gather=0",
    "max_parallel_maintenance_workers=0",
    "client_connection_check_interval=500ms",
    "timezone=UTC",
    "log_timezone=UTC",
    "log_checkpoints=off",
    "log_min_error_statement=panic",
    "logging_collector=off",
)


def cached_cluster(
    bin_dir: Path, binaries: str, account: ServerAccount | None, *, progress: Callable[[str], None]
) -> Path:
    """The initialised cluster of these binaries, made on first use; the folder belongs to `account`.

    Raises:
        UnreachableError: `initdb` failed.
    """
    digest = hashlib.sha256("\n".join((binaries, *INITDB_OPTIONS)).encode()).hexdigest()[:16]
    owner = account.uid if account else os.getuid()
    cluster = cache_base() / "clusters" / f"{digest}-{owner}"
    if cluster.is_dir():
        os.utime(cluster)
        return cluster
    progress("initialising a PostgreSQL cluster, once for these binaries")
    forget_unused(cluster.parent)
    draft = cluster.with_name(f"draft-{cluster.name}")
    shutil.rmtree(draft, ignore_errors=True)
    make_passable(cluster.parent)
    draft.mkdir(mode=0o700)
    if account:
        account.own(draft)
    _initdb(bin_dir, draft, account)
    draft.replace(cluster)
    return cluster


def _initdb(bin_dir: Path, target: Path, account: ServerAccount | None) -> None:
    done = subprocess.run(
        [bin_dir / "initdb", f"--pgdata={target}", *INITDB_OPTIONS],
        **popen_options(account),
        env=CLEAN_ENVIRONMENT,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        raise UnreachableError(
            f"initdb of {bin_dir} failed with status {done.returncode}",
            details=tuple(done.stdout.splitlines()[-8:]),
            hint=f"look at the free space of {target.parent}",
        )


def copy_cluster(cluster: Path, target: Path, account: ServerAccount | None) -> None:
    """Copy an initialised cluster to the data folder of a new server.

    Raises:
        UnreachableError: There is no room for it.
    """
    shutil.rmtree(target, ignore_errors=True)
    try:
        shutil.copytree(cluster, target)
    except OSError as exc:
        shutil.rmtree(target, ignore_errors=True)
        raise UnreachableError(
            f"cannot copy the initialised cluster {cluster} to {target}: {exc}",
            hint=f"free some space there, or export {STORAGE_VARIABLE}=disk",
        ) from exc
    if account:
        account.own(target)


def server_command(bin_dir: Path, data_dir: Path, socket_dir: Path) -> list[str]:
    """The command line of a server on this data folder."""
    settings = [*SETTINGS, f"unix_socket_directories={socket_dir}"]
    if int((data_dir / "PG_VERSION").read_text(encoding="ascii")) >= 18:
        settings.append("io_method=sync")  # fewer processes to start
    options = [option for setting in settings for option in ("-c", setting)]
    return [str(bin_dir / "postgres"), "-D", str(data_dir), *options]
