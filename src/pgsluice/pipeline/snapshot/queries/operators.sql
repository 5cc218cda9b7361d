-- Operators; a shell operator, left behind by a commutator named too early, is none.
select
  'pg_operator'::regclass::oid as classid,
  o.oid as objid,
  0 as objsubid,
  'operator' as kind,
  array[n.nspname::text, o.oprname::text, case o.oprleft when 0 then 'NONE' else format_type(o.oprleft, null) end,
    case o.oprright when 0 then 'NONE' else format_type(o.oprright, null) end] as path,
  jsonb_build_object(
    'function', o.oprcode::text,
    'commutator', nullif(o.oprcom::regoper::text, '0'),
    'negator', nullif(o.oprnegate::regoper::text, '0'),
    '#commutator_is_self', o.oprcom = o.oid,
    'restrict', nullif(o.oprrest::text, '-'),
    'join', nullif(o.oprjoin::text, '-'),
    'hashes', nullif(o.oprcanhash, false),
    'merges', nullif(o.oprcanmerge, false),
    'owner', nullif(pg_get_userbyid(o.oprowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = o.oid and e.classoid = 'pg_operator'::regclass and e.objsubid = 0)
  ) as facets
from pg_operator as o
join pg_namespace as n on n.oid = o.oprnamespace
where n.nspname = any(%(schemas)s) and o.oprcode <> 0
