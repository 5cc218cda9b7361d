-- Triggers written by hand, constraint triggers included.
select
  'pg_trigger'::regclass::oid as classid,
  g.oid as objid,
  0 as objsubid,
  'trigger' as kind,
  array[n.nspname::text, c.relname::text, g.tgname::text] as path,
  jsonb_build_object(
    '#table_kind', c.relkind,
    'definition', pg_get_triggerdef(g.oid),
    'enabled', case g.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' when 'A' then 'enable always' end,
    'inherited', case when g.tgparentid <> 0 then 'only' end,
    'extensions', (select jsonb_agg(e.extname order by e.extname collate "C")
      from pg_depend as d join pg_extension as e on e.oid = d.refobjid
      where d.classid = 'pg_trigger'::regclass and d.objid = g.oid and d.refclassid = 'pg_extension'::regclass
        and d.deptype = 'x'),
    'comment', (select e.description from pg_description as e
      where e.objoid = g.oid and e.classoid = 'pg_trigger'::regclass and e.objsubid = 0)
  ) as facets
from pg_trigger as g
join pg_class as c on c.oid = g.tgrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and not g.tgisinternal and c.relpersistence <> 't'
