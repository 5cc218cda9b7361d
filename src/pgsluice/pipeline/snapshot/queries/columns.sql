-- Columns of tables, partitioned tables and foreign tables, with identity and generation.
select
  'pg_class'::regclass::oid as classid,
  c.oid as objid,
  a.attnum::int as objsubid,
  'column' as kind,
  array[n.nspname::text, c.relname::text, a.attname::text] as path,
  jsonb_build_object(
    '#position', a.attnum,
    'type', format_type(a.atttypid, a.atttypmod),
    'collation', (select jsonb_build_array(cn.nspname, co.collname)
      from pg_type as t, pg_collation as co join pg_namespace as cn on cn.oid = co.collnamespace
      where t.oid = a.atttypid and co.oid = a.attcollation and a.attcollation <> t.typcollation),
    'not_null', nullif(a.attnotnull, false),
    'identity', case a.attidentity when 'a' then 'always' when 'd' then 'by default' end,
    'sequence', case when a.attidentity <> '' then (
      select jsonb_build_object('name', sc.relname, 'schema', sn.nspname, 'type', format_type(s.seqtypid, null),
        'start', s.seqstart, 'increment', s.seqincrement, 'minimum', s.seqmin, 'maximum', s.seqmax,
        'cache', s.seqcache, 'cycle', s.seqcycle, 'persistence', nullif(sc.relpersistence, c.relpersistence),
        'comment', (select e.description from pg_description as e
      where e.objoid = sc.oid and e.classoid = 'pg_class'::regclass and e.objsubid = 0),
        'grants', case when sc.relacl is not null then coalesce((select jsonb_agg(jsonb_build_array(
            case x.grantee when sc.relowner then '@owner' when 0 then null else pg_get_userbyid(x.grantee) end,
            x.privilege_type, x.is_grantable)) from aclexplode(sc.relacl) as x), '[]') end)
      from pg_depend as d join pg_class as sc on sc.oid = d.objid join pg_namespace as sn on sn.oid = sc.relnamespace
      join pg_sequence as s on s.seqrelid = sc.oid
      where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid
        and d.refobjsubid = a.attnum and d.deptype = 'i') end,
    'generated', case when a.attgenerated <> '' then jsonb_build_array(
      case a.attgenerated when 's' then 'stored' else 'virtual' end, (
        select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef as d where d.adrelid = c.oid and d.adnum = a.attnum)) end,
    'storage', case when a.attstorage <> t.typstorage then case a.attstorage
      when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end end,
    '#type_storage', case t.typstorage when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end,
    'compression', case a.attcompression when 'p' then 'pglz' when 'l' then 'lz4' end,
    'statistics', case when coalesce(a.attstattarget, -1) >= 0 then a.attstattarget end,
    'options', (select jsonb_object_agg(o.option_name, o.option_value) from pg_options_to_table(a.attoptions) as o),
    'fdw_options', (select jsonb_object_agg(o.option_name, o.option_value) from pg_options_to_table(a.attfdwoptions) as o),
    'inherited', case when a.attinhcount > 0 then case when a.attislocal then 'merged' else 'only' end end,
    'grants', case when a.attacl is not null and a.attacl <> '{}' then (
      select jsonb_agg(jsonb_build_array(
        case x.grantee when c.relowner then '@owner' when 0 then null else pg_get_userbyid(x.grantee) end,
        x.privilege_type, x.is_grantable))
      from aclexplode(a.attacl) as x) end,
    'comment', (select e.description from pg_description as e
      where e.objoid = c.oid and e.classoid = 'pg_class'::regclass and e.objsubid = a.attnum)
  ) as facets
from pg_attribute as a
join pg_class as c on c.oid = a.attrelid
join pg_namespace as n on n.oid = c.relnamespace
join pg_type as t on t.oid = a.atttypid
where n.nspname = any(%(schemas)s)
  and c.relkind in ('r', 'p', 'f')
  and c.relpersistence <> 't'
  and a.attnum > 0
  and not a.attisdropped
