-- Fails a task: it is queued again while attempts are left, else its step fails or is skipped.
-- Locks: the run's row, the step's state, the task's row, other states, open tasks that end with
-- their step or run, then messages.
-- Plans are kept, and go by index: planning anew reads the ends of indexes, where under load the
-- dead rows are, and a plan from the time when a table was small scans all of it until it is
-- analysed.
create function pgflow.fail_task(
  run_id uuid,
  step_slug text,
  task_index integer,
  error_message text
)
returns setof pgflow.step_tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_run_status text;
  v_step_status text;
  v_task_status text;
  v_is_exhausted boolean;
  v_when_exhausted text;
  v_max_attempts integer;
  v_base_delay integer;
  v_task pgflow.step_tasks;
begin
  select r.status into v_run_status
  from pgflow.runs as r
  where r.run_id = fail_task.run_id;

  -- A failed run is not waited for.
  if v_run_status is distinct from 'failed' then
    select r.status into v_run_status
    from pgflow.runs as r
    where r.run_id = fail_task.run_id
    for update;
    select
      s.status,
      st.when_exhausted,
      coalesce(st.opt_max_attempts, f.opt_max_attempts),
      coalesce(st.opt_base_delay, f.opt_base_delay)
    into v_step_status, v_when_exhausted, v_max_attempts, v_base_delay
    from pgflow.step_states as s
    join pgflow.steps as st on st.flow_slug = s.flow_slug and st.step_slug = s.step_slug
    join pgflow.flows as f on f.flow_slug = s.flow_slug
    where s.run_id = fail_task.run_id and s.step_slug = fail_task.step_slug
    for update of s;
  end if;

  if v_run_status = 'failed' or v_step_status is distinct from 'started' then
    perform pgflow._archive_task_message(
      fail_task.run_id,
      fail_task.step_slug,
      fail_task.task_index
    );
  else
    -- Judged after the lock: a condition on the status would invite a scan of all started tasks.
    -- A task that recovery gave up has no message left that could bring it back: no attempt is left.
    select t.status, t.attempts_count >= v_max_attempts or t.permanently_stalled_at is not null
    into v_task_status, v_is_exhausted
    from pgflow.step_tasks as t
    where t.run_id = fail_task.run_id
    and t.step_slug = fail_task.step_slug
    and t.task_index = fail_task.task_index
    for update;
  end if;

  if v_task_status = 'started' then
    update pgflow.step_tasks as t
    set
      status = case when v_is_exhausted then 'failed' else 'queued' end,
      started_at = case when v_is_exhausted then t.started_at end,
      failed_at = case when v_is_exhausted then greatest(now(), t.started_at) end,
      error_message = fail_task.error_message
    where t.run_id = fail_task.run_id
    and t.step_slug = fail_task.step_slug
    and t.task_index = fail_task.task_index
    returning t.* into v_task;
  end if;

  if v_task.status = 'queued' and v_task.message_id is not null then
    perform pgmq.set_vt(
      v_task.flow_slug,
      v_task.message_id,
      pgflow.calculate_retry_delay(v_base_delay, v_task.attempts_count)
    );
  elsif v_task.status = 'failed' then
    perform pgflow._exhaust_task(
      fail_task.run_id,
      fail_task.step_slug,
      fail_task.task_index,
      fail_task.error_message,
      v_when_exhausted
    );
  end if;

  return query
  select t.*
  from pgflow.step_tasks as t
  where t.run_id = fail_task.run_id
  and t.step_slug = fail_task.step_slug
  and t.task_index = fail_task.task_index;
end;
$$;

comment on function pgflow.fail_task(uuid, text, integer, text) is
'Fails a started task and returns its row: queued again after a back-off while attempts are left, else failed, and its step with it as when_exhausted says. A task that is not started, or whose step or run has ended, is returned unchanged.';
