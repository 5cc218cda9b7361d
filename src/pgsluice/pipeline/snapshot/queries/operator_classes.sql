-- Operator classes with their operators and support functions.
select
  'pg_opclass'::regclass::oid as classid,
  o.oid as objid,
  0 as objsubid,
  'operator class' as kind,
  array[n.nspname::text, o.opcname::text, m.amname::text] as path,
  jsonb_build_object(
    'default', nullif(o.opcdefault, false),
    'type', format_type(o.opcintype, null),
    'storage', case when o.opckeytype <> 0 then format_type(o.opckeytype, null) end,
    'family', (select jsonb_build_array(fn.nspname, f.opfname)
      from pg_opfamily as f join pg_namespace as fn on fn.oid = f.opfnamespace where f.oid = o.opcfamily),
    'operators', (select jsonb_agg(jsonb_build_array(a.amopstrategy, a.amopopr::regoperator::text, (
        select quote_ident(sn.nspname) || '.' || quote_ident(sf.opfname) from pg_opfamily as sf
        join pg_namespace as sn on sn.oid = sf.opfnamespace where sf.oid = a.amopsortfamily)) order by a.amopstrategy)
      from pg_depend as d join pg_amop as a on a.oid = d.objid
      where d.classid = 'pg_amop'::regclass and d.refclassid = 'pg_opclass'::regclass and d.refobjid = o.oid),
    'functions', (select jsonb_agg(jsonb_build_array(a.amprocnum, format_type(a.amproclefttype, null),
        format_type(a.amprocrighttype, null), a.amproc::oid::regprocedure::text) order by a.amprocnum)
      from pg_depend as d join pg_amproc as a on a.oid = d.objid
      where d.classid = 'pg_amproc'::regclass and d.refclassid = 'pg_opclass'::regclass and d.refobjid = o.oid),
    'owner', nullif(pg_get_userbyid(o.opcowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = o.oid and e.classoid = 'pg_opclass'::regclass and e.objsubid = 0)
  ) as facets
from pg_opclass as o
join pg_namespace as n on n.oid = o.opcnamespace
join pg_am as m on m.oid = o.opcmethod
where n.nspname = any(%(schemas)s)
