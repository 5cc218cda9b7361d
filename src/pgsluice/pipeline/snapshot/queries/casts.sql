-- Casts that touch a type or function of the managed schemas.
select
  'pg_cast'::regclass::oid as classid,
  k.oid as objid,
  0 as objsubid,
  'cast' as kind,
  array[format_type(k.castsource, null), format_type(k.casttarget, null)] as path,
  jsonb_build_object(
    'function', case when k.castfunc <> 0 then k.castfunc::regprocedure::text end,
    'context', case k.castcontext when 'a' then 'assignment' when 'i' then 'implicit' end,
    'method', case k.castmethod when 'i' then 'inout' when 'b' then 'binary' end,
    'comment', (select e.description from pg_description as e
      where e.objoid = k.oid and e.classoid = 'pg_cast'::regclass and e.objsubid = 0)
  ) as facets
from pg_cast as k
join pg_type as s on s.oid = k.castsource
join pg_namespace as sn on sn.oid = s.typnamespace
join pg_type as t on t.oid = k.casttarget
join pg_namespace as tn on tn.oid = t.typnamespace
left join pg_proc as f on f.oid = k.castfunc
left join pg_namespace as fn on fn.oid = f.pronamespace
where k.oid >= 16384
  and not exists (
    select from pg_depend as d
    where d.classid = 'pg_cast'::regclass and d.objid = k.oid and d.deptype = 'i' and d.refclassid = 'pg_type'::regclass)
  and (sn.nspname = any(%(schemas)s) or tn.nspname = any(%(schemas)s) or fn.nspname = any(%(schemas)s))
