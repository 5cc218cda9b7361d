-- Claims the queued tasks that messages announce, and hands each to the worker with its input.
-- Locks: the runs' rows (no key update), the worker's row (key share), the task rows in the order
-- of their key.
-- Steps are read, not locked: what ends them holds their run.
-- Plans are kept, and go by index: planning anew reads the ends of indexes, where under load the
-- dead rows are, and a plan from the time when a table was small scans all of it until it is
-- analysed.
create function pgflow.start_tasks(flow_slug text, msg_ids bigint[], worker_id uuid)
returns setof pgflow.step_task_record
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_run_ids uuid[];
  v_step_slugs text[];
  v_task_indexes integer[];
  v_message_ids bigint[];
begin
  -- By message and nothing else: what is appended hides the other columns from the planner, which,
  -- while the table is small, would rather scan a flow or all queued tasks, and keep to that.
  select
    array_agg(t.run_id),
    array_agg(t.step_slug),
    array_agg(t.task_index),
    array_agg(t.message_id)
  into v_run_ids, v_step_slugs, v_task_indexes, v_message_ids
  from pgflow.runs as r
  join pgflow.step_states as s on s.run_id = r.run_id
  join pgflow.step_tasks as t on t.run_id = s.run_id and t.step_slug = s.step_slug
  where t.message_id = any(start_tasks.msg_ids)
  and t.flow_slug || '' = start_tasks.flow_slug
  and t.status || '' = 'queued'
  and r.status = 'started'
  and s.status = 'started';

  -- A callback that holds a run may come to lock any of its tasks: it ends first. Claims of one run
  -- take turns as well: shared locks would pass the callback that waits.
  perform from pgflow.runs as r where r.run_id = any(v_run_ids) order by r.run_id for no key update;
  -- Before the tasks, as in a deletion of workers, which then clears last_worker_id.
  perform from pgflow.workers as w where w.worker_id = start_tasks.worker_id for key share;

  with candidates as materialized (
    select t.run_id, t.step_slug, t.task_index, t.status
    from unnest(v_run_ids, v_step_slugs, v_task_indexes) as k (run_id, step_slug, task_index)
    join pgflow.step_tasks as t
      on t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
    order by t.run_id, t.step_slug, t.task_index
    for update of t
  )
  update pgflow.step_tasks as t
  set
    status = 'started',
    attempts_count = t.attempts_count + 1,
    started_at = greatest(now(), t.queued_at),
    last_worker_id = start_tasks.worker_id
  from candidates as c
  where t.run_id = c.run_id
  and t.step_slug = c.step_slug
  and t.task_index = c.task_index
  and c.status = 'queued';

  return query
  select c.flow_slug, c.run_id, c.step_slug, c.input, c.msg_id, c.task_index, c.flow_input
  from pgflow._task_inputs(
    start_tasks.flow_slug,
    v_run_ids,
    v_step_slugs,
    v_task_indexes,
    v_message_ids
  ) as c;
end;
$$;

comment on function pgflow.start_tasks(text, bigint[], uuid) is
'Claims the queued tasks of a flow that these messages announce: one row for each task that was queued. Other ids are ignored.';
