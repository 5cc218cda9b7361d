-- Rewrite rules, less the one behind each view.
select
  'pg_rewrite'::regclass::oid as classid,
  r.oid as objid,
  0 as objsubid,
  'rule' as kind,
  array[n.nspname::text, c.relname::text, r.rulename::text] as path,
  jsonb_build_object(
    'definition', pg_get_ruledef(r.oid),
    'enabled', case r.ev_enabled when 'D' then 'disable' when 'R' then 'enable replica' when 'A' then 'enable always' end,
    'comment', (select e.description from pg_description as e
      where e.objoid = r.oid and e.classoid = 'pg_rewrite'::regclass and e.objsubid = 0)
  ) as facets
from pg_rewrite as r
join pg_class as c on c.oid = r.ev_class
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and r.rulename <> '_RETURN'
