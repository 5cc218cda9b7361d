-- Operator families and the operators and functions that belong to them rather than to a class.
select
  'pg_opfamily'::regclass::oid as classid,
  f.oid as objid,
  0 as objsubid,
  'operator family' as kind,
  array[n.nspname::text, f.opfname::text, m.amname::text] as path,
  jsonb_build_object(
    'operators', (select jsonb_agg(jsonb_build_array(a.amopstrategy, a.amopopr::regoperator::text, (
        select quote_ident(sn.nspname) || '.' || quote_ident(sf.opfname) from pg_opfamily as sf
        join pg_namespace as sn on sn.oid = sf.opfnamespace where sf.oid = a.amopsortfamily),
        format_type(a.amoplefttype, null), format_type(a.amoprighttype, null))
        order by a.amopstrategy, a.amopopr::regoperator::text collate "C")
      from pg_depend as d join pg_amop as a on a.oid = d.objid
      where d.classid = 'pg_amop'::regclass and d.refclassid = 'pg_opfamily'::regclass and d.refobjid = f.oid),
    'functions', (select jsonb_agg(jsonb_build_array(a.amprocnum, format_type(a.amproclefttype, null),
        format_type(a.amprocrighttype, null), a.amproc::oid::regprocedure::text)
        order by a.amprocnum, a.amproc::oid::regprocedure::text collate "C")
      from pg_depend as d join pg_amproc as a on a.oid = d.objid
      where d.classid = 'pg_amproc'::regclass and d.refclassid = 'pg_opfamily'::regclass and d.refobjid = f.oid),
    'owner', nullif(pg_get_userbyid(f.opfowner), %(runner)s::name),
    'comment', (select e.description from pg_description as e
      where e.objoid = f.oid and e.classoid = 'pg_opfamily'::regclass and e.objsubid = 0)
  ) as facets
from pg_opfamily as f
join pg_namespace as n on n.oid = f.opfnamespace
join pg_am as m on m.oid = f.opfmethod
where n.nspname = any(%(schemas)s)
