create function app.touch() returns trigger language plpgsql security definer set search_path = '' set work_mem = '8MB' as $fn$
begin
  new.made := now();
  return new;
end;
$fn$;
create trigger users_touch before update of name on app.users for each row when (old.name is distinct from new.name) execute function app.touch();
create function app.many(p_in int, variadic p_rest int[] default '{}', out a int, out b text) returns setof record language sql stable strict cost 5 rows 7 as $$ select 1, 'x' $$;
create procedure app.pay(p_id bigint) language plpgsql as $$ begin update app.orders set state = 'paid' where order_id = p_id; end $$;
create function app.orders_of(p_user app.users) returns setof app.orders language sql stable as $$ select * from app.orders where user_id = p_user.user_id $$;
create aggregate app.total_of (numeric) (sfunc = numeric_add, stype = numeric, initcond = '0');
