-- Who needs whom, of all that is not the system's.
select
  d.classid::bigint,
  d.objid::bigint,
  d.objsubid,
  d.refclassid::bigint,
  d.refobjid::bigint,
  d.refobjsubid,
  d.deptype::text
from pg_depend as d
where d.objid >= 16384 and (d.refobjid >= 16384 or d.refclassid = 'pg_namespace'::regclass)
