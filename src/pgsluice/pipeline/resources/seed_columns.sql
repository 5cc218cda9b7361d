-- The columns of one table that an insert may name, with what is known about their types.
select
  a.attname as name,
  pg_catalog.format_type(a.atttypid, a.atttypmod) as type,
  a.attnotnull or t.typnotnull as is_required,
  a.atthasdef or a.attidentity <> '' or t.typdefault is not null as has_default,
  a.attidentity = 'a' as is_always_identity,
  base.typname as base,
  base.typtype as kind,
  base.typcategory as category,
  base.length,
  base.size,
  base.labels,
  base.checks
from pg_catalog.pg_attribute as a
inner join pg_catalog.pg_type as t on t.oid = a.atttypid
cross join lateral (
  with recursive chain (oid, typmod, level) as (
    select a.atttypid, a.atttypmod, 0
    union all
    select d.typbasetype, d.typtypmod, c.level + 1
    from chain as c
    inner join pg_catalog.pg_type as d on d.oid = c.oid and d.typtype = 'd'
  )
  select
    b.typname::text,
    b.typtype,
    b.typcategory,
    c.typmod as length,
    (select count(*) from pg_catalog.pg_attribute as m where m.attrelid = b.typrelid and m.attnum > 0) as size,
    array(
      select e.enumlabel::text from pg_catalog.pg_enum as e
      where e.enumtypid in (b.oid, b.typelem) order by e.enumsortorder
    ) as labels,
    array(
      select pg_catalog.pg_get_constraintdef(k.oid)
      from pg_catalog.pg_constraint as k where k.contypid in (select u.oid from chain as u) order by k.oid
    ) as checks
  from chain as c
  inner join pg_catalog.pg_type as b on b.oid = c.oid
  order by c.level desc
  limit 1
) as base
where a.attrelid = pg_catalog.format('%%I.%%I', %(schema)s::text, %(table)s::text)::pg_catalog.regclass
  and a.attnum > 0
  and not a.attisdropped
  and a.attgenerated = ''
order by a.attnum
