"""The catalog as facts: the independent oracle of plan, proof and drift."""

from pgsluice.pipeline.snapshot.model import Address, Difference, Object, Snapshot, Value, compare
from pgsluice.pipeline.snapshot.reader import read_snapshot

__all__ = ["Address", "Difference", "Object", "Snapshot", "Value", "compare", "read_snapshot"]
