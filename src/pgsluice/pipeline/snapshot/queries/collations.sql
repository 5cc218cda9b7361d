-- Collations; the column that holds an ICU or built-in locale has had three names.
select
  'pg_collation'::regclass::oid as classid,
  c.oid as objid,
  0 as objsubid,
  'collation' as kind,
  array[n.nspname::text, c.collname::text] as path,
  jsonb_build_object(
    'provider', case c.collprovider when 'i' then 'icu' when 'b' then 'builtin' else 'libc' end,
    'locale', coalesce(to_jsonb(c) ->> 'colllocale', to_jsonb(c) ->> 'colliculocale'),
    'lc_collate', c.collcollate,
    'lc_ctype', c.collctype,
    'rules', to_jsonb(c) ->> 'collicurules',
    'nondeterministic', nullif(not c.collisdeterministic, false),
    'owner', nullif(pg_get_userbyid(c.collowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = c.oid and e.classoid = 'pg_collation'::regclass and e.objsubid = 0)
  ) as facets
from pg_collation as c
join pg_namespace as n on n.oid = c.collnamespace
where n.nspname = any(%(schemas)s)
