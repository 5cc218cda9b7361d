-- Registers a function that hosts workers, or refreshes what it says of its start.
-- Locks: its row in worker_functions; outside of the order, as nothing is locked after it.
-- Leaves enabled, debounce and last_invoked_at alone, so a pause survives the start of a worker.
create function pgflow.track_worker_function(function_name text, start_mode text default 'http')
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into pgflow.worker_functions as f (function_name, start_mode, updated_at)
  values (
    track_worker_function.function_name,
    track_worker_function.start_mode,
    clock_timestamp()
  )
  on conflict on constraint worker_functions_pkey do update
  set start_mode = excluded.start_mode, updated_at = excluded.updated_at;
$$;

comment on function pgflow.track_worker_function(text, text) is
'Registers a worker function, or sets its start_mode; never touches enabled and debounce.';
