-- Grants on members of extensions, where they are not what the extension's script left.
select
  'pg_init_privs'::regclass::oid as classid,
  m.oid as objid,
  0 as objsubid,
  'extension member' as kind,
  array[e.extname::text, m.target] as path,
  jsonb_build_object(
    'grants', coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when m.owner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(m.acl) as a), '[]'),
    '#initial', coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when m.owner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(m.initial) as a), '[]')
  ) as facets
from (
  select p.oid, 'pg_proc'::regclass as classid, p.proowner as owner, p.proacl as acl,
    case p.prokind when 'p' then 'PROCEDURE ' else 'FUNCTION ' end || p.oid::regprocedure::text as target, 'f'::"char" as letter
  from pg_proc as p
  union all
  select c.oid, 'pg_class'::regclass, c.relowner, c.relacl,
    case c.relkind when 'S' then 'SEQUENCE ' else 'TABLE ' end || c.oid::regclass::text,
    case c.relkind when 'S' then 's' else 'r' end::"char"
  from pg_class as c where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
  union all
  select t.oid, 'pg_type'::regclass, t.typowner, t.typacl, 'TYPE ' || t.oid::regtype::text, 'T'
  from pg_type as t where t.typrelid = 0
  union all
  select w.oid, 'pg_foreign_data_wrapper'::regclass, w.fdwowner, w.fdwacl,
    'FOREIGN DATA WRAPPER ' || quote_ident(w.fdwname), 'F'
  from pg_foreign_data_wrapper as w
  union all
  select l.oid, 'pg_language'::regclass, l.lanowner, l.lanacl, 'LANGUAGE ' || quote_ident(l.lanname), 'l'
  from pg_language as l
) as o (oid, classid, owner, acl, target, letter)
join pg_depend as d on d.classid = o.classid and d.objid = o.oid and d.deptype = 'e'
join pg_extension as e on e.oid = d.refobjid and d.refclassid = 'pg_extension'::regclass
left join pg_init_privs as i on i.objoid = o.oid and i.classoid = o.classid and i.objsubid = 0
cross join lateral (
  select o.oid, o.owner, o.acl, o.target, coalesce(i.initprivs, acldefault(o.letter, o.owner)) as initial
) as m
where %(whole)s and (e.oid >= 16384 or o.letter = 'l') and o.acl is not null
  and array(select a::text from unnest(m.acl) as a order by a::text)
    <> array(select a::text from unnest(m.initial) as a order by a::text)
