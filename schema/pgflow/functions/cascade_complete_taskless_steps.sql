-- Completes the ready steps that have no tasks, wave by wave: each wave makes the next one ready.
-- Locks: the run's row, then the states of these steps and of their children.
-- A step whose condition is not met is left to cascade_resolve_conditions.
create function pgflow.cascade_complete_taskless_steps(run_id uuid)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max_turns constant integer := 50;
  v_turns integer := 0;
  v_total integer := 0;
  v_completed text[];
  v_step record;
begin
  perform from pgflow.runs as r
  where r.run_id = cascade_complete_taskless_steps.run_id
  for update;

  loop
    v_turns := v_turns + 1;
    if v_turns > c_max_turns then
      raise exception using
        message = format('Cascade loop exceeded safety limit of %s iterations', c_max_turns),
        hint = 'A chain of steps without tasks is this long; split the flow.';
    end if;

    v_completed := '{}';
    for v_step in
      update pgflow.step_states as s
      set
        status = 'completed',
        started_at = greatest(now(), s.created_at),
        completed_at = greatest(now(), s.created_at),
        remaining_tasks = 0,
        output = case st.step_type when 'map' then '[]'::jsonb end
      from pgflow.steps as st
      where s.run_id = cascade_complete_taskless_steps.run_id
      and s.status = 'created'
      and s.remaining_deps = 0
      and s.initial_tasks = 0
      and st.flow_slug = s.flow_slug
      and st.step_slug = s.step_slug
      and s.step_slug not in (
        select u.step_slug
        from pgflow._unmet_conditions(cascade_complete_taskless_steps.run_id) as u
      )
      returning s.step_slug, s.started_at, s.completed_at, s.output, s.remaining_deps
    loop
      v_completed := v_completed || v_step.step_slug;
      perform pgflow._emit(
        jsonb_build_object(
          'event_type', 'step:completed',
          'run_id', cascade_complete_taskless_steps.run_id,
          'step_slug', v_step.step_slug,
          'status', 'completed',
          'started_at', v_step.started_at,
          'completed_at', v_step.completed_at,
          'remaining_tasks', 0,
          'remaining_deps', v_step.remaining_deps,
          'output', v_step.output
        ),
        format('step:%s:completed', v_step.step_slug),
        'pgflow:run:' || cascade_complete_taskless_steps.run_id
      );
    end loop;
    exit when v_completed = '{}';

    perform pgflow._release_dependents(cascade_complete_taskless_steps.run_id, v_completed, 0);
    update pgflow.runs as r
    set remaining_steps = r.remaining_steps - cardinality(v_completed)
    where r.run_id = cascade_complete_taskless_steps.run_id;
    v_total := v_total + cardinality(v_completed);
  end loop;
  return v_total;
end;
$$;

comment on function pgflow.cascade_complete_taskless_steps(uuid) is
'Completes ready steps without tasks, such as maps over an empty array, and what that makes ready; how many. A chain of 50 or more is refused.';
