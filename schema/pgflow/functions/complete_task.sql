-- Completes a task; the last one of a step completes it, starts what waited for it, and may end the
-- run.
-- Locks: the run's row, the step's state, the task's row, other states, open tasks that end with
-- their step or run, then messages.
-- Plans are kept, and go by index: planning anew reads the ends of indexes, where under load the
-- dead rows are, and a plan from the time when a table was small scans all of it until it is
-- analysed.
create function pgflow.complete_task(
  run_id uuid,
  step_slug text,
  task_index integer,
  output jsonb
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
  v_task_status text;
  v_step record;
  v_task pgflow.step_tasks;
  v_released integer := 0;
  v_goes_on boolean := false;
begin
  select r.status into v_run_status
  from pgflow.runs as r
  where r.run_id = complete_task.run_id;

  -- A failed run is not waited for: its tasks were cancelled with it.
  if v_run_status is distinct from 'failed' then
    select r.status into v_run_status
    from pgflow.runs as r
    where r.run_id = complete_task.run_id
    for update;
    select s.status, s.remaining_tasks, st.step_type into v_step
    from pgflow.step_states as s
    join pgflow.steps as st on st.flow_slug = s.flow_slug and st.step_slug = s.step_slug
    where s.run_id = complete_task.run_id and s.step_slug = complete_task.step_slug
    for update of s;

    if v_run_status = 'failed' or v_step.status is distinct from 'started' then
      perform pgflow._archive_task_message(
        complete_task.run_id,
        complete_task.step_slug,
        complete_task.task_index
      );
    else
      -- Judged after the lock: a condition on the status would invite a scan of all started tasks.
      select t.status into v_task_status
      from pgflow.step_tasks as t
      where t.run_id = complete_task.run_id
      and t.step_slug = complete_task.step_slug
      and t.task_index = complete_task.task_index
      for update;
    end if;

    if v_task_status is not distinct from 'started' and (
      v_step.step_type = 'map'
      or jsonb_typeof(complete_task.output) is not distinct from 'array'
      or not pgflow._fail_on_type_violation(
        complete_task.run_id,
        complete_task.step_slug,
        complete_task.task_index,
        complete_task.output
      )
    ) then
      update pgflow.step_tasks as t
      set
        status = 'completed',
        completed_at = greatest(now(), t.started_at),
        output = complete_task.output
      where t.run_id = complete_task.run_id
      and t.step_slug = complete_task.step_slug
      and t.task_index = complete_task.task_index
      returning t.* into v_task;
    end if;
  end if;

  if v_task.run_id is null then
    return query
    select t.*
    from pgflow.step_tasks as t
    where t.run_id = complete_task.run_id
    and t.step_slug = complete_task.step_slug
    and t.task_index = complete_task.task_index;
    return;
  end if;

  if v_step.remaining_tasks > 1 then
    update pgflow.step_states as s
    set remaining_tasks = s.remaining_tasks - 1
    where s.run_id = complete_task.run_id and s.step_slug = complete_task.step_slug;
  else
    v_released := pgflow._complete_step(complete_task.run_id, complete_task.step_slug);
    v_goes_on := v_released = 0 or pgflow._settle_ready_steps(complete_task.run_id);
  end if;
  if v_task.message_id is not null then
    perform pgmq.archive(v_task.flow_slug, v_task.message_id);
  end if;
  if v_goes_on and v_released > 0 then
    perform pgflow.start_ready_steps(complete_task.run_id);
  end if;
  if v_goes_on then
    perform pgflow.maybe_complete_run(complete_task.run_id);
  end if;
  return next v_task;
end;
$$;

comment on function pgflow.complete_task(uuid, text, integer, jsonb) is
'Completes a started task and returns its row; a task that is not started, or whose step or run has ended, is returned unchanged. An output that a map child cannot use fails the run.';
