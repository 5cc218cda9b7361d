create view app.paid with (security_invoker = true, security_barrier = true) as
select o.order_id, u.name, (o.total).amount as amount, row_number() over (partition by u.name order by o.placed) as n,
  case when o.state in ('new', 'paid') then 1 else 0 end as open
from app.orders as o join app.users as u using (user_id)
where o.placed between date '2025-01-01' and date '2026-12-31';
create materialized view app.totals as
select u.name, sum((o.total).amount) as total from app.users as u left join app.orders as o on o.user_id = u.user_id group by u.name with no data;
create unique index totals_name_idx on app.totals (name);
comment on view app.paid is 'Paid ones';
grant select on app.paid to app_reader;
create recursive view app.numbers (n) as values (1) union all select n + 1 from numbers where n < 10;
