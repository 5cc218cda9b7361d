-- Enums, composites, domains, ranges and base types.
select
  'pg_type'::regclass::oid as classid,
  t.oid as objid,
  0 as objsubid,
  case t.typtype when 'e' then 'enum' when 'c' then 'composite' when 'd' then 'domain' when 'r' then 'range'
    else 'base type' end as kind,
  array[n.nspname::text, t.typname::text] as path,
  jsonb_build_object(
    'labels', case when t.typtype = 'e' then (
      select jsonb_agg(e.enumlabel order by e.enumsortorder) from pg_enum as e where e.enumtypid = t.oid) end,
    'attributes', case when t.typtype = 'c' then (
      select jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod), (
          select jsonb_build_array(cn.nspname, co.collname)
          from pg_type as at, pg_collation as co join pg_namespace as cn on cn.oid = co.collnamespace
          where at.oid = a.atttypid and co.oid = a.attcollation and a.attcollation <> at.typcollation)) order by a.attnum)
      from pg_attribute as a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) end,
    'column_comments', case when t.typtype = 'c' then (
      select jsonb_object_agg(a.attname, d.description)
      from pg_description as d join pg_attribute as a on a.attrelid = d.objoid and a.attnum = d.objsubid
      where d.classoid = 'pg_class'::regclass and d.objoid = t.typrelid and d.objsubid > 0) end,
    'type', case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end,
    'collation', case when t.typtype = 'd' then (
      select jsonb_build_array(cn.nspname, co.collname)
      from pg_type as b, pg_collation as co join pg_namespace as cn on cn.oid = co.collnamespace
      where b.oid = t.typbasetype and co.oid = t.typcollation and t.typcollation <> b.typcollation) end,
    'not_null', case when t.typtype = 'd' then nullif(t.typnotnull, false) end,
    'not_null_name', case when t.typtype = 'd' then (select k.conname from pg_constraint as k
      where k.contypid = t.oid and k.contype = 'n' and k.conname <> t.typname || '_not_null') end,
    'default', case when t.typtype = 'd' then coalesce(pg_get_expr(t.typdefaultbin, 'pg_type'::regclass), t.typdefault) end,
    'range', case when t.typtype = 'r' then (
      select jsonb_strip_nulls(jsonb_build_object(
        'subtype', format_type(r.rngsubtype, null),
        'subtype_opclass', case when not o.opcdefault then quote_ident(opn.nspname) || '.' || quote_ident(o.opcname) end,
        'collation', (select quote_ident(cn.nspname) || '.' || quote_ident(co.collname)
          from pg_collation as co join pg_namespace as cn on cn.oid = co.collnamespace
          join pg_type as st on st.oid = r.rngsubtype
          where co.oid = r.rngcollation and r.rngcollation <> st.typcollation),
        'canonical', nullif(r.rngcanonical::text, '-'),
        'subtype_diff', nullif(r.rngsubdiff::text, '-'),
        'multirange_type_name', (select quote_ident(mn.nspname) || '.' || quote_ident(m.typname)
          from pg_type as m join pg_namespace as mn on mn.oid = m.typnamespace where m.oid = r.rngmultitypid)))
      from pg_range as r
      join pg_opclass as o on o.oid = r.rngsubopc
      join pg_namespace as opn on opn.oid = o.opcnamespace
      where r.rngtypid = t.oid) end,
    '#multirange', case when t.typtype = 'r' then (
      select jsonb_build_array(mn.nspname, m.typname)
      from pg_range as r join pg_type as m on m.oid = r.rngmultitypid join pg_namespace as mn on mn.oid = m.typnamespace
      where r.rngtypid = t.oid) end,
    'base', case when t.typtype = 'b' or t.typtype = 'p' then jsonb_build_array(
      t.typinput::text, t.typoutput::text, t.typreceive::text, t.typsend::text, t.typmodin::text, t.typmodout::text,
      t.typlen, t.typbyval, t.typalign, t.typstorage, t.typcategory, t.typispreferred, t.typdelim, t.typdefault) end,
    'owner', nullif(pg_get_userbyid(t.typowner), %(runner)s::name),
    'grants', case when t.typacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when t.typowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(t.typacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = t.oid and e.classoid = 'pg_type'::regclass and e.objsubid = 0)
  ) as facets
from pg_type as t
join pg_namespace as n on n.oid = t.typnamespace
left join pg_class as c on c.oid = t.typrelid
where n.nspname = any(%(schemas)s)
  and t.typtype in ('e', 'c', 'd', 'r', 'b', 'p')
  and (t.typrelid = 0 or c.relkind = 'c')
  and not (t.typtype = 'b' and t.typelem <> 0 and exists (select from pg_type as e where e.oid = t.typelem and e.typarray = t.oid))
