-- Skips a step and everything downstream of it, whatever other parents say.
-- Locks: the run's row, the states of these steps, their open tasks, then their messages.
create function pgflow._cascade_force_skip_steps(run_id uuid, step_slug text, skip_reason text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_skipped text[] := '{}';
  v_step record;
begin
  perform from pgflow.runs as r where r.run_id = _cascade_force_skip_steps.run_id for update;
  if not found then
    raise exception using
      message = format('Run not found: %s', _cascade_force_skip_steps.run_id);
  end if;

  for v_step in
    with recursive downstream as (
      select r.flow_slug, _cascade_force_skip_steps.step_slug
      from pgflow.runs as r
      where r.run_id = _cascade_force_skip_steps.run_id
      union
      select d.flow_slug, d.step_slug
      from downstream as up
      join pgflow.deps as d on d.flow_slug = up.flow_slug and d.dep_slug = up.step_slug
    ),
    skipped as (
      update pgflow.step_states as s
      set
        status = 'skipped',
        skip_reason = case
          when s.step_slug = _cascade_force_skip_steps.step_slug
            then _cascade_force_skip_steps.skip_reason
          else 'dependency_skipped'
        end,
        skipped_at = greatest(now(), s.created_at),
        remaining_tasks = null
      from downstream as down
      where s.run_id = _cascade_force_skip_steps.run_id
      and s.step_slug = down.step_slug
      and s.status in ('created', 'started')
      returning s.flow_slug, s.step_slug, s.skip_reason, s.skipped_at
    )
    select k.flow_slug, k.step_slug, k.skip_reason, k.skipped_at
    from skipped as k
    join pgflow.steps as st on st.flow_slug = k.flow_slug and st.step_slug = k.step_slug
    order by st.step_index
  loop
    v_skipped := v_skipped || v_step.step_slug;
    perform pgflow._emit(
      jsonb_build_object(
        'event_type', 'step:skipped',
        'run_id', _cascade_force_skip_steps.run_id,
        'flow_slug', v_step.flow_slug,
        'step_slug', v_step.step_slug,
        'status', 'skipped',
        'skip_reason', v_step.skip_reason,
        'skipped_at', v_step.skipped_at
      ),
      format('step:%s:skipped', v_step.step_slug),
      'pgflow:run:' || _cascade_force_skip_steps.run_id
    );
  end loop;

  perform pgflow._end_open_tasks(_cascade_force_skip_steps.run_id, v_skipped, 'skipped');
  update pgflow.runs as r
  set remaining_steps = r.remaining_steps - cardinality(v_skipped)
  where r.run_id = _cascade_force_skip_steps.run_id and v_skipped <> '{}';
  return cardinality(v_skipped);
end;
$$;

comment on function pgflow._cascade_force_skip_steps(uuid, text, text) is
'Skips a step for the given reason and all steps downstream as dependency_skipped; how many were skipped now.';
