"""Prints the migrations of a release of DBOS as JSON: the texts, and the numbers that run concurrently.

    python dbos_sql.py FOLDER

FOLDER holds the package; SQLAlchemy and the logger, which only running them needs, are left out.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import types
from pathlib import Path


def main() -> int:
    """Import the release's own list, and print it."""
    folder = Path(sys.argv[1])
    stand_in("sqlalchemy", Engine=None)
    stand_in("dbos", __path__=[str(folder / "dbos")])
    stand_in("dbos._logger", dbos_logger=None)
    stand_in("dbos._utils", quote_identifier=quote)
    module = importlib.import_module("dbos._migration")
    arguments = ("dbos", True, False)[: len(inspect.signature(module.get_dbos_migrations).parameters)]
    online = sorted(getattr(module, "_ONLINE_MIGRATIONS", ()))
    json.dump({"texts": module.get_dbos_migrations(*arguments), "online": online}, sys.stdout)
    return 0


def stand_in(name: str, **attributes: object) -> None:
    """Let an import find a module that has these attributes alone."""
    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module


def quote(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    sys.exit(main())
