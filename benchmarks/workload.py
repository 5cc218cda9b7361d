"""The schemas that the benchmarks measure: the same bytes for the same number of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FUNCTION_EVERY: Final = 4
VIEW_EVERY: Final = 4

TABLE: Final = """\
create table app.{name} (
  {name}_id bigint generated always as identity,
{parent}  code text not null,
  label text,
{extra}  amount numeric(12, 2) not null default 0,
  is_active boolean not null default true,
  details jsonb not null default '{{}}',
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  constraint {name}_pkey primary key ({name}_id),
  constraint {name}_code_key unique (code){key},
  constraint {name}_amount_not_negative check (amount >= 0)
);

create index {name}_created_idx on app.{name} (created_at);
create index {name}_active_idx on app.{name} (label, updated_at) where is_active;

comment on table app.{name} is 'Records of kind {number}.';
comment on column app.{name}.details is 'What has no column of its own.';
"""
FOREIGN_KEY: Final = """,
  constraint {name}_{parent}_fkey foreign key ({parent}_id)
  references app.{parent} ({parent}_id)"""
FUNCTION: Final = """\
create function app.touch_{name}(p_id bigint, p_label text default null)
returns timestamptz
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_now timestamptz;
begin
  update app.{name} as t
  set updated_at = clock_timestamp(), label = coalesce(p_label, t.label)
  where t.{name}_id = p_id and t.is_active
  returning t.updated_at into v_now;

  if not found then
    raise exception using
      errcode = 'no_data_found',
      message = format('no active record %s', p_id);
  end if;
  return v_now;
end;
$$;
"""
VIEW: Final = """\
create view app.active_{name} as
select t.{name}_id, t.code, t.label, t.amount, coalesce(t.updated_at, t.created_at) as changed_at
from app.{name} as t
where t.is_active and t.amount > 0;
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """A schema of `tables` tables, with a function for each fourth and a view on each fourth of them."""

    tables: int

    def files(self, *, changed: str | None = None) -> dict[str, str]:
        """The schema files by name; `changed` adds a column of that name to a table in the middle."""
        files = {"app.sql": "create schema app;\n"}
        for number in range(self.tables):
            name = self._name(number)
            extra = f"  {changed} text,\n" if changed and number == self.tables // 2 else ""
            files[f"tables/{name}.sql"] = self._table(number, extra)
            if number % FUNCTION_EVERY == 0:
                files[f"functions/touch_{name}.sql"] = FUNCTION.format(name=name)
            if number % VIEW_EVERY == 1:
                files[f"views/active_{name}.sql"] = VIEW.format(name=name)
        return files

    def script(self, *, changed: str | None = None) -> str:
        """The same schema as one script that loads in its order."""
        files = self.files(changed=changed)
        order = ("app.sql", "tables/", "functions/", "views/")
        return "\n".join(files[name] for start in order for name in files if name.startswith(start))

    def write(self, folder: Path, *, changed: str | None = None) -> None:
        """Write the schema files below a folder, over those that are there."""
        for name, text in self.files(changed=changed).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def _name(self, number: int) -> str:
        return f"item_{number:04d}"

    def _table(self, number: int, extra: str) -> str:
        name = self._name(number)
        parent = self._name(number // 2) if number else ""
        return TABLE.format(
            name=name,
            number=number,
            extra=extra,
            parent=f"  {parent}_id bigint,\n" if parent else "",
            key=FOREIGN_KEY.format(name=name, parent=parent) if parent else "",
        )
