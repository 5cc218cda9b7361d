-- Sequences, less those behind identity columns.
select
  'pg_class'::regclass::oid as classid,
  c.oid as objid,
  0 as objsubid,
  'sequence' as kind,
  array[n.nspname::text, c.relname::text] as path,
  jsonb_build_object(
    'type', format_type(s.seqtypid, null),
    'start', s.seqstart,
    'increment', s.seqincrement,
    'minimum', s.seqmin,
    'maximum', s.seqmax,
    'cache', s.seqcache,
    'cycle', s.seqcycle,
    'persistence', case c.relpersistence when 'u' then 'unlogged' end,
    'owned_by', owned.path,
    'owner', case when owned.path is null then nullif(pg_get_userbyid(c.relowner), %(runner)s::name) end,
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
join pg_sequence as s on s.seqrelid = c.oid
left join lateral (
  select jsonb_build_array(tn.nspname, t.relname, a.attname) as path
  from pg_depend as d
  join pg_class as t on t.oid = d.refobjid
  join pg_namespace as tn on tn.oid = t.relnamespace
  join pg_attribute as a on a.attrelid = t.oid and a.attnum = d.refobjsubid
  where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass and d.deptype = 'a'
) as owned on true
where n.nspname = any(%(schemas)s)
  and c.relpersistence <> 't'
  and not exists (
    select from pg_depend as d
    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass and d.deptype = 'i')
