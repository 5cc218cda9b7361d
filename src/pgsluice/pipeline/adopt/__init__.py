"""An existing database becomes a project."""

from pgsluice.pipeline.adopt.adopt import adopt_database
from pgsluice.pipeline.adopt.secrets import LeftOut
from pgsluice.pipeline.adopt.wish import Adopted, Wish
from pgsluice.pipeline.adopt.write import write_adopted

__all__ = ["Adopted", "LeftOut", "Wish", "adopt_database", "write_adopted"]
