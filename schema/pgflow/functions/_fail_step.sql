-- Fails a step and its run.
-- Locks: the run's open tasks, then their messages. The caller holds the run's row and the step's
-- state.
create function pgflow._fail_step(run_id uuid, step_slug text, error_message text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run record;
  v_failed_at timestamptz;
begin
  update pgflow.step_states as s
  set
    status = 'failed',
    failed_at = greatest(now(), s.created_at, s.started_at),
    error_message = _fail_step.error_message
  where s.run_id = _fail_step.run_id and s.step_slug = _fail_step.step_slug
  returning s.failed_at into v_failed_at;
  update pgflow.runs as r
  set status = 'failed', failed_at = greatest(now(), r.started_at)
  where r.run_id = _fail_step.run_id
  returning r.flow_slug, r.failed_at into v_run;

  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'step:failed',
      'run_id', _fail_step.run_id,
      'step_slug', _fail_step.step_slug,
      'status', 'failed',
      'error_message', _fail_step.error_message,
      'failed_at', v_failed_at
    ),
    format('step:%s:failed', _fail_step.step_slug),
    'pgflow:run:' || _fail_step.run_id
  );
  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'run:failed',
      'run_id', _fail_step.run_id,
      'flow_slug', v_run.flow_slug,
      'status', 'failed',
      'error_message', _fail_step.error_message,
      'failed_at', v_run.failed_at
    ),
    'run:failed',
    'pgflow:run:' || _fail_step.run_id
  );
  perform pgflow._end_open_tasks(_fail_step.run_id, null, 'cancelled');
end;
$$;

comment on function pgflow._fail_step(uuid, text, text) is
'Fails a step and its run, tells so, and cancels the tasks that are open.';
