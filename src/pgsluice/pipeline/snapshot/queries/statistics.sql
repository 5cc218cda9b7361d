-- Extended statistics.
select
  'pg_statistic_ext'::regclass::oid as classid,
  s.oid as objid,
  0 as objsubid,
  'statistics' as kind,
  array[n.nspname::text, s.stxname::text] as path,
  jsonb_build_object(
    '#definition', pg_get_statisticsobjdef(s.oid),
    'table', s.stxrelid::regclass::text,
    -- the definition lists columns as they stand in the table, which is no matter of the object's own
    'columns', (select jsonb_agg(a.attname order by a.attname) from unnest(s.stxkeys) as k (attnum)
      join pg_attribute as a on a.attrelid = s.stxrelid and a.attnum = k.attnum),
    'expressions', to_jsonb(pg_get_statisticsobjdef_expressions(s.oid)),
    'kinds', to_jsonb(s.stxkind::text[]),
    'target', case when coalesce(s.stxstattarget, -1) >= 0 then s.stxstattarget end,
    'owner', nullif(pg_get_userbyid(s.stxowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = s.oid and e.classoid = 'pg_statistic_ext'::regclass and e.objsubid = 0)
  ) as facets
from pg_statistic_ext as s
join pg_namespace as n on n.oid = s.stxnamespace
where n.nspname = any(%(schemas)s)
