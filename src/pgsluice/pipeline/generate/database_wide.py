"""Default privileges, publications, foreign data wrappers, servers and user mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsluice.pipeline.generate.decoration import grant_steps
from pgsluice.pipeline.generate.naming import ident, identity, literal, qualified
from pgsluice.pipeline.generate.step import Alteration, Kind, Scene, Step, changed
from pgsluice.pipeline.generate.tables import foreign_option_changes, foreign_options
from pgsluice.pipeline.statement import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.snapshot import Object, Snapshot, Value

LETTER_OF = {"TABLES": "r", "SEQUENCES": "s", "FUNCTIONS": "f", "TYPES": "T", "SCHEMAS": "n"}


def _starting(obj: Object, snapshot: Snapshot) -> Sequence[Value]:
    """Privileges where nothing was altered: the kind's own for the whole database, none in one schema."""
    return () if obj.path[0] else snapshot.implied_grants.get(LETTER_OF.get(obj.path[2], ""), ())


def _default_privileges(
    have: Sequence[Value], want: Sequence[Value], obj: Object, scene: Scene
) -> list[Step]:
    schema, owner, kind = obj.path
    head = "ALTER DEFAULT PRIVILEGES"
    if owner != "@runner":
        head += f" FOR ROLE {ident(owner)}"
    if schema:
        head += f" IN SCHEMA {ident(schema)}"
    implied = scene.after.implied_grants.get(LETTER_OF.get(kind, ""), ())
    whole = sum(1 for grant in implied if grant[0] == "@owner")
    owner_name = None if owner == "@runner" else owner
    mine = [[owner_name if grant[0] == "@owner" and owner_name else grant[0], *grant[1:]] for grant in have]
    theirs = [[owner_name if grant[0] == "@owner" and owner_name else grant[0], *grant[1:]] for grant in want]
    return grant_steps(mine, theirs, on=kind, whole=whole if whole > 1 else 0, head=f"{head} ")


def _create_privileges(new: Object, scene: Scene) -> list[Step]:
    return _default_privileges(_starting(new, scene.before), new.get("privileges"), new, scene)


def _drop_privileges(old: Object, scene: Scene) -> list[Step]:
    return _default_privileges(old.get("privileges"), _starting(old, scene.after), old, scene)


def _alter_privileges(old: Object, new: Object, scene: Scene) -> Alteration:
    return Alteration(tuple(_default_privileges(old.get("privileges"), new.get("privileges"), new, scene)))


def _drop(old: Object, scene: Scene) -> list[Step]:
    return [Step(f"DROP {identity(old)}", Phase.RETIRE)]


def _members(new: Object) -> str:
    if new.get("all_tables"):
        return "FOR ALL TABLES"
    parts = []
    for schema, table, columns, condition in new.get("tables") or []:
        text = qualified((schema, table))
        text += f" ({', '.join(map(ident, columns))})" if columns else ""
        text += f" WHERE ({condition})" if condition else ""
        parts.append(f"TABLE {text}")
    parts += [f"TABLES IN SCHEMA {ident(schema)}" for schema in new.get("schemas") or []]
    return f"FOR {', '.join(parts)}" if parts else ""


def _publication_words(new: Object) -> str:
    words = [
        f"publish = {literal(new.get('publish') or '')}",
        f"publish_via_partition_root = {str(bool(new.get('via_root'))).lower()}",
    ]
    if new.get("generated_columns"):
        words.append("publish_generated_columns = stored")
    return ", ".join(words)


def _create_publication(new: Object, scene: Scene) -> list[Step]:
    members = _members(new)
    lines = [
        f"CREATE PUBLICATION {ident(new.path[0])}",
        *([members] if members else []),
        f"WITH ({_publication_words(new)})",
    ]
    return [Step("\n  ".join(lines), Phase.INSTALL)]


def _alter_publication(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    members = _members(new).removeprefix("FOR ")
    if "all_tables" in facets or (facets & {"tables", "schemas"} and not members):
        return None
    head, steps = f"ALTER PUBLICATION {ident(new.path[0])}", []
    if facets & {"tables", "schemas"}:
        steps.append(Step(f"{head} SET {members}", Phase.INSTALL))
    if facets & {"publish", "via_root", "generated_columns"}:
        steps.append(Step(f"{head} SET ({_publication_words(new)})", Phase.INSTALL))
    return Alteration(tuple(steps))


def relist(new: Object) -> Step:
    """List the members of a publication again, after tables among them were made anew."""
    members = _members(new).removeprefix("FOR ")
    return Step(f"ALTER PUBLICATION {ident(new.path[0])} SET {members}", Phase.INSTALL)


def _create_wrapper(new: Object, scene: Scene) -> list[Step]:
    words = [f"CREATE FOREIGN DATA WRAPPER {ident(new.path[0])}"]
    words += [f"{word} {new.get(word.lower())}" for word in ("HANDLER", "VALIDATOR") if new.get(word.lower())]
    return [Step(" ".join(words) + foreign_options(new.get("options") or {}), Phase.EXPAND)]


def _create_server(new: Object, scene: Scene) -> list[Step]:
    words = [f"CREATE SERVER {ident(new.path[0])}"]
    words += [f"{facet.upper()} {literal(new.get(facet))}" for facet in ("type", "version") if new.get(facet)]
    words.append(f"FOREIGN DATA WRAPPER {ident(new.get('wrapper'))}")
    return [Step(" ".join(words) + foreign_options(new.get("options") or {}), Phase.EXPAND)]


def _create_mapping(new: Object, scene: Scene) -> list[Step]:
    return [Step(f"CREATE {identity(new)}{foreign_options(new.get('options') or {})}", Phase.INSTALL)]


def _alter_foreign(old: Object, new: Object, scene: Scene) -> Alteration | None:
    facets = changed(old, new)
    if facets == {"options"}:
        clause = foreign_option_changes(old.get("options") or {}, new.get("options") or {})
        return Alteration((Step(f"ALTER {identity(new)} {clause}", Phase.INSTALL),))
    return None if facets else Alteration()


DEFAULT_PRIVILEGES = Kind(_create_privileges, _drop_privileges, _alter_privileges)
PUBLICATION = Kind(_create_publication, _drop, _alter_publication)
WRAPPER = Kind(_create_wrapper, _drop, _alter_foreign)
SERVER = Kind(_create_server, _drop, _alter_foreign)
USER_MAPPING = Kind(_create_mapping, _drop, _alter_foreign)
