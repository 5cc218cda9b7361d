-- Who needs whom, of all that is not the system's.
select
  d.classid::bigint,
  d.objid::bigint,
  d.objsubid,
  d.refclassid::bigint,
  d.refobjid::bigint,
  d.refobjsubid,
  -- what a publication lists hangs on the publication and on the table alike: it is the publication's
  case when d.classid in ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass)
    and d.refclassid <> 'pg_publication'::regclass then 'n'
    -- so is a loose member of an operator family the family's
    when d.classid in ('pg_amop'::regclass, 'pg_amproc'::regclass)
      and d.refclassid not in ('pg_opclass'::regclass, 'pg_opfamily'::regclass) then 'n'
    else d.deptype::text end
from pg_depend as d
where d.objid >= 16384 and (d.refobjid >= 16384 or d.refclassid = 'pg_namespace'::regclass)
  -- what the constraints snapshot leaves out as part of a key
  and not exists (
    select from pg_constraint as k join pg_constraint as pk on pk.oid = k.conparentid and pk.conrelid = k.conrelid
    where d.classid = 'pg_constraint'::regclass and k.oid = d.objid)
