"""How each kind of object is created, dropped and altered: one table of kinds."""

from __future__ import annotations

from typing import Final

from pgsluice.pipeline.generate import (
    attached,
    columns,
    constraints,
    database_wide,
    defaults,
    functions,
    operators,
    schemas,
    sequences,
    tables,
    text_search,
    types,
    unchangeable,
    views,
)
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step

# In this order objects of one phase are written where no dependency says otherwise.
KINDS: Final[dict[str, Kind]] = {
    "schema": schemas.SCHEMA,
    "extension": schemas.EXTENSION,
    "extension member": schemas.EXTENSION_MEMBER,
    "collation": operators.COLLATION,
    "enum": types.ENUM,
    "composite": types.COMPOSITE,
    "domain": types.DOMAIN,
    "domain constraint": constraints.DOMAIN_CONSTRAINT,
    "range": types.RANGE,
    "text search dictionary": text_search.DICTIONARY,
    "text search configuration": text_search.CONFIGURATION,
    "foreign data wrapper": database_wide.WRAPPER,
    "server": database_wide.SERVER,
    "user mapping": database_wide.USER_MAPPING,
    "sequence": sequences.SEQUENCE,
    "table": tables.TABLE,
    "column": columns.COLUMN,
    "default": defaults.DEFAULT,
    "constraint": constraints.CONSTRAINT,
    "index": constraints.INDEX,
    "statistics": attached.STATISTICS,
    "function": functions.FUNCTION,
    "aggregate": functions.AGGREGATE,
    "operator": operators.OPERATOR,
    "operator family": operators.OPERATOR_FAMILY,
    "operator class": operators.OPERATOR_CLASS,
    "cast": operators.CAST,
    "conversion": operators.CONVERSION,
    "view": views.VIEW,
    "materialized view": views.MATERIALIZED_VIEW,
    "rule": attached.RULE,
    "trigger": attached.TRIGGER,
    "policy": attached.POLICY,
    "event trigger": attached.EVENT_TRIGGER,
    "publication": database_wide.PUBLICATION,
    "default privileges": database_wide.DEFAULT_PRIVILEGES,
    **dict.fromkeys(unchangeable.NAMES, unchangeable.UNCHANGEABLE),
}

__all__ = ["KINDS", "Alteration", "Kind", "Scene", "Step"]
