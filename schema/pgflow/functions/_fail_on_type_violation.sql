-- Fails the run when a map waits for the array that this task did not produce.
-- Locks: the run's other open tasks, then messages. The caller holds the run's row, the step's
-- state and the task's row.
create function pgflow._fail_on_type_violation(
  run_id uuid,
  step_slug text,
  task_index integer,
  output jsonb
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type constant text := coalesce(jsonb_typeof(_fail_on_type_violation.output), 'null');
  v_child text;
  v_run record;
  v_step record;
begin
  select child.step_slug into v_child
  from pgflow.step_states as s
  join pgflow.deps as d on d.flow_slug = s.flow_slug and d.dep_slug = s.step_slug
  join pgflow.steps as child on child.flow_slug = d.flow_slug and child.step_slug = d.step_slug
  join pgflow.step_states as waiting
    on waiting.run_id = s.run_id and waiting.step_slug = child.step_slug
  where s.run_id = _fail_on_type_violation.run_id
  and s.step_slug = _fail_on_type_violation.step_slug
  and child.step_type = 'map'
  and waiting.initial_tasks is null
  order by child.step_index
  limit 1;
  if v_child is null then
    return false;
  end if;

  update pgflow.step_tasks as t
  set
    status = 'failed',
    failed_at = greatest(now(), t.started_at),
    output = _fail_on_type_violation.output,
    error_message = format('[TYPE_VIOLATION] Produced %s instead of array', v_type)
  where t.run_id = _fail_on_type_violation.run_id
  and t.step_slug = _fail_on_type_violation.step_slug
  and t.task_index = _fail_on_type_violation.task_index;

  update pgflow.runs as r
  set status = 'failed', failed_at = greatest(now(), r.started_at)
  where r.run_id = _fail_on_type_violation.run_id
  returning r.flow_slug, r.failed_at into v_run;
  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'run:failed',
      'run_id', _fail_on_type_violation.run_id,
      'flow_slug', v_run.flow_slug,
      'status', 'failed',
      'failed_at', v_run.failed_at
    ),
    'run:failed',
    'pgflow:run:' || _fail_on_type_violation.run_id
  );

  update pgflow.step_states as s
  set
    status = 'failed',
    failed_at = greatest(now(), s.started_at),
    error_message = format(
      '[TYPE_VIOLATION] Map step %s expects array input but dependency %s produced %s',
      v_child,
      s.step_slug,
      v_type
    )
  where s.run_id = _fail_on_type_violation.run_id
  and s.step_slug = _fail_on_type_violation.step_slug
  returning s.error_message, s.failed_at into v_step;
  perform pgflow._emit(
    jsonb_build_object(
      'event_type', 'step:failed',
      'run_id', _fail_on_type_violation.run_id,
      'step_slug', _fail_on_type_violation.step_slug,
      'status', 'failed',
      'error_message', v_step.error_message,
      'failed_at', v_step.failed_at
    ),
    format('step:%s:failed', _fail_on_type_violation.step_slug),
    'pgflow:run:' || _fail_on_type_violation.run_id
  );

  perform pgflow._end_open_tasks(_fail_on_type_violation.run_id, null, 'cancelled');
  perform pgflow._archive_task_message(
    _fail_on_type_violation.run_id,
    _fail_on_type_violation.step_slug,
    _fail_on_type_violation.task_index
  );
  return true;
end;
$$;

comment on function pgflow._fail_on_type_violation(uuid, text, integer, jsonb) is
'Fails a task, its step and its run when a child map of still unknown size gets no array; true if it did.';
