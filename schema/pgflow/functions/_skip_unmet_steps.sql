-- Skips steps whose conditions are not met; their children go on without them.
-- Locks: the states of the steps and of their children. The caller holds the run's row.
create function pgflow._skip_unmet_steps(run_id uuid, step_slugs text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_step record;
begin
  for v_step in
    with skipped as (
      update pgflow.step_states as s
      set
        status = 'skipped',
        skip_reason = 'condition_unmet',
        skipped_at = greatest(now(), s.created_at)
      where s.run_id = _skip_unmet_steps.run_id
      and s.step_slug = any(_skip_unmet_steps.step_slugs)
      returning s.flow_slug, s.step_slug, s.skipped_at
    )
    select k.flow_slug, k.step_slug, k.skipped_at
    from skipped as k
    order by array_position(_skip_unmet_steps.step_slugs, k.step_slug)
  loop
    perform pgflow._emit(
      jsonb_build_object(
        'event_type', 'step:skipped',
        'run_id', _skip_unmet_steps.run_id,
        'flow_slug', v_step.flow_slug,
        'step_slug', v_step.step_slug,
        'status', 'skipped',
        'skip_reason', 'condition_unmet',
        'skipped_at', v_step.skipped_at
      ),
      format('step:%s:skipped', v_step.step_slug),
      'pgflow:run:' || _skip_unmet_steps.run_id
    );
  end loop;

  perform pgflow._release_dependents(_skip_unmet_steps.run_id, _skip_unmet_steps.step_slugs, 0);
  update pgflow.runs as r
  set remaining_steps = r.remaining_steps - cardinality(_skip_unmet_steps.step_slugs)
  where r.run_id = _skip_unmet_steps.run_id;
end;
$$;

comment on function pgflow._skip_unmet_steps(uuid, text[]) is
'Skips ready steps with reason condition_unmet and counts them down in their children and the run.';
