-- Encoding conversions.
select
  'pg_conversion'::regclass::oid as classid,
  c.oid as objid,
  0 as objsubid,
  'conversion' as kind,
  array[n.nspname::text, c.conname::text] as path,
  jsonb_build_object(
    'default', nullif(c.condefault, false),
    'from', pg_encoding_to_char(c.conforencoding),
    'to', pg_encoding_to_char(c.contoencoding),
    'function', c.conproc::text,
    'owner', nullif(pg_get_userbyid(c.conowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = c.oid and e.classoid = 'pg_conversion'::regclass and e.objsubid = 0)
  ) as facets
from pg_conversion as c
join pg_namespace as n on n.oid = c.connamespace
where n.nspname = any(%(schemas)s)
