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
    'roles', (select jsonb_agg(case u.role when 0 then null else pg_get_userbyid(u.role) end) from unnest(p.polroles) as u (role)),
    'using', pg_get_expr(p.polqual, p.polrelid),
    'check', pg_get_expr(p.polwithcheck, p.polrelid),
    'comment', obj_description(p.oid, 'pg_policy')
  ) as facets
from pg_policy as p
join pg_class as c on c.oid = p.polrelid
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s)
