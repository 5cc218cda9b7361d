-- Functions, procedures, window functions and aggregates.
select
  'pg_proc'::regclass::oid as classid,
  p.oid as objid,
  0 as objsubid,
  case p.prokind when 'a' then 'aggregate' else 'function' end as kind,
  array[n.nspname::text, p.proname::text, oidvectortypes(p.proargtypes)] as path,
  jsonb_build_object(
    'form', case p.prokind when 'p' then 'procedure' when 'w' then 'window' end,
    'definition', case when p.prokind <> 'a' then pg_get_functiondef(p.oid) end,
    '#result', case when p.prokind <> 'a' then pg_get_function_result(p.oid) end,
    '#names', to_jsonb(p.proargnames),
    '#types', (select jsonb_agg(format_type(u.oid, null) order by u.position)
      from unnest(p.proallargtypes) with ordinality as u (oid, position)),
    '#modes', to_jsonb(p.proargmodes::text[]),
    '#defaults', p.pronargdefaults,
    '#body', case when p.prosqlbody is null and l.lanname in ('sql', 'plpgsql') then p.prosrc end,
    '#language', l.lanname,
    'aggregate', case when p.prokind = 'a' then (
      select jsonb_strip_nulls(jsonb_build_object(
        'arguments', pg_get_function_arguments(p.oid),
        'kind', a.aggkind,
        'direct', nullif(a.aggnumdirectargs, 0),
        'sfunc', a.aggtransfn::text, 'stype', format_type(a.aggtranstype, null), 'sspace', nullif(a.aggtransspace, 0),
        'finalfunc', nullif(a.aggfinalfn::text, '-'), 'finalfunc_extra', nullif(a.aggfinalextra, false),
        'finalfunc_modify', a.aggfinalmodify, 'combinefunc', nullif(a.aggcombinefn::text, '-'),
        'serialfunc', nullif(a.aggserialfn::text, '-'), 'deserialfunc', nullif(a.aggdeserialfn::text, '-'),
        'initcond', a.agginitval,
        'msfunc', nullif(a.aggmtransfn::text, '-'), 'minvfunc', nullif(a.aggminvtransfn::text, '-'),
        'mstype', case when a.aggmtranstype <> 0 then format_type(a.aggmtranstype, null) end,
        'msspace', nullif(a.aggmtransspace, 0),
        'mfinalfunc', nullif(a.aggmfinalfn::text, '-'), 'mfinalfunc_extra', nullif(a.aggmfinalextra, false),
        'mfinalfunc_modify', case when a.aggmtransfn <> 0 then a.aggmfinalmodify end, 'minitcond', a.aggminitval,
        'sortop', case when a.aggsortop <> 0 then (
          select 'operator(' || quote_ident(opn.nspname) || '.' || o.oprname || ')'
          from pg_operator as o join pg_namespace as opn on opn.oid = o.oprnamespace where o.oid = a.aggsortop) end,
        'parallel', case p.proparallel when 's' then 'safe' when 'r' then 'restricted' end))
      from pg_aggregate as a where a.aggfnoid = p.oid) end,
    'extensions', (select jsonb_agg(e.extname order by e.extname collate "C")
      from pg_depend as d join pg_extension as e on e.oid = d.refobjid
      where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.refclassid = 'pg_extension'::regclass
        and d.deptype = 'x'),
    'owner', nullif(pg_get_userbyid(p.proowner), %(runner)s::name),
    'grants', case when p.proacl is not null then coalesce((
      select jsonb_agg(jsonb_build_array(
        case a.grantee when p.proowner then '@owner' when 0 then null else pg_get_userbyid(a.grantee) end,
        a.privilege_type, a.is_grantable))
      from aclexplode(p.proacl) as a), '[]') end,
    'comment', (select e.description from pg_description as e
      where e.objoid = p.oid and e.classoid = 'pg_proc'::regclass and e.objsubid = 0)
  ) as facets
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
join pg_language as l on l.oid = p.prolang
where n.nspname = any(%(schemas)s)
  and not exists (
    select from pg_depend as d
    where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'i' and d.refclassid = 'pg_type'::regclass)
