create function app.is_ok(p_name text) returns boolean language sql immutable parallel safe
begin atomic
  select p_name is not null and length(p_name) in (1, 2, 3) or p_name like 'a%';
end;
revoke all on function app.is_ok(text) from public;
grant execute on function app.is_ok(text) to app_writer;
comment on function app.is_ok(text) is 'Whether it is';
