-- Table constraints; a not-null constraint of PostgreSQL 18 only where its name or form was written by hand.
select
  'pg_constraint'::regclass::oid as classid,
  k.oid as objid,
  0 as objsubid,
  'constraint' as kind,
  array[n.nspname::text, c.relname::text, k.conname::text] as path,
  jsonb_build_object(
    '#index', nullif(k.conindid, 0)::bigint,
    'type', k.contype,
    'definition', pg_get_constraintdef(k.oid),
    'columns', (select jsonb_agg(a.attname order by u.position) from unnest(k.conkey) with ordinality as u (attnum, position)
      join pg_attribute as a on a.attrelid = k.conrelid and a.attnum = u.attnum),
    'references', case when k.contype = 'f' then (
      select jsonb_build_array(fn.nspname, f.relname, (
        select jsonb_agg(a.attname order by u.position)
        from unnest(k.confkey) with ordinality as u (attnum, position)
        join pg_attribute as a on a.attrelid = k.confrelid and a.attnum = u.attnum))
      from pg_class as f join pg_namespace as fn on fn.oid = f.relnamespace where f.oid = k.confrelid) end,
    'not_valid', nullif(not k.convalidated, false),
    'inherited', case when k.conparentid <> 0 or k.coninhcount > 0 then
      case when k.conislocal and k.conparentid = 0 then 'merged' else 'only' end end,
    '#parent_name', (select pk.conname from pg_constraint as pk where pk.oid = k.conparentid),
    'index_options', case when k.contype in ('p', 'u', 'x') then (
      select jsonb_object_agg(o.option_name, o.option_value)
      from pg_class as ic, pg_options_to_table(ic.reloptions) as o where ic.oid = k.conindid) end,
    'index_tablespace', case when k.contype in ('p', 'u', 'x') then (
      select s.spcname from pg_class as ic join pg_tablespace as s on s.oid = ic.reltablespace where ic.oid = k.conindid) end,
    'index_comment', case when k.contype in ('p', 'u', 'x') then (select e.description from pg_description as e
      where e.objoid = k.conindid and e.classoid = 'pg_class'::regclass and e.objsubid = 0) end,
    'index_invalid', case when k.contype in ('p', 'u', 'x') then (
      select nullif(not x.indisvalid, false) from pg_index as x where x.indexrelid = k.conindid) end,
    'index_statistics', case when k.contype = 'x' then (select jsonb_object_agg(a.attnum, a.attstattarget)
      from pg_attribute as a where a.attrelid = k.conindid and coalesce(a.attstattarget, -1) >= 0) end,
    -- the triggers that watch over it can be disabled, and then nobody does
    'triggers', case when k.contype in ('f', 'p', 'u', 'x') then (
      select jsonb_agg(distinct jsonb_build_array(gn.nspname, gc.relname,
        case g.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end))
      from pg_trigger as g
      join pg_class as gc on gc.oid = g.tgrelid
      join pg_namespace as gn on gn.oid = gc.relnamespace
      where g.tgconstraint = k.oid and g.tgenabled <> 'O') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = k.oid and e.classoid = 'pg_constraint'::regclass and e.objsubid = 0)
  ) as facets
from pg_constraint as k
join pg_class as c on c.oid = k.conrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s)
  and c.relpersistence <> 't'
  and k.contype in ('c', 'f', 'p', 'u', 'x', 'n')
  and (
    k.contype <> 'n' or not k.convalidated or k.connoinherit or (select e.description from pg_description as e
      where e.objoid = k.oid and e.classoid = 'pg_constraint'::regclass and e.objsubid = 0) is not null
    or k.conname <> c.relname || '_' || (
      select a.attname from pg_attribute as a where a.attrelid = c.oid and a.attnum = k.conkey[1]) || '_not_null')
  -- a key to a partitioned table has a row for each partition that it points into: part of the key
  and not exists (select from pg_constraint as pk where pk.oid = k.conparentid and pk.conrelid = k.conrelid)
