-- Skips a step because one of its tasks has failed for good.
-- Locks: the step's open tasks, then their messages. The caller holds the run's row and the step's
-- state.
create function pgflow._skip_failed_step(run_id uuid, step_slug text, error_message text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_skipped_at timestamptz;
begin
  update pgflow.step_states as s
  set
    status = 'skipped',
    skip_reason = 'handler_failed',
    skipped_at = greatest(now(), s.created_at),
    error_message = _skip_failed_step.error_message,
    remaining_tasks = null
  where s.run_id = _skip_failed_step.run_id and s.step_slug = _skip_failed_step.step_slug
  returning s.skipped_at into v_skipped_at;

  perform pgflow._end_open_tasks(
    _skip_failed_step.run_id,
    array[_skip_failed_step.step_slug],
    'skipped'
  );
  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'step:skipped',
      'run_id', _skip_failed_step.run_id,
      'step_slug', _skip_failed_step.step_slug,
      'status', 'skipped',
      'skip_reason', 'handler_failed',
      'error_message', _skip_failed_step.error_message,
      'skipped_at', v_skipped_at
    ),
    format('step:%s:skipped', _skip_failed_step.step_slug),
    'pgflow:run:' || _skip_failed_step.run_id
  );
  update pgflow.runs as r
  set remaining_steps = r.remaining_steps - 1
  where r.run_id = _skip_failed_step.run_id;
end;
$$;

comment on function pgflow._skip_failed_step(uuid, text, text) is
'Skips a step with reason handler_failed, ends its open tasks, and counts it down in the run.';
