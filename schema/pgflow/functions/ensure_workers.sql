-- Starts each function that should host a worker and has none alive, by an HTTP request.
-- Locks: rows of worker_functions, passing over those that another call holds; nothing after them.
-- Vault and net are looked up in the catalog, which needs no rights, and named in dynamic SQL only.
create function pgflow.ensure_workers()
returns table (function_name text, invoked boolean, request_id bigint)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_local constant boolean := pgflow.is_local();
  v_base_url text;
  v_key text;
  v_headers jsonb := jsonb_build_object('Content-Type', 'application/json');
  v_function record;
begin
  if not exists (
    select from pg_proc as p
    where p.proname = 'http_post' and p.pronamespace = to_regnamespace('net')
  ) or not exists (
    select from pg_class as c
    where c.relname = 'decrypted_secrets' and c.relnamespace = to_regnamespace('vault')
  ) then
    return;
  end if;

  execute $sql$
    select
      coalesce(
        max(nullif(s.decrypted_secret, '')) filter (where s.name = 'pgflow_auth_secret'),
        max(nullif(s.decrypted_secret, '')) filter (where s.name = 'supabase_service_role_key')
      ),
      'https://'
      || max(nullif(s.decrypted_secret, '')) filter (where s.name = 'supabase_project_id')
      || '.supabase.co/functions/v1'
    from vault.decrypted_secrets as s
    where s.name in ('pgflow_auth_secret', 'supabase_service_role_key', 'supabase_project_id')
  $sql$ into v_key, v_base_url;

  if v_is_local then
    v_base_url := 'http://kong:8000/functions/v1';
  elsif v_base_url is null or v_key is null then
    return;
  end if;
  if v_key is not null then
    v_headers := v_headers || jsonb_build_object('Authorization', 'Bearer ' || v_key);
  end if;

  for v_function in
    select f.function_name
    from pgflow.worker_functions as f
    where f.enabled
      and f.start_mode = 'http'
      and (
        v_is_local
        or (
          (f.last_invoked_at is null or f.last_invoked_at < clock_timestamp() - f.debounce)
          and not exists (
            select from pgflow.workers as w
            where w.function_name = f.function_name
              and w.stopped_at is null
              and w.deprecated_at is null
              and w.last_heartbeat_at > clock_timestamp() - f.debounce
          )
        )
      )
    order by f.function_name
    for update of f skip locked
  loop
    ensure_workers.function_name := v_function.function_name;
    execute 'select net.http_post(url => $1, headers => $2, body => $3)'
    into ensure_workers.request_id
    using v_base_url || '/' || v_function.function_name, v_headers, '{}'::jsonb;

    update pgflow.worker_functions as f
    set last_invoked_at = clock_timestamp()
    where f.function_name = v_function.function_name;
    ensure_workers.invoked := true;
    return next;
  end loop;
end;
$$;

comment on function pgflow.ensure_workers() is
'Requests the start of worker functions without a live worker; no rows without vault or net.';
