-- Says whether a flow or a step may bear this slug.
-- Locks: nothing.
-- The C collation keeps ranges to ASCII and compares by byte, whatever collation the argument has.
-- A dollar sign matches at the very end only, not before a last line feed.
create function pgflow.is_valid_slug(slug text)
returns boolean
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    is_valid_slug.slug collate "C" ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$'
    and is_valid_slug.slug collate "C" <> 'run',
    false
  );
$$;

comment on function pgflow.is_valid_slug(text) is
'True for 1 to 128 ASCII letters, digits, underscores, no digit first, and not run; null is false.';
