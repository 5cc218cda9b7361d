-- Tables, partitioned and foreign tables, views and materialized views.
select
  'pg_class'::regclass::oid as classid,
  c.oid as objid,
  0 as objsubid,
  case c.relkind when 'v' then 'view' when 'm' then 'materialized view' else 'table' end as kind,
  array[n.nspname::text, c.relname::text] as path,
  jsonb_build_object(
    'form', case c.relkind when 'p' then 'partitioned' when 'f' then 'foreign' end,
    'persistence', case c.relpersistence when 'u' then 'unlogged' end,
    'options', (select jsonb_object_agg(o.option_name, o.option_value) from pg_options_to_table(c.reloptions) as o),
    '#option_order', to_jsonb((select array_agg(o.option_name) from pg_options_to_table(c.reloptions) as o)),
    'toast_options', (select jsonb_object_agg(o.option_name, o.option_value)
      from pg_class as t, pg_options_to_table(t.reloptions) as o where t.oid = c.reltoastrelid),
    'tablespace', (select s.spcname from pg_tablespace as s where s.oid = c.reltablespace),
    'access_method', (select a.amname from pg_am as a where a.oid = c.relam and a.amname <> 'heap'),
    'partition_key', case when c.relkind = 'p' then pg_get_partkeydef(c.oid) end,
    '#key_columns', case when c.relkind = 'p' then (
      select jsonb_agg(distinct a.attname) from pg_depend as d
      join pg_attribute as a on a.attrelid = c.oid and a.attnum = d.objsubid
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.objsubid > 0
        and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid = 0 and d.deptype = 'i') end,
    'parent', case when c.relispartition then (
      select jsonb_build_array(pn.nspname, p.relname) from pg_inherits as i
      join pg_class as p on p.oid = i.inhparent join pg_namespace as pn on pn.oid = p.relnamespace
      where i.inhrelid = c.oid) end,
    'bound', case when c.relispartition then pg_get_expr(c.relpartbound, c.oid) end,
    '#bound_condition', case when c.relispartition then pg_get_partition_constraintdef(c.oid) end,
    'detach_pending', case when c.relispartition then (
      select nullif(i.inhdetachpending, false) from pg_inherits as i where i.inhrelid = c.oid) end,
    'inherits', case when not c.relispartition then (
      select jsonb_agg(jsonb_build_array(pn.nspname, p.relname) order by i.inhseqno) from pg_inherits as i
      join pg_class as p on p.oid = i.inhparent join pg_namespace as pn on pn.oid = p.relnamespace
      where i.inhrelid = c.oid) end,
    'of_type', case when c.reloftype <> 0 then format_type(c.reloftype, null) end,
    'row_security', nullif(c.relrowsecurity, false),
    'force_row_security', nullif(c.relforcerowsecurity, false),
    'replica_identity', case when c.relkind in ('r', 'p') then case c.relreplident
      when 'n' then 'nothing' when 'f' then 'full' when 'i' then (
        select 'index ' || ic.relname from pg_index as x join pg_class as ic on ic.oid = x.indexrelid
        where x.indrelid = c.oid and x.indisreplident) end end,
    'clustered_on', (select ic.relname from pg_index as x join pg_class as ic on ic.oid = x.indexrelid
      where x.indrelid = c.oid and x.indisclustered),
    'server', (select s.srvname from pg_foreign_table as f join pg_foreign_server as s on s.oid = f.ftserver
      where f.ftrelid = c.oid),
    'server_options', (select jsonb_object_agg(o.option_name, o.option_value)
      from pg_foreign_table as f, pg_options_to_table(f.ftoptions) as o where f.ftrelid = c.oid),
    'definition', case when c.relkind in ('v', 'm') then pg_get_viewdef(c.oid) end,
    'unpopulated', case when c.relkind = 'm' then nullif(not c.relispopulated, false) end,
    'columns', case when c.relkind in ('v', 'm') then (
      select jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod),
        (select cn.nspname || '.' || co.collname from pg_collation as co join pg_namespace as cn on cn.oid = co.collnamespace
          where co.oid = a.attcollation)) order by a.attnum)
      from pg_attribute as a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) end,
    'column_defaults', case when c.relkind = 'v' then (
      select jsonb_object_agg(a.attname, pg_get_expr(d.adbin, d.adrelid))
      from pg_attrdef as d join pg_attribute as a on a.attrelid = d.adrelid and a.attnum = d.adnum
      where d.adrelid = c.oid) end,
    'column_comments', case when c.relkind in ('v', 'm') then (
      select jsonb_object_agg(a.attname, d.description)
      from pg_description as d join pg_attribute as a on a.attrelid = d.objoid and a.attnum = d.objsubid
      where d.classoid = 'pg_class'::regclass and d.objoid = c.oid and d.objsubid > 0) end,
    'column_statistics', case when c.relkind = 'm' then (
      select jsonb_object_agg(a.attname, a.attstattarget) from pg_attribute as a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and coalesce(a.attstattarget, -1) >= 0) end,
    'column_settings', case when c.relkind = 'm' then (
      select jsonb_object_agg(a.attname, jsonb_strip_nulls(jsonb_build_object(
        'storage', case when a.attstorage <> t.typstorage then case a.attstorage
          when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end end,
        'compression', case a.attcompression when 'p' then 'pglz' when 'l' then 'lz4' end,
        'options', (select jsonb_object_agg(o.option_name, o.option_value)
          from pg_options_to_table(a.attoptions) as o))))
      from pg_attribute as a join pg_type as t on t.oid = a.atttypid
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and (a.attstorage <> t.typstorage or a.attcompression <> '' or a.attoptions is not null)) end,
    '#column_storage', case when c.relkind = 'm' then (
      select jsonb_object_agg(a.attname, case t.typstorage
        when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end)
      from pg_attribute as a join pg_type as t on t.oid = a.atttypid
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) end,
    'extensions', case when c.relkind = 'm' then (select jsonb_agg(e.extname order by e.extname collate "C")
      from pg_depend as d join pg_extension as e on e.oid = d.refobjid
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_extension'::regclass
        and d.deptype = 'x') end,
    'column_grants', case when c.relkind in ('v', 'm') then (
      select jsonb_object_agg(a.attname, (
        select jsonb_agg(jsonb_build_array(
          case x.grantee when c.relowner then '@owner' when 0 then null else pg_get_userbyid(x.grantee) end,
          x.privilege_type, x.is_grantable)) from aclexplode(a.attacl) as x))
      from pg_attribute as a where a.attrelid = c.oid and a.attacl is not null and a.attacl <> '{}') end,
    'owner', nullif(pg_get_userbyid(c.relowner), %(runner)s::name),
    'grants', case when c.relacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when c.relowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(c.relacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = c.oid and e.classoid = 'pg_class'::regclass and e.objsubid = 0)
  ) as facets
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s)
  and c.relkind in ('r', 'p', 'f', 'v', 'm')
  and c.relpersistence <> 't'
