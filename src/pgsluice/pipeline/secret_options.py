"""Which options of foreign servers, tables and users hold what nobody should read in a file or a message."""

from __future__ import annotations

import re
from typing import Final

# Told from names, as each wrapper has options of its own; `password_required` and `api_key_id` hold none.
NAMES: Final = re.compile(
    r"pass(?:word|wd|phrase|file)?$|pwd$|secret$|(?:^|_)token$|credentials?$"
    r"|(?:^|_)(?:access|account|api|auth|client|encryption|master|private|sa|secret|service|shared|signing)_?key$"
    r"|^ssl_?key$",
    re.IGNORECASE,
)
# A URL or a connection string with a password in it.
VALUES: Final = re.compile(
    r"://[^/@\s:]*:[^/@\s]+@|\bpassword\s*=|-----BEGIN [A-Z ]*PRIVATE KEY", re.IGNORECASE
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether an option holds a password, key or token, by its name or by what its value looks like."""
    return NAMES.search(name) is not None or VALUES.search(value) is not None
