-- Completes a run that has no step left to do.
-- Locks: the run's row.
create function pgflow.maybe_complete_run(run_id uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run record;
begin
  update pgflow.runs as r
  set
    status = 'completed',
    completed_at = greatest(now(), r.started_at),
    output = (
      select jsonb_object_agg(s.step_slug, s.output)
      from pgflow.step_states as s
      where s.run_id = r.run_id
      and s.status = 'completed'
      and not exists (
        select from pgflow.deps as d
        where d.flow_slug = s.flow_slug and d.dep_slug = s.step_slug
      )
    )
  where r.run_id = maybe_complete_run.run_id
  and r.status = 'started'
  and r.remaining_steps = 0
  returning r.flow_slug, r.status, r.output, r.completed_at into v_run;
  if not found then
    return;
  end if;

  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'run:completed',
      'run_id', maybe_complete_run.run_id,
      'flow_slug', v_run.flow_slug,
      'status', v_run.status,
      'output', v_run.output,
      'completed_at', v_run.completed_at
    ),
    'run:completed',
    'pgflow:run:' || maybe_complete_run.run_id
  );
end;
$$;

comment on function pgflow.maybe_complete_run(uuid) is
'Completes a started run without remaining steps; its output holds those of the completed steps that nothing depends on.';
