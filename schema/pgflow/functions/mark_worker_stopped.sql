-- Notes that a worker ended in good order.
-- Locks: the worker's row; in the order after step states, before tasks.
create function pgflow.mark_worker_stopped(worker_id uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  update pgflow.workers as w
  set stopped_at = clock_timestamp()
  where w.worker_id = mark_worker_stopped.worker_id;
$$;

comment on function pgflow.mark_worker_stopped(uuid) is
'Sets a worker''s stopped_at to the present; an unknown worker is no error.';
