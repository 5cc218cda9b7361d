"""Schema files: read, put in order, loaded into a scratch database."""

from pgsluice.pipeline.sources.load import load_schema
from pgsluice.pipeline.sources.model import Rename, SchemaSource, SourceFile, SourceStatement
from pgsluice.pipeline.sources.read import read_schema

__all__ = ["Rename", "SchemaSource", "SourceFile", "SourceStatement", "load_schema", "read_schema"]
