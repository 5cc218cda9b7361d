"""Prints the SQL by which a release of pgqueuer installs its schema, or upgrades any older one.

    python pgqueuer_sql.py FOLDER install|upgrade

FOLDER holds the package and what its module of queries imports; drivers and workers are left out.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path


def main() -> int:
    """Import the release's own queries, and print what they give."""
    folder, what = Path(sys.argv[1]), sys.argv[2]
    sys.path.insert(0, str(folder))
    package = types.ModuleType("pgqueuer")  # without its __init__, which imports every driver
    package.__path__ = [str(folder / "pgqueuer")]
    sys.modules["pgqueuer"] = package
    if (folder / "pgqueuer/adapters").is_dir():
        ddl = importlib.import_module("pgqueuer.adapters.persistence.schema_ddl")
        settings = importlib.import_module("pgqueuer.domain.settings").DBSettings()
        text = ddl.render_install(settings) if what == "install" else "\n".join(ddl.render_converge(settings))
    else:
        text = importlib.import_module("pgqueuer.queries").QueryBuilder().create_install_query()
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
