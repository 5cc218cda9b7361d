"""The unprivileged account that runs the server when the caller is root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgsluice.errors import UnreachableError


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """User and group ids with an entry in passwd, which `initdb` looks up."""

    uid: int
    gid: int

    def popen_options(self) -> dict[str, Any]:  # Any: keyword arguments of subprocess
        """Arguments that make `subprocess` run a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Give a folder with all its content to this account."""
        for parent, _, files in os.walk(folder):
            os.chown(parent, self.uid, self.gid)
            for name in files:
                os.chown(Path(parent, name), self.uid, self.gid, follow_symlinks=False)


def server_account() -> ServerAccount | None:
    """The account to run as, or None to run as the caller, which PostgreSQL refuses for root alone.

    Raises:
        UnreachableError: The caller is root and there is no account `nobody`, or has no passwd entry.
    """
    if os.getuid() != 0:
        try:
            pwd.getpwuid(os.getuid())
        except KeyError as exc:
            raise UnreachableError(
                f"user id {os.getuid()} has no entry in /etc/passwd, which PostgreSQL's initdb needs",
                hint='run as another user, or use a server of your own: dev = "postgresql://..."',
            ) from exc
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError as exc:
        raise UnreachableError(
            "PostgreSQL refuses to run as root, and this machine has no account 'nobody' to run it as",
            hint="run as an ordinary user, or add the account: useradd --system nobody",
        ) from exc
    return ServerAccount(entry.pw_uid, entry.pw_gid)


def popen_options(account: ServerAccount | None) -> dict[str, Any]:  # Any: keyword arguments of subprocess
    """Arguments that make `subprocess` run a program as `account`."""
    return account.popen_options() if account else {}
