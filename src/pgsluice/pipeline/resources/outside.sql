-- What a target leaves alone: members of extensions, objects of schemas that it does not manage, and,
-- where it does not manage everything, what belongs to no schema.
with objects as (
  select 'pg_class'::regclass::oid as classid, c.oid as objid, n.nspname::text as schema,
    case c.relkind when 'v' then 'view ' when 'm' then 'materialized view ' when 'S' then 'sequence ' else 'table ' end
      || n.nspname || '.' || c.relname as name
  from pg_class as c
  join pg_namespace as n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    and c.relpersistence <> 't'
    and not exists (
      select from pg_depend as d
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i') and c.relkind = 'S')
  union all
  select 'pg_proc'::regclass, p.oid, n.nspname::text,
    'function ' || n.nspname || '.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')'
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
  union all
  select 'pg_type'::regclass, t.oid, n.nspname::text, 'type ' || n.nspname || '.' || t.typname
  from pg_type as t
  join pg_namespace as n on n.oid = t.typnamespace
  left join pg_class as c on c.oid = t.typrelid
  where t.typtype in ('e', 'c', 'd', 'r') and (t.typrelid = 0 or c.relkind = 'c')
  union all
  select wide.classid, wide.objid, null, wide.kind || ' ' || wide.name
  from (
    select 'pg_extension'::regclass, oid, 'extension', extname from pg_extension
    union all select 'pg_event_trigger'::regclass, oid, 'event trigger', evtname from pg_event_trigger
    union all select 'pg_publication'::regclass, oid, 'publication', pubname from pg_publication
    union all select 'pg_foreign_data_wrapper'::regclass, oid, 'foreign data wrapper', fdwname from pg_foreign_data_wrapper
    union all select 'pg_foreign_server'::regclass, oid, 'server', srvname from pg_foreign_server
  ) as wide (classid, objid, kind, name)
)
select
  case when d.refobjid is not null then 'extension ' || e.extname when o.schema is null then '' else 'schema ' || o.schema end
    as holder,
  array_agg(o.name order by o.name collate "C") as names
from objects as o
left join pg_depend as d
  on d.classid = o.classid and d.objid = o.objid and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
left join pg_extension as e on e.oid = d.refobjid
where o.objid >= 16384
  and (d.refobjid is not null or not %(whole)s)
  and (d.refobjid is not null or o.schema is null or not o.schema = any(%(manages)s))
  and coalesce(o.schema, '') not in ('pg_catalog', 'information_schema', 'pgsluice')
  and coalesce(o.schema, '') !~ '^pg_(toast|temp)'
group by 1
order by 1
