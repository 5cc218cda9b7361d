-- Column defaults: objects of their own, since what they call comes and goes without the column.
select
  'pg_attrdef'::regclass::oid as classid,
  d.oid as objid,
  0 as objsubid,
  'default' as kind,
  array[n.nspname::text, c.relname::text, a.attname::text] as path,
  jsonb_build_object('expression', pg_get_expr(d.adbin, d.adrelid)) as facets
from pg_attrdef as d
join pg_class as c on c.oid = d.adrelid
join pg_namespace as n on n.oid = c.relnamespace
join pg_attribute as a on a.attrelid = c.oid and a.attnum = d.adnum
where n.nspname = any(%(schemas)s)
  and c.relkind in ('r', 'p', 'f')
  and c.relpersistence <> 't'
  and a.attgenerated = ''
