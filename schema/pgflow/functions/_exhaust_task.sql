-- Applies when_exhausted to the step of a task that has failed for good.
-- Locks: step states, open tasks of the run or of what is skipped, then messages. The caller holds
-- the run's row, the step's state and the task's row.
create function pgflow._exhaust_task(
  run_id uuid,
  step_slug text,
  task_index integer,
  error_message text,
  when_exhausted text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_goes_on boolean := true;
begin
  if _exhaust_task.when_exhausted = 'fail' then
    perform pgflow._fail_step(
      _exhaust_task.run_id,
      _exhaust_task.step_slug,
      _exhaust_task.error_message
    );
    v_goes_on := false;
  else
    perform pgflow._skip_failed_step(
      _exhaust_task.run_id,
      _exhaust_task.step_slug,
      _exhaust_task.error_message
    );
    if _exhaust_task.when_exhausted = 'skip-cascade' then
      -- The step itself is skipped already: this reaches what is downstream.
      perform pgflow._cascade_force_skip_steps(
        _exhaust_task.run_id,
        _exhaust_task.step_slug,
        'handler_failed'
      );
    else
      perform pgflow._release_dependents(
        _exhaust_task.run_id,
        array[_exhaust_task.step_slug],
        0
      );
      v_goes_on := pgflow._settle_ready_steps(_exhaust_task.run_id);
    end if;
  end if;

  perform pgflow._archive_task_message(
    _exhaust_task.run_id,
    _exhaust_task.step_slug,
    _exhaust_task.task_index
  );
  if v_goes_on then
    perform pgflow.start_ready_steps(_exhaust_task.run_id);
    perform pgflow.maybe_complete_run(_exhaust_task.run_id);
  end if;
end;
$$;

comment on function pgflow._exhaust_task(uuid, text, integer, text, text) is
'Fails the run, or skips the step with or without what is downstream, and archives the task''s message.';
