-- Does nothing: workers read their queue and call start_tasks.
-- Locks: nothing.
create function pgflow.poll_for_tasks(
  queue_name text,
  vt integer,
  qty integer,
  max_poll_seconds integer default 5,
  poll_interval_ms integer default 100
)
returns setof pgflow.step_task_record
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  raise notice using
    message = 'pgflow.poll_for_tasks is deprecated and returns nothing',
    hint = 'Read the queue with pgmq.read_with_poll, then call pgflow.start_tasks.';
end;
$$;

comment on function pgflow.poll_for_tasks(text, integer, integer, integer, integer) is
'Deprecated: kept for old workers, says so and returns nothing. Use pgmq.read_with_poll and start_tasks.';
