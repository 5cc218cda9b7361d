-- Indexes that no constraint owns.
select
  'pg_class'::regclass::oid as classid,
  i.oid as objid,
  0 as objsubid,
  'index' as kind,
  array[n.nspname::text, i.relname::text] as path,
  jsonb_build_object(
    '#table', jsonb_build_array(tn.nspname, t.relname),
    '#table_kind', t.relkind,
    'definition', pg_get_indexdef(i.oid),
    'unique', nullif(x.indisunique, false),
    '#columns', (select jsonb_agg(pg_get_indexdef(i.oid, position, true) order by position)
      from generate_series(1, x.indnkeyatts) as position),
    '#predicate', pg_get_expr(x.indpred, x.indrelid),
    '#nulls_not_distinct', nullif(x.indnullsnotdistinct, false),
    'tablespace', (select s.spcname from pg_tablespace as s where s.oid = i.reltablespace),
    'invalid', nullif(not x.indisvalid, false),
    'parent', (select jsonb_build_array(pn.nspname, p.relname) from pg_inherits as h
      join pg_class as p on p.oid = h.inhparent join pg_namespace as pn on pn.oid = p.relnamespace
      where h.inhrelid = i.oid),
    'column_statistics', (select jsonb_object_agg(a.attnum, a.attstattarget) from pg_attribute as a
      where a.attrelid = i.oid and coalesce(a.attstattarget, -1) >= 0),
    'extensions', (select jsonb_agg(e.extname order by e.extname collate "C")
      from pg_depend as d join pg_extension as e on e.oid = d.refobjid
      where d.classid = 'pg_class'::regclass and d.objid = i.oid and d.refclassid = 'pg_extension'::regclass
        and d.deptype = 'x'),
    'comment', (select e.description from pg_description as e
      where e.objoid = i.oid and e.classoid = 'pg_class'::regclass and e.objsubid = 0)
  ) as facets
from pg_index as x
join pg_class as i on i.oid = x.indexrelid
join pg_namespace as n on n.oid = i.relnamespace
join pg_class as t on t.oid = x.indrelid
join pg_namespace as tn on tn.oid = t.relnamespace
where tn.nspname = any(%(schemas)s)
  and t.relkind in ('r', 'p', 'm')
  and t.relpersistence <> 't'
  and not exists (
    select from pg_constraint as k
    where k.conindid = i.oid and k.conrelid = t.oid and k.contype in ('p', 'u', 'x'))
