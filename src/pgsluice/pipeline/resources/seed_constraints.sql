-- The checks, foreign keys and partition bounds that a row of one table must meet; `columns` are names.
with this as (
  select pg_catalog.format('%%I.%%I', %(schema)s::text, %(table)s::text)::pg_catalog.regclass as oid
)
select
  case k.contype when 'c' then 'check' else 'foreign key' end as kind,
  k.conname as name,
  array(
    select a.attname::text
    from pg_catalog.unnest(k.conkey) with ordinality as u (attnum, place)
    inner join pg_catalog.pg_attribute as a on a.attrelid = k.conrelid and a.attnum = u.attnum
    order by u.place
  ) as columns,
  pg_catalog.pg_get_constraintdef(k.oid) as definition,
  n.nspname as schema,
  c.relname as "table",
  array(
    select a.attname::text
    from pg_catalog.unnest(k.confkey) with ordinality as u (attnum, place)
    inner join pg_catalog.pg_attribute as a on a.attrelid = k.confrelid and a.attnum = u.attnum
    order by u.place
  ) as keys
from this
inner join pg_catalog.pg_constraint as k on k.conrelid = this.oid and k.contype in ('c', 'f')
left join pg_catalog.pg_class as c on c.oid = k.confrelid
left join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where not exists (
  select from pg_catalog.pg_constraint as p
  where p.oid = k.conparentid and p.conrelid = k.conrelid
)
union all
select
  'partition',
  c.relname,
  array(
    select a.attname::text
    from pg_catalog.unnest(g.partattrs::int2[]) as u (attnum)
    inner join pg_catalog.pg_attribute as a on a.attrelid = g.partrelid and a.attnum = u.attnum
  ),
  pg_catalog.pg_get_expr(c.relpartbound, c.oid),
  null,
  null,
  null
from this
inner join lateral (
  select t.relid from pg_catalog.pg_partition_tree(this.oid) as t
  union
  select t.relid from pg_catalog.pg_partition_ancestors(this.oid) as t (relid)
) as tree on true
inner join pg_catalog.pg_class as c on c.oid = tree.relid and c.relpartbound is not null
inner join pg_catalog.pg_inherits as i on i.inhrelid = c.oid
inner join pg_catalog.pg_partitioned_table as g on g.partrelid = i.inhparent
order by kind, name
