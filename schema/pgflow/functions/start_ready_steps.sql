-- Starts each step that waits for nothing: marks it, sends a message and adds a row for each task.
-- Locks: the states of these steps, by step_slug. The caller holds the run's row, or has just made
-- it.
create function pgflow.start_ready_steps(run_id uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_step record;
  v_started_at timestamptz;
begin
  for v_step in
    select s.flow_slug, s.step_slug, s.initial_tasks, s.remaining_deps, st.opt_start_delay
    from pgflow.runs as r
    join pgflow.step_states as s on s.run_id = r.run_id
    join pgflow.steps as st on st.flow_slug = s.flow_slug and st.step_slug = s.step_slug
    where r.run_id = start_ready_steps.run_id
    and r.status = 'started'
    and s.status = 'created'
    and s.remaining_deps = 0
    and s.initial_tasks > 0
    order by s.step_slug
    for update of s
  loop
    update pgflow.step_states as s
    set
      status = 'started',
      started_at = greatest(now(), s.created_at),
      remaining_tasks = s.initial_tasks
    where s.run_id = start_ready_steps.run_id and s.step_slug = v_step.step_slug
    returning s.started_at into v_started_at;

    perform pgflow._emit(
      jsonb_build_object(
        'event_type', 'step:started',
        'run_id', start_ready_steps.run_id,
        'step_slug', v_step.step_slug,
        'status', 'started',
        'started_at', v_started_at,
        'remaining_tasks', v_step.initial_tasks,
        'remaining_deps', v_step.remaining_deps
      ),
      format('step:%s:started', v_step.step_slug),
      'pgflow:run:' || start_ready_steps.run_id
    );

    insert into pgflow.step_tasks (flow_slug, run_id, step_slug, message_id, task_index)
    select
      v_step.flow_slug,
      start_ready_steps.run_id,
      v_step.step_slug,
      sent.message_id,
      sent.position - 1
    from pgmq.send_batch(
      v_step.flow_slug,
      array(
        select
          jsonb_build_object(
            'flow_slug', v_step.flow_slug,
            'run_id', start_ready_steps.run_id,
            'step_slug', v_step.step_slug,
            'task_index', i.task_index
          )
        from generate_series(0, v_step.initial_tasks - 1) as i (task_index)
        order by i.task_index
      ),
      coalesce(v_step.opt_start_delay, 0)
    ) with ordinality as sent (message_id, position);
  end loop;
end;
$$;

comment on function pgflow.start_ready_steps(uuid) is
'Starts the steps of a started run whose parents are done and that have tasks; a step of the engine itself.';
