-- Schemas: who owns them, who may use them.
select
  'pg_namespace'::regclass::oid as classid,
  n.oid as objid,
  0 as objsubid,
  'schema' as kind,
  array[n.nspname::text] as path,
  jsonb_build_object(
    'owner', nullif(pg_get_userbyid(n.nspowner), %(runner)s::name),
    'grants', case when n.nspacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when n.nspowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(n.nspacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = n.oid and e.classoid = 'pg_namespace'::regclass and e.objsubid = 0)
  ) as facets
from pg_namespace as n
where n.nspname = any(%(schemas)s)
