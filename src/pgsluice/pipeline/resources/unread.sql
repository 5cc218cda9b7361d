-- What a database has that no schema file and no migration can say, with the reason.
-- Of settings the names alone: a value may be a key that an application reads.
select found.what, found.reason
from (
  select 1 as kind, 'subscription ' || s.subname as what, 'it belongs to a connection, not to a schema' as reason
  from pg_catalog.pg_subscription as s
  join pg_catalog.pg_database as d on d.oid = s.subdbid
  where d.datname = pg_catalog.current_database() and %(whole)s
  union all
  select 2, case pg_catalog.count(*) when 1 then '1 large object' else pg_catalog.count(*) || ' large objects' end,
    'rows are not adopted'
  from pg_catalog.pg_largeobject_metadata
  where %(whole)s
  having pg_catalog.count(*) > 0
  union all
  select 3, 'tablespace ' || t.spcname || ' of '
    || case pg_catalog.count(*) when 1 then pg_catalog.min(n.nspname || '.' || c.relname)
      else pg_catalog.count(*) || ' tables and indexes' end,
    'it belongs to the server: migrations use the default one'
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
  join pg_catalog.pg_tablespace as t on t.oid = c.reltablespace
  where n.nspname !~ '^pg_' and (%(whole)s or n.nspname = any(%(manages)s))
  group by t.spcname
  union all
  select 4, case pg_catalog.count(*) when 1 then '1 security label' else pg_catalog.count(*) || ' security labels' end
    || ' of ' || l.provider, 'nothing here knows its provider'
  from pg_catalog.pg_seclabel as l
  where %(whole)s
  group by l.provider
  union all
  select 5, 'setting ' || pg_catalog.split_part(one.setting, '=', 1) || ' of '
    || case when r.rolname is null then 'the database' else 'role ' || r.rolname || ' in it' end,
    'it belongs to the server: alter database, alter role'
  from pg_catalog.pg_db_role_setting as s
  join pg_catalog.pg_database as d on d.oid = s.setdatabase
  left join pg_catalog.pg_roles as r on r.oid = s.setrole
  cross join lateral pg_catalog.unnest(s.setconfig) as one (setting)
  where d.datname = pg_catalog.current_database() and %(whole)s
) as found
order by found.kind, found.what
