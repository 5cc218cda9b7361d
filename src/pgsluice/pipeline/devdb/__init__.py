"""Scratch databases on a dev server: embedded, of local binaries, or somebody else's."""

from pgsluice.pipeline.devdb.requirements import bootstrap
from pgsluice.pipeline.devdb.server import DevServer
from pgsluice.pipeline.devdb.session import open_dev, stop_dev

__all__ = ["DevServer", "bootstrap", "open_dev", "stop_dev"]
