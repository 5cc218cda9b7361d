-- Completes a step whose tasks are all completed.
-- Locks: the states of the step and of its children, the run's row. The caller holds the run's row
-- and the step's state.
create function pgflow._complete_step(run_id uuid, step_slug text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_step record;
  v_released integer;
begin
  update pgflow.step_states as s
  set
    status = 'completed',
    completed_at = greatest(now(), s.started_at),
    remaining_tasks = 0,
    output = done.output
  from (
    select
      st.step_type,
      case
        when st.step_type = 'map' then jsonb_agg(t.output order by t.task_index)
        else (array_agg(t.output))[1]
      end as output
    from pgflow.step_tasks as t
    join pgflow.steps as st on st.flow_slug = t.flow_slug and st.step_slug = t.step_slug
    where t.run_id = _complete_step.run_id and t.step_slug = _complete_step.step_slug
    group by st.step_type
  ) as done
  where s.run_id = _complete_step.run_id and s.step_slug = _complete_step.step_slug
  returning s.output, s.completed_at into v_step;

  v_released := pgflow._release_dependents(
    _complete_step.run_id,
    array[_complete_step.step_slug],
    case when jsonb_typeof(v_step.output) = 'array' then jsonb_array_length(v_step.output) end
  );
  update pgflow.runs as r
  set remaining_steps = r.remaining_steps - 1
  where r.run_id = _complete_step.run_id;

  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'step:completed',
      'run_id', _complete_step.run_id,
      'step_slug', _complete_step.step_slug,
      'status', 'completed',
      'output', v_step.output,
      'completed_at', v_step.completed_at
    ),
    format('step:%s:completed', _complete_step.step_slug),
    'pgflow:run:' || _complete_step.run_id
  );
  return v_released;
end;
$$;

comment on function pgflow._complete_step(uuid, text) is
'Completes a step with the output of its tasks and counts it down in run and children; how many children it has told.';
