-- Claims the queued tasks that messages announce, and hands each to the worker with its input.
-- Locks: the runs' rows (no key update), the worker's row (key share), the task rows in the order
-- of their key, then their messages.
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
  v_hidden_s integer[];
  v_updated integer;
begin
  -- The table of runs before that of tasks, in the order in which a migration locks them.
  perform from pgflow.runs where false;
  -- By message and nothing else: what is appended hides the other columns from the planner, which,
  -- while the table is small, would rather scan a flow or all queued tasks, and keep to that.
  select array_agg(t.run_id), array_agg(t.step_slug), array_agg(t.task_index)
  into v_run_ids, v_step_slugs, v_task_indexes
  from pgflow.step_tasks as t
  where t.message_id = any(start_tasks.msg_ids)
  and t.flow_slug || '' = start_tasks.flow_slug
  and t.status || '' = 'queued';
  if v_run_ids is null then
    return;
  end if;

  -- A callback that holds a run may come to lock any of its tasks: it ends first. Claims of one run
  -- take turns as well: shared locks would pass the callback that waits.
  perform from pgflow.runs as r where r.run_id = any(v_run_ids) order by r.run_id for no key update;
  -- Before the tasks, as in a deletion of workers, which then clears last_worker_id.
  perform from pgflow.workers as w where w.worker_id = start_tasks.worker_id for key share;

  -- Found by key, and judged after the lock: a condition on the status would invite a scan of all
  -- tasks that have it.
  with candidates as materialized (
    select
      t.run_id,
      t.step_slug,
      t.task_index,
      t.status as task_status,
      r.status as run_status,
      s.status as step_status,
      least(coalesce(st.opt_timeout, f.opt_timeout), 2147483645) + 2 as hidden_s
    from unnest(v_run_ids, v_step_slugs, v_task_indexes) as k (run_id, step_slug, task_index)
    join pgflow.step_tasks as t
      on t.run_id = k.run_id and t.step_slug = k.step_slug and t.task_index = k.task_index
    join pgflow.runs as r on r.run_id = t.run_id
    join pgflow.step_states as s on s.run_id = t.run_id and s.step_slug = t.step_slug
    join pgflow.steps as st on st.flow_slug = t.flow_slug and st.step_slug = t.step_slug
    join pgflow.flows as f on f.flow_slug = t.flow_slug
    order by t.run_id, t.step_slug, t.task_index
    for update of t
  ),
  claimed as (
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
    and c.task_status = 'queued'
    and c.run_status = 'started'
    and c.step_status = 'started'
    returning t.run_id, t.step_slug, t.task_index, t.message_id, c.hidden_s
  )
  select
    array_agg(c.run_id),
    array_agg(c.step_slug),
    array_agg(c.task_index),
    array_agg(c.message_id),
    array_agg(c.hidden_s)
  into v_run_ids, v_step_slugs, v_task_indexes, v_message_ids, v_hidden_s
  from claimed as c;
  if v_run_ids is null then
    return;
  end if;

  select count(*) into v_updated
  from pgflow.set_vt_batch(start_tasks.flow_slug, v_message_ids, v_hidden_s);
  if v_updated <> cardinality(v_message_ids) then
    raise exception using
      errcode = 'invalid_text_representation',
      message = format(
        'start_tasks(): visibility updated %s of %s claimed messages',
        v_updated,
        cardinality(v_message_ids)
      ),
      hint = 'A message of a queued task is gone from its queue: who deleted or archived it?';
  end if;

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
'Claims the queued tasks of a flow that these messages announce: one row for each task that is now the worker''s, its message hidden for its timeout and 2 seconds. Other ids are ignored.';
