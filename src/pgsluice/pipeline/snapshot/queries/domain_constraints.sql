-- Checks of domains.
select
  'pg_constraint'::regclass::oid as classid,
  k.oid as objid,
  0 as objsubid,
  'domain constraint' as kind,
  array[n.nspname::text, t.typname::text, k.conname::text] as path,
  jsonb_build_object(
    'definition', pg_get_constraintdef(k.oid),
    'not_valid', nullif(not k.convalidated, false),
    'comment', (select e.description from pg_description as e
      where e.objoid = k.oid and e.classoid = 'pg_constraint'::regclass and e.objsubid = 0)
  ) as facets
from pg_constraint as k
join pg_type as t on t.oid = k.contypid
join pg_namespace as n on n.oid = t.typnamespace
where n.nspname = any(%(schemas)s) and k.contype = 'c'
