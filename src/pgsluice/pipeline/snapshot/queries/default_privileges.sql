-- Default privileges, of the managed schemas and, for a target that manages all, of the whole database.
select
  'pg_default_acl'::regclass::oid as classid,
  d.oid as objid,
  0 as objsubid,
  'default privileges' as kind,
  array[coalesce(n.nspname::text, ''), case when pg_get_userbyid(d.defaclrole) = %(runner)s::name then '@runner'
    else pg_get_userbyid(d.defaclrole)::text end,
    case d.defaclobjtype when 'r' then 'TABLES' when 'S' then 'SEQUENCES' when 'f' then 'FUNCTIONS' when 'T' then 'TYPES'
      when 'n' then 'SCHEMAS' else 'LARGE OBJECTS' end] as path,
  jsonb_build_object(
    'privileges', coalesce((
      select jsonb_agg(jsonb_build_array(
        case when a.grantee = d.defaclrole then '@owner' when a.grantee = 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(d.defaclacl) as a), '[]')
  ) as facets
from pg_default_acl as d
left join pg_namespace as n on n.oid = d.defaclnamespace
where n.nspname = any(%(schemas)s) or (n.nspname is null and %(whole)s)
