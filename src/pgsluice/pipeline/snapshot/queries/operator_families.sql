-- Operator families and the operators and functions that belong to them rather than to a class.
select
  'pg_opfamily'::regclass::oid as classid,
  f.oid as objid,
  0 as objsubid,
  'operator family' as kind,
  array[n.nspname::text, f.opfname::text, m.amname::text] as path,
  jsonb_build_object(
    'owner', nullif(pg_get_userbyid(f.opfowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = f.oid and e.classoid = 'pg_opfamily'::regclass and e.objsubid = 0)
  ) as facets
from pg_opfamily as f
join pg_namespace as n on n.oid = f.opfnamespace
join pg_am as m on m.oid = f.opfmethod
where n.nspname = any(%(schemas)s)
