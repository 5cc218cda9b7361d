-- Row-level security policies.
select
  'pg_policy'::regclass::oid as classid,
  p.oid as objid,
  0 as objsubid,
  'policy' as kind,
  array[n.nspname::text, c.relname::text, p.polname::text] as path,
  jsonb_build_object(
    'command', case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE'
      else 'ALL' end,
    'restrictive', nullif(not p.polpermissive, false),
    'roles', (
      select jsonb_agg(r.name order by r.name collate "C")
      from (select case u.role when 0 then null else pg_get_userbyid(u.role)::text end as name
        from unnest(p.polroles) as u (role)) as r),
    'using', pg_get_expr(p.polqual, p.polrelid),
    'check', pg_get_expr(p.polwithcheck, p.polrelid),
    'comment', (select e.description from pg_description as e
      where e.objoid = p.oid and e.classoid = 'pg_policy'::regclass and e.objsubid = 0)
  ) as facets
from pg_policy as p
join pg_class as c on c.oid = p.polrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s)
